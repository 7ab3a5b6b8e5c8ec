import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of requests, signatures, nonces and accounts. */
export const requestMeanings = {
  request_completed: [
    "A request was answered with the status in the record.",
    "For a status of 500 and above, find the other records with the same `request_id`.",
    "operate/debugging.md"
  ],
  request_refused: [
    "A client got a problem document: the reason names the failure, and the detail is the sentence that the client got.",
    "If the owner of the client asks for the reason, look it up in the document.",
    "reference/errors.md"
  ],
  request_rate_limited: [
    "A client has reached a limit of the configuration, and is refused until a later time.",
    "Find the client that asks too often, or raise the limit of `[limits]` that the record names.",
    "operate/runbooks/client-loops.md"
  ],
  request_shed: [
    "The service had too many requests at once, so a client got 503.",
    "Find out what makes the service slow, or raise `server.max_concurrent_requests`.",
    "operate/runbooks/overload.md"
  ],
  request_pipeline_cut: [
    "A client sent many requests on one connection without waiting for answers, and the connection was closed.",
    "If the program at the address in the record is yours, make it wait for each answer."
  ],
  request_deadline_exceeded: [
    "A request took longer than `server.request_timeout_ms`, so the client got 503.",
    "Find out what was slow, or raise `server.request_timeout_ms`.",
    "operate/runbooks/overload.md"
  ],
  request_handler_panicked: [
    "A defect of this program, or of a template of yours, has ended a request, and its sender got 500.",
    "If the error names a template, correct the template; otherwise report the record to the authors of the service.",
    "operate/runbooks/server-errors.md"
  ],
  request_id_header_invalid: "A request had an `x-request-id` that cannot be used, so the request got a new id.",
  server_connection_refused: [
    "A listener has too many connections, or too many from one address, and has closed a new one.",
    "Find the address in the record; if it is a proxy of yours, add it to `filter.trusted_proxies`.",
    "operate/runbooks/overload.md"
  ],
  server_proxy_untrusted: [
    "A host that is not a trusted proxy sends the addresses of many clients in its headers, but the service ignores them.",
    "If the host is a proxy of yours, add it to `filter.trusted_proxies`.",
    "configure/policy.md"
  ],
  jws_rejected: [
    "A request is not signed in the way that the protocol requires.",
    "Look at the reason: the client has a fault, or a proxy in between changes its requests.",
    "reference/protocol.md"
  ],
  jws_signature_invalid: [
    "The signature of a request does not fit the key of its account.",
    "Find out whether the client uses the key with which it registered.",
    "reference/protocol.md"
  ],
  nonce_rejected:
    "A request had no nonce, or one that this service did not make or that is too old; clients ask again.",
  nonce_replayed: [
    "A request had a nonce that was used before or is too old.",
    "Do nothing if this is rare, because clients ask again; otherwise look for a proxy that repeats requests.",
    "reference/protocol.md"
  ],
  key_change_completed: "A client has replaced the key of its account.",
  key_change_rejected: [
    "A client could not replace the key of its account.",
    "Look at the reason; the account keeps its key.",
    "reference/protocol.md"
  ],
  account_request_refused: [
    "A client used an account that is deactivated or revoked, or wanted to order with a blocked account.",
    "If the client should get certificates, let it register a new account, or unblock its account with `acme-svc account unblock ID`.",
    "configure/policy.md"
  ],
  account_created: "A client has registered an account.",
  account_found: "A client has asked for its account, and got it.",
  account_key_refused: [
    "A client wanted to register a key that must not be used, such as a weak key or one that others know.",
    "Let the client make a new key.",
    "reference/protocol.md"
  ],
  account_updated: "A client has changed the contacts of its account.",
  account_deactivated: "A client has deactivated its account.",
  eab_verified: "A client has proven a credential for its account.",
  eab_rejected: [
    "The credential that a client gave for its new account was refused.",
    "Look up the reason in the document; `acme-svc eab show KID` shows the credential.",
    "configure/credentials.md"
  ]
} as const satisfies SomeMeanings
