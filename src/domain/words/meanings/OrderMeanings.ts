import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of orders and authorizations, up to the request to sign, and of renewal information. */
export const orderMeanings = {
  order_created: "A client has placed an order.",
  order_replaces_accepted: "A client has placed an order that replaces a certificate.",
  order_replaces_rejected: [
    "An order says that it replaces a certificate, and that cannot be.",
    "Look at the reason; the client can order without the member `replaces`.",
    "clients/renewal.md"
  ],
  order_rejected: [
    "An order was refused, and the reason is the problem type that the client got.",
    "Look the type up with `acme-svc explain`; for a refusal by a policy, `filter_denied` has the rule.",
    "reference/errors.md"
  ],
  order_finalize_queued: "A client has handed in its CSR, and a job signs the certificate.",
  order_finalize_rejected: [
    "The client cannot hand in its CSR for this order now.",
    "Look at the reason: not_ready and expired are the client's; for filter and credential see the policy or the credential.",
    "reference/protocol.md"
  ],
  csr_rejected: [
    "The CSR does not fit the order or the kind of certificate, and the order has ended.",
    "Let the client place a new order with a CSR that has the names and the key that the reason wants.",
    "reference/protocol.md"
  ],
  order_finalize_kind_removed: [
    "The configuration does not have the kind of certificate of an order any more, and the order has ended.",
    "Write the kind into `[certificates.kinds]` again, or let the client order another kind.",
    "configure/kinds.md"
  ],
  authz_deactivated: "A client has deactivated an authorization, so that its order cannot become ready.",
  authz_deactivation_refused: [
    "A client wanted to deactivate an authorization that has ended or was used.",
    "Do nothing; if the certificate is to be void, revoke it.",
    "reference/protocol.md"
  ],
  renewal_info_rejected:
    "A client has asked for renewal information about a certificate that this profile has not issued.",
  renewal_asks_unwritten: [
    "The service could not store which clients ask for renewal information, and tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  renewal_hours_unwritten: [
    "The service could not store or read how many clients renew in which hour, and tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  renewal_info_hook_failed: [
    "The program that signs gave no renewal information, and the service sends its own estimate.",
    "Mend `renewal_info` of the program, or turn `signer.custom.supports_renewal_info` off.",
    "configure/signers.md"
  ]
} as const satisfies SomeMeanings
