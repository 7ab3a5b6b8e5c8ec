import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of signing: the local CAs, and the certificates that orders get or do not get. */
export const issuanceMeanings = {
  local_ca_loaded: "A worker has loaded a CA.",
  local_ca_generated: "The service has made a CA, because there was none.",
  local_ca_key_permissive: [
    "Other users of this host can read the key of a CA, or the secret that opens it.",
    "Remove the rights of other users with `chmod 0600`; if others may have read the key, replace the CA.",
    "operate/hardening.md"
  ],
  local_ca_expiring: [
    "A CA, or a certificate above it, expires soon, and no certificate is valid longer than that.",
    "Replace the CA with `acme-svc ca rotate` before that time.",
    "operate/runbooks/ca-ends.md"
  ],
  local_ca_other_unusable: [
    "A CA of `[signer.local_ca.others]` cannot be loaded; the other CAs of the profile work.",
    "Correct the keys or the files that the record names, and reload the configuration.",
    "configure/authorities.md"
  ],
  local_ca_cross_certificate_unusable: [
    "A cross-certificate does not fit its CA, so clients are not offered that chain.",
    "Correct the file of `signer.local_ca.cross_cert_paths` that the record names, or remove it.",
    "configure/authorities.md"
  ],
  local_ca_compromised_revoked:
    "The service has revoked certificates of a CA that an operator has marked as compromised.",
  local_ca_is_root: [
    "The CA that signs certificates of clients is a root, so its key must be online.",
    "Make a CA below the root for this work with `acme-svc ca csr`, and keep the key of the root offline.",
    "configure/authorities.md"
  ],
  local_ca_incomplete: [
    "The certificate of a CA has a flaw, and strict programs therefore refuse the certificates of this CA.",
    "Have the certificate of the CA issued again without the flaw that the reason names.",
    "configure/authorities.md"
  ],
  local_ca_requested_validity_discarded: [
    "The dates that an order asked for leave no lifetime, so the certificate has the lifetime of its kind.",
    "If the client needs these dates, check its clock, and `validity` of the kind; otherwise do nothing.",
    "configure/kinds.md"
  ],
  local_ca_issuer_expired: [
    "A CA, or a certificate above it, has expired, so the CA signs nothing any more.",
    "Replace the CA with `acme-svc ca rotate`.",
    "operate/runbooks/ca-ends.md"
  ],
  local_ca_lint_failed: [
    "A certificate that the service has made fails the service's own checks, so no client gets it.",
    "Look at the check and at the kind of certificate; if the kind is right, report this to the authors of the service.",
    "operate/runbooks/issuance-fails.md"
  ],
  local_ca_leaf_discarded: [
    "A certificate was signed but discarded, because its order had ended, or another worker came first.",
    "Do nothing; the certificate never left the worker."
  ],
  local_ca_leaf_issued: "A local CA has signed a certificate.",
  order_finalized: "An order has got its certificate.",
  certificate_served: "A client has fetched a certificate.",
  order_extensions_not_granted: [
    "A CSR asked for extensions that the certificate does not have.",
    "If the client needs them, see in the document which extensions the service can grant; otherwise do nothing.",
    "reference/protocol.md"
  ],
  leaf_usages_differ: [
    "A certificate has other key usages than its CSR asked for.",
    "If the client needs them, change `usages` of the kind, or set `unrequested` so that such a CSR is refused; otherwise do nothing.",
    "configure/kinds.md"
  ],
  order_finalize_bad_csr: [
    "The signer has refused the CSR of an order, so the order has ended.",
    "Send the error to the owner of the client, who then has to order with another CSR.",
    "configure/signers.md"
  ],
  order_finalize_issuance_failed: [
    "The signer gave no certificate; unless the failure is final, the service tries again by itself.",
    "Remove the cause that the record names.",
    "operate/runbooks/issuance-fails.md"
  ],
  order_finalize_persistence_failed: [
    "A certificate could not be stored in its order; the service tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  order_finalize_chain_rejected: [
    "The chain that a signer gave fails a check of the service, so no client gets it.",
    "Look up the check in the document, and correct the program or the upstream.",
    "configure/signers.md"
  ],
  order_finalize_authority_withdrawn: [
    "The account or an authorization of an order was deactivated, or the account was blocked or lost its credential, while its certificate was being made.",
    "If this was intended, do nothing; otherwise let the client place a new order.",
    "reference/errors.md"
  ],
  order_finalize_issuer_compromised: [
    "The CA that signed for an order is marked as compromised, so the order has ended.",
    "Give the profile another CA, and let the client order again.",
    "operate/runbooks/ca-compromised.md"
  ],
  order_finalize_abandoned: [
    "The service has given up making the certificate of an order, so the order has ended.",
    "`acme-svc order show ORDER_ID` prints the cause; remove it, and let the client order again.",
    "operate/runbooks/issuance-fails.md"
  ],
  certificate_orphaned: [
    "A signer has made a certificate, but its order ended without the certificate. The service asks the signer to revoke it.",
    "Watch the certificate with `acme-svc order orphaned` until it is revoked or stored.",
    "operate/runbooks/certificate-orphaned.md"
  ],
  certificate_orphan_revoked: "A certificate whose order ended without it was revoked.",
  certificate_orphan_stored: "A certificate that seemed to have no order is stored with its order.",
  certificate_orphan_revoke_failed: [
    "The signer did not revoke a certificate whose order ended without it; unless the refusal is final, the service asks again.",
    "Give the program a hook `revoke`, or repair the connection to the upstream.",
    "operate/runbooks/certificate-orphaned.md"
  ],
  certificate_orphan_search_failed: [
    "The service could not ask the upstream whether it has issued a certificate for an order that has ended.",
    "Repair the connection to the upstream; the service asks again for a week.",
    "operate/runbooks/upstream-away.md"
  ],
  certificate_orphan_kept: [
    "A certificate whose order ended without it was not revoked, and stays valid until it expires.",
    "Revoke it at the CA by its serial number; `acme-svc order orphaned --status kept` lists such certificates.",
    "operate/runbooks/certificate-orphaned.md"
  ]
} as const satisfies SomeMeanings
