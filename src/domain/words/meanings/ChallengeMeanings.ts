import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of challenges and their validation. */
export const challengeMeanings = {
  challenge_validation_requested: "A client has said that its challenge can be validated.",
  challenge_trigger_rate_limited: [
    "An account has too many validations under way, and the client got a refusal with a time to wait.",
    "Let the client wait, or raise `challenge.max_in_flight_per_account`.",
    "configure/challenges.md"
  ],
  challenge_validation_enqueue_failed: [
    "A validation could not be put into the queue, and the client has to ask again.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  challenge_validated: "A client has proven that it controls a name.",
  challenge_failed: [
    "A client has not proven a name, and the order has ended.",
    "Find the order with `acme-svc order list --identifier NAME`; `acme-svc order show ORDER_ID` prints the cause and the next step.",
    "configure/challenges.md"
  ],
  challenge_validation_failed: [
    "A validation has failed for the reason in the record, which the client does not get.",
    "Look the reason up in the document, and correct the host, its record or the network.",
    "configure/challenges.md"
  ],
  challenge_validation_postponed: [
    "A validation could not be carried out here, for a cause that is not the client's, and is tried again.",
    "Remove the cause that the record names, such as a lack of files or of memory.",
    "configure/challenges.md"
  ],
  challenge_validation_timeout: [
    "A validation did not finish in time; the error says for what it waited.",
    "Open the port of the host to this service, look at `dns.resolver`, or raise `challenge.timeout_ms`.",
    "configure/challenges.md"
  ],
  challenge_validation_abandoned: [
    "A validation was given up, and the order has ended.",
    "Look at the error and at `acme-svc jobs list`, remove the cause, and let the client order again.",
    "configure/challenges.md"
  ],
  challenge_validation_bypassed: [
    "A profile accepts every challenge without a check, so everybody gets any certificate.",
    "Turn `challenge.bypass` off, unless this is a test.",
    "configure/challenges.md"
  ],
  challenge_verdict_superseded: [
    "The authorization had ended before the result of its validation was stored, so the result was discarded.",
    "Do nothing; another process, the client or an operator was faster."
  ],
  challenge_address_denied: [
    "A name leads to an address to which validations do not connect.",
    "Correct the record of the name, or change `challenge.denied_addresses` or `challenge.allowed_addresses`.",
    "configure/challenges.md"
  ],
  challenge_http_01_loaded: "The host of a name has answered the request for the token.",
  challenge_http_01_redirect: "The host of a name has redirected the request for the token.",
  challenge_http_01_matched: "The host of a name has answered with the right token.",
  challenge_http_01_mismatch: [
    "The host of a name has answered, and not with the right token.",
    "See that the request reaches the client and not another site; at the level debug the log has the answer.",
    "configure/challenges.md"
  ],
  challenge_http_01_mismatch_body: "The beginning of the wrong answer of the host of a name.",
  challenge_dns_01_matched: "The zone of a name has the right TXT record.",
  challenge_dns_01_mismatch: [
    "The zone of a name has no TXT record with the right value.",
    "Wait until all servers of the zone have the record, and remove old values; then let the client order again.",
    "configure/challenges.md"
  ],
  challenge_tls_alpn_01_matched: "The host of a name has shown the right validation certificate.",
  challenge_tls_alpn_01_mismatch: [
    "The host of a name has not shown the right validation certificate.",
    "See that the client answers at the port of tls-alpn-01, and that no proxy ends TLS before it.",
    "configure/challenges.md"
  ]
} as const satisfies SomeMeanings
