# Makes and judges keys of ML-DSA with the library cryptography:
# make <parameter set> <octets to sign>, or judge <leaf> <CA>. Octets are hexadecimal. The answer is JSON.
import json
import sys

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import mldsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

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


print(json.dumps({"make": make, "judge": judge}[verb](*words)))
