# Runs one step of the example of python-acme (acme/examples/http01_example.py):
# <home> <directory URL> <tokens> <step> [<name> ...]
import os
import sys

from acme import challenges, client, crypto_util, errors, messages
from cryptography.hazmat.primitives.asymmetric import rsa
import josepy as jose
import OpenSSL

home, directory_url, tokens, step, *names = sys.argv[1:]


def kept(name):
    return os.path.join(home, name)


def write(name, text):
    with open(kept(name), "w") as file:
        file.write(text)


def read(name):
    with open(kept(name)) as file:
        return file.read()


def connected(key):
    net = client.ClientNetwork(key, user_agent="interop")
    return client.ClientV2(messages.Directory.from_json(net.get(directory_url).json()), net=net)


def opened():
    if os.path.exists(kept("account.json")):
        acme = connected(jose.JWKRSA.json_loads(read("account.json")))
        registration = messages.RegistrationResource.json_loads(read("registration.json"))
        acme.net.account = registration
        return acme, registration
    key = jose.JWKRSA(key=rsa.generate_private_key(public_exponent=65537, key_size=2048))
    acme = connected(key)
    bound = {}
    if "EAB_KID" in os.environ:
        kid, hmac_key = os.environ["EAB_KID"], os.environ["EAB_HMAC_KEY"]
        binding = messages.ExternalAccountBinding.from_data(key.public_key(), kid, hmac_key, acme.directory)
        bound = {"external_account_binding": binding}
    registration = acme.new_account(
        messages.NewRegistration.from_data(email="ops@corp.example", terms_of_service_agreed=True, **bound)
    )
    write("account.json", key.json_dumps())
    write("registration.json", registration.json_dumps())
    return acme, registration


def issue(acme):
    pkey = OpenSSL.crypto.PKey()
    pkey.generate_key(OpenSSL.crypto.TYPE_RSA, 2048)
    pem = OpenSSL.crypto.dump_privatekey(OpenSSL.crypto.FILETYPE_PEM, pkey)
    order = acme.new_order(crypto_util.make_csr(pem, names))
    for authorization in order.authorizations:
        [body] = [one for one in authorization.body.challenges if isinstance(one.chall, challenges.HTTP01)]
        response, validation = body.response_and_validation(acme.net.key)
        with open(os.path.join(tokens, body.chall.encode("token")), "w") as file:
            file.write(validation)
        acme.answer_challenge(body, response)
    write(names[0] + ".pem", acme.poll_and_finalize(order).fullchain_pem)


def revoke(acme):
    certificate = OpenSSL.crypto.load_certificate(OpenSSL.crypto.FILETYPE_PEM, read(names[0] + ".pem"))
    acme.revoke(jose.ComparableX509(certificate), 4)


acme, registration = opened()
if step == "issue":
    issue(acme)
elif step == "revoke":
    revoke(acme)
elif step == "contact":
    # The client sends the whole account object back, including the status.
    registration = acme.query_registration(registration)
    changed = registration.body.update(contact=("mailto:new@corp.example",))
    registration = acme.update_registration(registration.update(body=changed))
    if registration.body.contact != ("mailto:new@corp.example",):
        sys.exit("the contact is still %s" % (registration.body.contact,))
elif step == "deactivate":
    acme.deactivate_registration(registration)
else:
    sys.exit("there is no step " + step)
