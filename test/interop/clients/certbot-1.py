# Debian's certbot, with CSRs in the form of certbot before 2.0: acme.crypto_util.make_csr gave them version 2.
import sys

from certbot import main
from OpenSSL import crypto

set_version = crypto.X509Req.set_version
crypto.X509Req.set_version = lambda request, _: set_version(request, 2)
sys.exit(main.main(sys.argv[1:]))
