#!/bin/sh
# Signs for acme-svc with OpenSSL 3: signer.backend = "custom", signer.custom.script_path = this file,
# signer.custom.args = ["<directory>"], signer.custom.supports_crl = true.
#
# The directory holds ca.pem and ca.key, made when they are missing, the books OpenSSL keeps about what was revoked, and in
# issued/ what each order was given.
# docs/configure/signers.md tells what each hook is given and has to answer.
set -eu
umask 077

cd "$1"
# One at a time: OpenSSL's books have no lock of their own.
exec 9> lock
flock 9

input=$(cat)
# Values of the document that cannot hold a quote.
member() {
  printf '%s' "$input" | sed -n 's/.*"'"$1"'":"\([A-Za-z0-9+\/=]*\)".*/\1/p'
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ ! -e ca.key ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 3650 -subj '/CN=Signed by a script' \
    -addext basicConstraints=critical,CA:TRUE,pathlen:0 -addext keyUsage=critical,keyCertSign,cRLSign \
    -keyout ca.key -out ca.pem 2> "$work/log" || { cat "$work/log" >&2; exit 1; }
fi
if [ ! -e books ]; then
  : > books
  printf '[ca]\ndefault_ca = it\n[it]\ndatabase = books\ncertificate = ca.pem\nprivate_key = ca.key\n' > config
  printf 'default_md = sha256\ndefault_crl_days = 7\ncrlnumber = number\ncrl_extensions = list\n' >> config
  printf '[list]\nauthorityKeyIdentifier = keyid\n' >> config
  echo 01 > number
fi

case $ACME_SIGNER_HOOK in
  issue)
    # Asked again, because the service died before it wrote the answer down: an order has one certificate.
    case $ACME_SIGNER_ORDER_ID in
      '' | *[!0-9A-Za-z-]*) echo "the order's id is no name for a file: $ACME_SIGNER_ORDER_ID" >&2; exit 1 ;;
    esac
    issued=issued/$ACME_SIGNER_ORDER_ID
    mkdir -p issued
    if [ -e "$issued" ]; then
      cat "$issued"
      exit 0
    fi
    find issued -type f -mtime +30 -delete
    member csr_der_base64 | openssl base64 -d -A > "$work/csr"
    # Nothing of the CSR but its key: a client may ask for anything in it.
    {
      printf 'subjectAltName = critical,DNS:%s\n' "$(printf '%s' "$ACME_SIGNER_IDENTIFIERS" | sed 's/,/,DNS:/g')"
      printf 'basicConstraints = critical,CA:FALSE\nkeyUsage = critical,digitalSignature\n'
      printf 'extendedKeyUsage = serverAuth,clientAuth\nsubjectKeyIdentifier = hash\nauthorityKeyIdentifier = keyid\n'
    } > "$work/extensions"
    if ! openssl x509 -req -inform DER -in "$work/csr" -CA ca.pem -CAkey ca.key -set_serial "0x4$(openssl rand -hex 15)" \
      -days 90 -subj / -extfile "$work/extensions" -out "$work/leaf" 2> "$work/log"; then
      cat "$work/log" >&2
      exit 1
    fi
    # Whole or not at all, and on disk before anybody has it: whoever is killed before that has handed nothing out.
    cat "$work/leaf" ca.pem > issued/.new
    sync issued/.new
    mv issued/.new "$issued"
    cat "$issued"
    ;;
  revoke)
    member cert_der_base64 | openssl base64 -d -A | openssl x509 -inform DER > "$work/leaf"
    serial=$(openssl x509 -in "$work/leaf" -noout -serial | cut -d = -f 2)
    # Revoked already: the service may ask again after a crash.
    if awk -F '\t' -v serial="$serial" '$1 == "R" && $4 == serial { found = 1 } END { exit !found }' books; then exit 0; fi
    case $ACME_SIGNER_REASON in
      1) reason=keyCompromise ;;
      2) reason=CACompromise ;;
      3) reason=affiliationChanged ;;
      4) reason=superseded ;;
      5) reason=cessationOfOperation ;;
      *) reason=unspecified ;;
    esac
    openssl ca -config config -revoke "$work/leaf" -crl_reason "$reason" 2> "$work/log" || { cat "$work/log" >&2; exit 1; }
    ;;
  crl)
    openssl ca -config config -gencrl -out "$work/list" 2> "$work/log" || { cat "$work/log" >&2; exit 1; }
    openssl crl -in "$work/list" -outform DER
    ;;
  *)
    echo "there is no hook $ACME_SIGNER_HOOK here" >&2
    exit 1
    ;;
esac
