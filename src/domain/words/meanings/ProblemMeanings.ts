import type { AcmeError } from "../../AcmeError.ts"
import type { ProblemTypeOf } from "../../Problem.ts"
import type { Meaning } from "./Meaning.ts"

/**
 * What the problem types of ACME mean here, and what the owner of the client, or the operator, does. If a type has no
 * text, this does not compile.
 */
export const problemMeanings: { readonly [T in ProblemTypeOf<AcmeError>]: Meaning } = {
  malformed: [
    "The request does not conform to the protocol, or it asks for something that does not exist.",
    "Read the detail of the problem; if the client works elsewhere, look for a proxy that changes requests.",
    "reference/protocol.md"
  ],
  badNonce: [
    "The request has no nonce, or its nonce is used, unknown or too old.",
    "Do nothing: clients send the request again with the nonce of the answer. If they never succeed, raise `nonce.ttl_seconds`.",
    "reference/protocol.md"
  ],
  unauthorized: [
    "The account has no right to do this, the signature is wrong, a policy forbids it, or a challenge was answered wrongly.",
    "Read the detail of the problem; for a challenge, `acme-svc order show ORDER_ID` prints the cause.",
    "configure/challenges.md"
  ],
  accountDoesNotExist: [
    "No account has the key or the URL of the request.",
    "Let the client register again; after a restore, or for another profile, its old account does not exist.",
    "reference/protocol.md"
  ],
  badSignatureAlgorithm: [
    "The request is signed with an algorithm that the service does not accept.",
    "Let the client use one of the algorithms in the answer, or add it to `account.algorithms`.",
    "reference/protocol.md"
  ],
  badPublicKey: [
    "The key is weak, is known to others, or has a form that is not accepted.",
    "Let the client make a new key.",
    "reference/protocol.md"
  ],
  unsupportedContact: [
    "A contact of the account is not a mail address.",
    "Let the client give contacts that begin with `mailto:`, or none.",
    "reference/protocol.md"
  ],
  invalidContact: [
    "A contact of the account is no valid mail address.",
    "Let the client correct the address that the detail of the problem names.",
    "reference/protocol.md"
  ],
  userActionRequired: [
    "The client has not agreed to the terms of service of `meta.terms_of_service`.",
    "Let the client agree, for example with `--agree-tos` of certbot.",
    "reference/protocol.md"
  ],
  externalAccountRequired: [
    "The profile accepts new accounts only with a credential.",
    "Create one with `acme-svc eab create`, and give it to the owner of the client.",
    "configure/credentials.md"
  ],
  unsupportedIdentifier: [
    "The order asks for an identifier that is not a DNS name, but only DNS names are certified here.",
    "Let the client order only DNS names.",
    "reference/protocol.md"
  ],
  invalidProfile: [
    "The order asks for a certificate profile (a kind of certificate) that is not offered.",
    "`acme-svc kinds list` shows the kinds; let the client ask for one of them, or for none.",
    "configure/kinds.md"
  ],
  rejectedIdentifier: [
    "The policy, the credential of the account, the name constraints of the CA or the upstream refuses a name of the order.",
    "Try the name with `acme-svc filter explain --identifier NAME`; `filter_denied` in the log has the rule.",
    "configure/policy.md"
  ],
  compound: [
    "Several names of the order were refused, each for a reason of its own.",
    "Read the subproblems, and look up the type of each one.",
    "reference/errors.md"
  ],
  alreadyReplaced: [
    "Another order replaces the same certificate already.",
    "Let the client order without naming the certificate that is replaced.",
    "clients/renewal.md"
  ],
  orderNotReady: [
    "The client has sent its CSR for an order that is not ready, was finalized before, or has expired.",
    "Let the client finish all authorizations first, or place a new order.",
    "reference/protocol.md"
  ],
  badCSR: [
    "The CSR does not fit the order, the kind of certificate or the policy.",
    "Try the CSR with `acme-svc kinds try FILE`, and let the client order again with another one.",
    "configure/kinds.md"
  ],
  alreadyRevoked: [
    "The certificate is revoked already.",
    "Do nothing.",
    "operate/revocation.md"
  ],
  badRevocationReason: [
    "The service or its upstream does not accept the reason of a revocation.",
    "Let the client revoke with another reason, or without a reason.",
    "operate/revocation.md"
  ],
  rateLimited: [
    "The client has reached a limit of this service or of its upstream; the detail says how long the limit lasts.",
    "Let the client wait as long as `Retry-After` says, or raise the key that the detail names.",
    "operate/runbooks/client-loops.md"
  ],
  serverInternal: [
    "The service could not do what was asked, and the client did not cause this.",
    "Find the records in the log that have the same `request_id`, or the id of the order.",
    "operate/runbooks/server-errors.md"
  ],
  connection: [
    "A validation could not connect to the host of a name, or could not read its answer.",
    "Open the port of the host to this service; `acme-svc order show ORDER_ID` prints the cause.",
    "configure/challenges.md"
  ],
  dns: [
    "A validation could not look up the TXT record of a name.",
    "Check the zone and `dns.resolver`; `acme-svc order show ORDER_ID` prints the cause.",
    "configure/challenges.md"
  ],
  incorrectResponse: [
    "A validation has found a TXT record or a certificate, but not the right one.",
    "For dns-01, wait until all servers of the zone have the record; for tls-alpn-01, make sure that the client itself answers. Then let it order again.",
    "configure/challenges.md"
  ],
  tls: [
    "The host of a name did not speak the protocol of tls-alpn-01 at its port.",
    "Make sure that the client itself answers there, and that no proxy in front of it terminates TLS.",
    "configure/challenges.md"
  ],
  caa: [
    "A CAA record of a name forbids the upstream to certify it.",
    "Let the owner of the name add the upstream to the record.",
    "configure/signers.md"
  ]
}
