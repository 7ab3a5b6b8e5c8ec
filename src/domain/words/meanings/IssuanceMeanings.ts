import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of signing: the local CAs, and the certificates that orders get or do not get. */
export const issuanceMeanings = {
  local_ca_loaded: "A worker has loaded a CA.",
  local_ca_generated: "The service has made a CA, because there was none.",
  local_ca_key_permissive: [
    "Other users of this host can read the key of a CA, or the secret that opens it.",
    "Take the rights of others away with `chmod 0600`; if others may have read the key, replace the CA.",
    "operate/hardening.md"
  ],
  local_ca_expiring: [
    "A CA, or a certificate above it, ends soon, and certificates are shortened to its end.",
    "Replace the CA with `acme-svc ca rotate` before it ends.",
    "operate/runbooks/ca-ends.md"
  ],
  local_ca_other_unusable: [
    "A CA of `[signer.local_ca.others]` cannot be loaded, and the other CAs of the profile work.",
    "Correct the keys or the files that the record names, and reload.",
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
    "The certificate of a CA lacks something without which strict programs refuse its certificates.",
    "Have the certificate issued again with what the reason names.",
    "configure/authorities.md"
  ],
  local_ca_requested_validity_discarded: [
    "The dates that an order asked for leave no lifetime, so the certificate has that of its kind.",
    "Nothing has to be done, unless the client needs its dates; then look at its clock, and at `validity` of the kind.",
    "configure/kinds.md"
  ],
  local_ca_issuer_expired: [
    "A CA, or a certificate above it, has ended, so it signs nothing more.",
    "Replace the CA with `acme-svc ca rotate`.",
    "operate/runbooks/ca-ends.md"
  ],
  local_ca_lint_failed: [
    "A certificate that the service has built fails its own check, and no client gets it.",
    "Look at the check and at the kind of certificate; if the kind is right, report this to the authors of the service.",
    "operate/runbooks/issuance-fails.md"
  ],
  local_ca_leaf_discarded: [
    "A certificate was signed and nobody got it, because its order had ended or another worker was faster.",
    "Do nothing; the certificate never left the worker."
  ],
  local_ca_leaf_issued: "A local CA has signed a certificate.",
  order_finalized: "An order has got its certificate.",
  certificate_served: "A client has fetched a certificate.",
  order_extensions_not_granted: [
    "A CSR asked for extensions that the certificate does not have.",
    "Nothing has to be done, unless the client needs them; then see which the service can grant.",
    "reference/protocol.md"
  ],
  leaf_usages_differ: [
    "A certificate has other usages than its CSR asked for.",
    "Nothing has to be done, unless the client needs them; then change `usages` of the kind, or `unrequested` to refuse.",
    "configure/kinds.md"
  ],
  order_finalize_bad_csr: [
    "The signer has refused the CSR of an order, and the order has ended.",
    "Give the error to the owner of the client, who orders again with another CSR.",
    "configure/signers.md"
  ],
  order_finalize_issuance_failed: [
    "The signer gave no certificate, and the job is tried again unless the failure is final.",
    "Remove the cause that the record names.",
    "operate/runbooks/issuance-fails.md"
  ],
  order_finalize_persistence_failed: [
    "A certificate could not be stored in its order, and the job is tried again.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  order_finalize_chain_rejected: [
    "The chain that a signer gave fails a check of the service, and no client gets it.",
    "Look the check up in the document, and correct the program or the upstream.",
    "configure/signers.md"
  ],
  order_finalize_authority_withdrawn: [
    "The account or an authorization of an order was deactivated, or the account was blocked, while its certificate was being made.",
    "Do nothing if that was meant; otherwise let the client place a new order.",
    "reference/errors.md"
  ],
  order_finalize_issuer_compromised: [
    "The CA that signed for an order is marked as compromised, and the order has ended.",
    "Give the profile another CA, and let the client order again.",
    "operate/runbooks/ca-compromised.md"
  ],
  order_finalize_abandoned: [
    "The service has given up making the certificate of an order, and the order has ended.",
    "`acme-svc order show ORDER_ID` prints the cause; remove it, and let the client order again.",
    "operate/runbooks/issuance-fails.md"
  ],
  certificate_orphaned: [
    "A signer has made a certificate for an order that ended without it, and the service asks to revoke it.",
    "Watch it with `acme-svc order orphaned`; it is over when it is revoked or stored.",
    "operate/runbooks/certificate-orphaned.md"
  ],
  certificate_orphan_revoked: "A certificate that was made in vain was revoked.",
  certificate_orphan_stored: "A certificate that seemed to be made in vain is stored with an order.",
  certificate_orphan_revoke_failed: [
    "The signer did not revoke a certificate that was made in vain, and is asked again unless it has refused for good.",
    "Give the program a hook `revoke`, or mend the connection to the upstream.",
    "operate/runbooks/certificate-orphaned.md"
  ],
  certificate_orphan_search_failed: [
    "The service could not ask the upstream whether it has made a certificate in vain.",
    "Mend the connection to the upstream; the service asks again for a week.",
    "operate/runbooks/upstream-away.md"
  ],
  certificate_orphan_kept: [
    "A certificate that was made in vain was not revoked, and stays valid until it ends.",
    "Revoke it at the CA by its serial number; `acme-svc order orphaned --status kept` lists such certificates.",
    "operate/runbooks/certificate-orphaned.md"
  ]
} as const satisfies SomeMeanings
