import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of challenges and their validation. */
export const challengeMeanings = {
  challenge_validation_requested: "A client has said that its challenge can be validated.",
  challenge_trigger_rate_limited: [
    "An account has too many validations in progress; the client got a refusal that says how long to wait.",
    "Let the client wait, or raise `challenge.max_in_flight_per_account`.",
    "configure/challenges.md"
  ],
  challenge_validation_enqueue_failed: [
    "A validation could not be put into the queue, so the client has to ask again.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  challenge_validated: "A client has proven that it controls a name.",
  challenge_failed: [
    "A client has not proven that it controls a name, so the order has ended.",
    "Find the order with `acme-svc order list --identifier NAME`; `acme-svc order show ORDER_ID` prints the cause and the next step.",
    "configure/challenges.md"
  ],
  challenge_validation_failed: [
    "A validation has failed. The record has the reason, which is not sent to the client.",
    "Look up the reason in the document, and correct the host, its DNS record or the network.",
    "configure/challenges.md"
  ],
  challenge_validation_postponed: [
    "This host could not carry out a validation, and the client did not cause this; the service tries again by itself.",
    "Remove the cause that the record names, such as a lack of files or of memory.",
    "configure/challenges.md"
  ],
  challenge_validation_timeout: [
    "A validation did not finish in time; the error says what it was waiting for.",
    "Open the port of the host to this service, check `dns.resolver`, or raise `challenge.timeout_ms`.",
    "configure/challenges.md"
  ],
  challenge_validation_abandoned: [
    "A validation was given up, so the order has ended.",
    "Look at the error and at `acme-svc jobs list`, remove the cause, and let the client order again.",
    "configure/challenges.md"
  ],
  challenge_validation_bypassed: [
    "A profile accepts every challenge without a check, so everybody can get a certificate for any name.",
    "Set `challenge.bypass` to false, unless this is a test.",
    "configure/challenges.md"
  ],
  challenge_verdict_superseded: [
    "Before the result of a validation was stored, the authorization had already got another result, so this one was discarded.",
    "Do nothing; another process, the client or an operator came first."
  ],
  challenge_address_denied: [
    "A name has an address to which validations must not connect.",
    "Correct the DNS record of the name, or change `challenge.denied_addresses` or `challenge.allowed_addresses`.",
    "configure/challenges.md"
  ],
  challenge_http_01_loaded: "The host of a name has answered the request for the token.",
  challenge_http_01_redirect: "The host of a name has redirected the request for the token.",
  challenge_http_01_matched: "The host of a name has answered with the right token.",
  challenge_http_01_mismatch: [
    "The host of a name has answered, but not with the right token.",
    "Make sure that the request reaches the client and not another site; at the level debug the log has the answer.",
    "configure/challenges.md"
  ],
  challenge_http_01_mismatch_body: "The record has the beginning of a wrong answer, which the host of a name has sent.",
  challenge_dns_01_matched: "The zone of a name has the right TXT record.",
  challenge_dns_01_mismatch: [
    "The zone of a name has no TXT record with the right value.",
    "Remove old values, wait until all servers of the zone have the right one, and then let the client order again.",
    "configure/challenges.md"
  ],
  challenge_tls_alpn_01_matched: "The host of a name has shown the right validation certificate.",
  challenge_tls_alpn_01_mismatch: [
    "The host of a name has not shown the right validation certificate.",
    "Make sure that the client itself answers at the port of tls-alpn-01, and that no proxy in front of it terminates TLS.",
    "configure/challenges.md"
  ]
} as const satisfies SomeMeanings
