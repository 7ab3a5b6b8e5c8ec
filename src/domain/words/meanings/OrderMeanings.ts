import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of orders and authorizations, up to the request to sign, and of renewal information. */
export const orderMeanings = {
  order_created: "A client has placed an order.",
  order_replaces_accepted: "A client has placed an order that replaces a certificate.",
  order_replaces_rejected: [
    "An order names a certificate that it replaces, but it cannot replace that certificate.",
    "Look up the reason in the document; the client can order without the member `replaces`.",
    "clients/renewal.md"
  ],
  order_rejected: [
    "An order was refused; the reason is the problem type that the client got.",
    "Look up the type with `acme-svc explain`; if a policy has refused the order, the record `filter_denied` names the rule.",
    "reference/errors.md"
  ],
  order_finalize_queued: "A client has sent its CSR, and a job signs the certificate.",
  order_finalize_rejected: [
    "A client has sent its CSR for an order that cannot be finalized now.",
    "Look at the reason: for not_ready and expired, correct the client; for filter or credential, check the policy or the credential.",
    "reference/protocol.md"
  ],
  csr_rejected: [
    "The CSR does not fit the order or the kind of certificate, so the order has ended.",
    "Let the client place a new order with another CSR; the reason says which names or which key it must have.",
    "reference/protocol.md"
  ],
  order_finalize_kind_removed: [
    "The configuration does not have the kind of certificate of an order any more, so the order has ended.",
    "Write the kind into `[certificates.kinds]` again, or let the client order another kind.",
    "configure/kinds.md"
  ],
  authz_deactivated: "A client has deactivated an authorization, so its order cannot become ready.",
  authz_deactivation_refused: [
    "A client wanted to deactivate an authorization that has ended or was used.",
    "Do nothing; to make the certificate invalid, revoke it.",
    "reference/protocol.md"
  ],
  renewal_info_rejected:
    "A client has asked for renewal information about a certificate that this profile has not issued.",
  renewal_asks_unwritten: [
    "The service could not store which clients ask for renewal information; it tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  renewal_hours_unwritten: [
    "The service could not store or read how many clients renew in which hour; it tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  renewal_info_hook_failed: [
    "The program that signs gave no renewal information, so the service sends its own estimate.",
    "Correct the hook `renewal_info` of the program, or set `signer.custom.supports_renewal_info` to false.",
    "configure/signers.md"
  ]
} as const satisfies SomeMeanings
