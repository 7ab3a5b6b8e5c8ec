import type { ProblemDocument } from "./Problem.ts"

/** Why an order failed, in plain words (decisions/panel.md, "Why an order failed"). */
export interface Explanation {
  readonly summary: string
  readonly nextStep: string
  /** Suffix of the problem type. */
  readonly problemType: string
  readonly requestId?: string
}

/** What is still known of the failure. */
export interface Evidence {
  readonly orderError: ProblemDocument | undefined
  readonly challengeErrors: ReadonlyArray<ProblemDocument>
  /** The `cause` of the last audit row about it. */
  readonly cause: string | undefined
  readonly requestId: string | undefined
}

type Words = readonly [summary: string, nextStep: string]

const challengeWords: { readonly [type: string]: Words } = {
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
    "Wait for propagation, remove stale values, order again."
  ],
  tls: [
    "The host does not speak the validation protocol.",
    "Check that the client answers on the tls-alpn-01 port."
  ],
  serverInternal: ["Validation could not be carried out here.", "See the job; order again."]
}

const causeWords: { readonly [cause: string]: Words } = {
  attempts_exhausted: ["The signer failed each time.", "See the job's last error; repair the backend, order again."],
  script_failed: ["The signing script failed each time.", "See the job's last error; repair it, order again."],
  lint_failed: ["The signer made a certificate that fails the checks.", "Report it with the job's last error."],
  chain_rejected: [
    "The signer returned a certificate that is not what was asked for.",
    "The job's last error names the check that failed and what to do; repair the script or the upstream."
  ],
  order_expired: ["The order's lifetime ended while it waited.", "Look for missing workers at that time."],
  cancelled: ["An operator cancelled the job.", "The audit row names who."],
  filter_undecided: ["The policy could not be evaluated.", "The log line filter_undecided has the cause."]
}

const orderWords: { readonly [type: string]: Words } = {
  badCSR: [
    "The signing request does not fit the order or the key policy.",
    "The message names the point; create a new request."
  ],
  unauthorized: [
    "The account or an authorization was deactivated before signing.",
    "Order again with a valid account."
  ]
}

const unknown: Words = ["The service has no plainer words for this.", "The problem document is all that is known."]

const suffixOf = ({ type = "" }: ProblemDocument): string => type.slice(type.lastIndexOf(":") + 1)

/** The explanation of an `invalid` order; undefined when nothing is recorded of its failure. */
export const explain = ({ cause, challengeErrors, orderError, requestId }: Evidence): Explanation | undefined => {
  const [challengeError] = challengeErrors
  const found = challengeError ?? orderError
  if (found === undefined) return undefined
  const problemType = suffixOf(found)
  const words = challengeError === undefined
    ? (problemType === "serverInternal" ? causeWords[cause ?? ""] : orderWords[problemType])
    : challengeWords[problemType]
  const [summary, nextStep] = words ?? unknown
  return { summary, nextStep, problemType, ...(requestId === undefined ? {} : { requestId }) }
}
