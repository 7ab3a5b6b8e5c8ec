import type { ChallengeFailed, IssuanceFailed } from "./AcmeError.ts"
import type { IssueFailureCause } from "./Audit.ts"
import type { ProblemTypeOf } from "./Problem.ts"
import type { ProblemDocument } from "./ProblemDocument.ts"
import type { ValidationCause, ValidationReason } from "./ValidationCause.ts"

/** Why an order failed, in plain words. */
export interface Explanation {
  readonly summary: string
  readonly nextStep: string
  /** The suffix of the problem type. */
  readonly problemType: string
  readonly requestId?: string
}

/** What is still known about the failure. */
export interface Evidence {
  readonly orderError: ProblemDocument | undefined
  readonly challengeFailures: ReadonlyArray<{
    readonly error: ProblemDocument
    /** The cause of a failed validation. Absent if the failure was stored by a version that stored no causes. */
    readonly cause: ValidationCause | undefined
  }>
  /** The `cause` in the last audit row about the failure. */
  readonly cause: string | undefined
  readonly requestId: string | undefined
}

type Words = readonly [summary: string, nextStep: string]

const challengeWords: { readonly [T in ProblemTypeOf<ChallengeFailed>]: Words } = {
  connection: [
    "The service could not reach the name on its validation port.",
    "Open the port to this service; its log has the address and the cause."
  ],
  unauthorized: [
    "The name answered, but not with the expected token.",
    "Check that the request reaches the client, not a default site or a redirect."
  ],
  dns: ["The name, or its TXT record, could not be looked up.", "Check the zone and dns.resolver."],
  incorrectResponse: [
    "A TXT value or validation certificate was found, but not the right one.",
    "Remove old values, wait until all servers of the zone have the new one, and order again."
  ],
  tls: [
    "The host does not speak the validation protocol.",
    "Check that the client answers on the tls-alpn-01 port."
  ],
  serverInternal: ["Validation could not be carried out here.", "See the job's last error; order again."]
}

const answersOtherwise = "Check that the request reaches the client, not a default site or a redirect."
const showsAnother = "Check that the client answers on the tls-alpn-01 port, and nothing in front of it."

const writesWrong =
  "The certificate does not conform to RFC 8737; use a newer version of the client, or another challenge type."

const reasonWords: { readonly [R in ValidationReason]: Words } = {
  resolve_failed: [
    "The name could not be looked up.",
    "The cause has the answer: for ENOTFOUND, check the zone; for ESERVFAIL, EREFUSED or ETIMEOUT, check dns.resolver and the servers of the zone."
  ],
  no_address: ["The name has no address.", "Add an A or AAAA record, or validate by dns-01."],
  address_denied: [
    "The service must not connect to any address of the name.",
    "The cause has each address and its rule; change the record, or the policy of addresses under challenge."
  ],
  connect_failed: [
    "No address of the name took a connection on the validation port.",
    "The cause has each address; open the port there to this service."
  ],
  tls_failed: [
    "A redirect led to a host that does not speak TLS.",
    "The cause has the address; repair that host, or do not redirect to it."
  ],
  exchange_failed: [
    "The host accepted the connection, but did not answer with HTTP.",
    "The cause has the address; check which program listens there."
  ],
  redirect_refused: [
    "The name redirected to a URL that the service must not follow.",
    "The cause has the URL and the rule; have the token's path answered without a redirect."
  ],
  redirect_loop: ["The name redirects in a circle.", "Have the token's path answered without a redirect."],
  redirect_limit: ["The name redirected too often.", "Have the token's path answered without a redirect."],
  timeout: [
    "The validation exceeded its time limit.",
    "The cause says what the service waited for; check whether a firewall drops packets, and check challenge.timeout_ms."
  ],
  status: ["The name answered with a status that is not 200.", answersOtherwise],
  body_too_large: ["The name answered with much more than a token.", answersOtherwise],
  body_mismatch: ["The name answered, but not with the expected token.", answersOtherwise],
  txt_absent: [
    "The name has no TXT record.",
    "The cause has the name that was looked up; publish the record there, wait until all servers of the zone have it, and order again."
  ],
  txt_blanks: [
    "A TXT record of the name has blanks or quotation marks around the expected value.",
    "Remove them where the record is written; some forms add quotation marks by themselves."
  ],
  txt_mismatch: [
    "No TXT record of the name has the expected value.",
    "Remove old values, wait until all servers of the zone have the new one, and order again."
  ],
  handshake_failed: ["The host does not speak TLS on the validation port.", showsAnother],
  alpn_refused: ["The host does not speak the validation protocol.", showsAnother],
  certificate_absent: ["The host showed no validation certificate.", showsAnother],
  certificate_undecodable: ["The host showed a certificate that cannot be read.", showsAnother],
  not_self_signed: ["The host showed a certificate that is not for a validation.", showsAnother],
  san_absent: ["The host showed a certificate without names.", showsAnother],
  extension_absent: ["The host showed a certificate that is not for a validation.", showsAnother],
  extension_repeated: ["The validation certificate has its proof twice.", writesWrong],
  extension_not_critical: ["The proof of the validation certificate is not marked critical.", writesWrong],
  extension_undecodable: ["The proof of the validation certificate cannot be read.", writesWrong],
  extension_length: ["The proof of the validation certificate is not a SHA-256 digest.", writesWrong],
  san_mismatch: ["The host showed a certificate of other names.", showsAnother],
  extension_mismatch: ["The host showed a validation certificate of another order.", showsAnother],
  given_up: ["Validation could not be carried out here.", "The cause has what failed last; order again."]
}

const upstreamHas = "`acme-svc upstream order show` shows what is known about it"

const causeWords: { readonly [C in IssueFailureCause]: Words } = {
  bad_csr: [
    "The signing request does not fit the order or the key policy.",
    "The message names the point; create a new request."
  ],
  filter_denied: [
    "The policy of the profile refused the order.",
    "Run `acme-svc filter explain` with the same client and names; it says which rule refuses them."
  ],
  filter_undecided: [
    "The policy could not be evaluated.",
    "The record filter_undecided in the log has the cause; remove it, and order again."
  ],
  authority_withdrawn: [
    "The account or an authorization was deactivated, or the account was blocked, before signing.",
    "`acme-svc account show` shows a block; order again with an account that may order."
  ],
  issuer_compromised: [
    "The CA that signed the certificate was declared compromised before the certificate was stored.",
    "`acme-svc crl list` shows which CA issues; put a new CA in place, then order again."
  ],
  credential_denied: [
    "The credential of the account does not permit the order any more.",
    "`acme-svc eab show` shows what the credential may ask for; change that, or order within it."
  ],
  kind_removed: [
    "The configuration no longer has the kind of certificate that was ordered.",
    "`acme-svc kinds list` shows the kinds that there are; order again with one of them."
  ],
  attempts_exhausted: ["The signer failed each time.", "See the job's last error; repair the backend, order again."],
  cancelled: ["An operator cancelled the job.", "The audit trail says who it was."],
  order_expired: [
    "The order's lifetime ended while it waited.",
    "Look for missing workers at that time; `acme-svc worker list` shows those there are now."
  ],
  chain_rejected: [
    "The signer returned a certificate that is not what was asked for.",
    "The job's last error names the check that failed and what to do; repair the script or the upstream."
  ],
  lint_failed: ["The signer made a certificate that fails the checks.", "Report this with the job's last error."],
  script_failed: ["The signing script failed each time.", "See the job's last error; repair it, order again."],
  upstream_refused: [
    "The upstream authority refused the order.",
    `The message quotes its answer; ${upstreamHas}.`
  ],
  poll_timeout: [
    "The upstream authority did not issue the certificate in the time that the order had.",
    `${upstreamHas}; look at the upstream, and for missing workers at that time, then order again.`
  ]
}

type OwnType = "badCSR" | "invalidProfile" | "unauthorized" | "serverInternal"

const ownWords: { readonly [T in OwnType]: Words } = {
  badCSR: causeWords.bad_csr,
  invalidProfile: causeWords.kind_removed,
  unauthorized: causeWords.authority_withdrawn,
  serverInternal: [
    "The certificate could not be issued here, and the audit row that says why is gone.",
    "Look for the order's id in the log of that time; order again."
  ]
}

/** All refusals by an upstream have the same cause, so the problem type, which says more, selects these words. */
const upstreamWords: { readonly [T in Exclude<ProblemTypeOf<IssuanceFailed>, OwnType>]: Words } = {
  rejectedIdentifier: [
    "The upstream authority refused a name of the order.",
    "The message quotes its answer; have the name allowed there, or order without it."
  ],
  unsupportedIdentifier: [
    "The upstream authority certifies no names of that kind.",
    "The message quotes its answer; order without the name, or have another profile sign it."
  ],
  malformed: [
    "The upstream authority considers a name of the order malformed.",
    "The message quotes its answer; order without the name."
  ],
  compound: [
    "The upstream authority refused several names of the order.",
    "The message quotes its answer for each; have them allowed there, or order without them."
  ],
  caa: [
    "A CAA record of a name forbids the upstream authority to issue.",
    "Let the owner of the name add the authority to the record, or remove the record."
  ],
  badPublicKey: [
    "The upstream authority does not take the key of the signing request.",
    "The message quotes its answer; order again with a key of another kind or size."
  ],
  rateLimited: [
    "The upstream authority limits the requests of this service.",
    "If the upstream has said until when, the message has the time; order again after that, or have the limit raised there."
  ]
}

const unknown: Words = [
  "The service has no simpler explanation for this.",
  "The problem document is all that is known."
]

/**
 * Returns the words for a cause or a problem type. Returns undefined if this version does not know the word, because a
 * newer version may have stored it (docs/contribute/decisions/compatibility.md, "Neighbours").
 */
const wordsOf = (words: { readonly [word: string]: Words }, word: string | undefined): Words | undefined =>
  word !== undefined && Object.hasOwn(words, word) ? words[word] : undefined

const suffixOf = ({ type = "" }: ProblemDocument): string => type.slice(type.lastIndexOf(":") + 1)

/** Explains why an order is `invalid`. Returns undefined if no failure is recorded. */
export const explainEnd = ({ cause, challengeFailures, orderError, requestId }: Evidence): Explanation | undefined => {
  const [failure] = challengeFailures
  const found = failure?.error ?? orderError
  if (found === undefined) return undefined
  const problemType = suffixOf(found)
  const words = failure !== undefined
    ? wordsOf(reasonWords, failure.cause?.reason) ?? wordsOf(challengeWords, problemType)
    : wordsOf(upstreamWords, problemType) ?? wordsOf(causeWords, cause) ?? wordsOf(ownWords, problemType)
  const [summary, nextStep] = words ?? unknown
  return { summary, nextStep, problemType, ...(requestId === undefined ? {} : { requestId }) }
}
