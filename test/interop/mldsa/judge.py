# Makes and judges keys of ML-DSA with the library cryptography:
# make <parameter set> <octets to sign>, judge <leaf> <CA>, or authority <CA> <key> <passphrase> <list>. Octets are
# hexadecimal. The answer is JSON.
import json
import sys

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import mldsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

verb, *words = sys.argv[1:]


def spki_of(key):
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo).hex()


def make(parameter_set, octets):
    key = getattr(mldsa, f"MLDSA{parameter_set}PrivateKey").generate()
    names = x509.SubjectAlternativeName([x509.DNSName("a.example")])
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).add_extension(names, False)
    return {
        "csr": request.sign(key, None).public_bytes(Encoding.DER).hex(),
        "spki": spki_of(key.public_key()),
        "pub": key.public_key().public_bytes_raw().hex(),
        "signature": key.sign(bytes.fromhex(octets)).hex(),
    }


def judge(leaf, ca):
    certificate = x509.load_der_x509_certificate(bytes.fromhex(leaf))
    certificate.verify_directly_issued_by(x509.load_der_x509_certificate(bytes.fromhex(ca)))
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    usages = "digital_signature content_commitment key_encipherment data_encipherment key_agreement key_cert_sign crl_sign"
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {
        "key": type(certificate.public_key()).__name__,
        "spki": spki_of(certificate.public_key()),
        "usages": [one for one in usages.split() if getattr(usage, one)],
        "names": names.get_values_for_type(x509.DNSName),
    }


def authority(ca, key, passphrase, revocations):
    certificate = x509.load_der_x509_certificate(bytes.fromhex(ca))
    certificate.verify_directly_issued_by(certificate)
    private = load_pem_private_key(bytes.fromhex(key), bytes.fromhex(passphrase) or None)
    listed = x509.load_der_x509_crl(bytes.fromhex(revocations))
    identifier = certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    authority = listed.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    return {
        "key": type(private).__name__,
        "fits": spki_of(private.public_key()) == spki_of(certificate.public_key()),
        "signature": certificate.signature_algorithm_oid.dotted_string,
        "parameters": certificate.signature_algorithm_parameters is not None,
        "list": listed.is_signature_valid(certificate.public_key()),
        "listed": [f"{one.serial_number:x}" for one in listed],
        "identifier": identifier == authority,
    }


print(json.dumps({"make": make, "judge": judge, "authority": authority}[verb](*words)))
