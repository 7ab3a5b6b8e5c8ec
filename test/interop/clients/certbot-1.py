# Debian's certbot with what certbot before 2.0 puts into a request for a certificate: version 2, as its
# acme.crypto_util.make_csr did.
import sys

from certbot import main
from OpenSSL import crypto

set_version = crypto.X509Req.set_version
crypto.X509Req.set_version = lambda request, _: set_version(request, 2)
sys.exit(main.main(sys.argv[1:]))
