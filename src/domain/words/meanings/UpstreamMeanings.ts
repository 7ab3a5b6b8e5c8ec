import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of relays, and of programs that sign. */
export const upstreamMeanings = {
  signer_relay_eab_secret_in_config: [
    "The configuration still has the key of the credential for the upstream, which only the registration needs.",
    "Remove `signer.relay.eab.hmac_key` when the account is registered.",
    "configure/signers.md"
  ],
  upstream_registered: "A relay has registered its account at the upstream.",
  upstream_account_key_permissive: [
    "Other users of this host can read the key of the account at the upstream.",
    "Remove the rights of other users with `chmod 0600`, and replace the key with `acme-svc upstream rollover` if others may have read it.",
    "configure/signers.md"
  ],
  upstream_account_reused: "A relay uses the account at the upstream that it had registered before.",
  upstream_request_failed: [
    "The upstream could not be reached, or its answer could not be understood.",
    "Look at the error; `acme-svc config check --online` asks the upstream.",
    "operate/runbooks/upstream-away.md"
  ],
  upstream_order_lost: [
    "A relay does not know whether its upstream has made an order, so it orders again.",
    "Do nothing; if there is a first order, it expires unused.",
    "configure/signers.md"
  ],
  upstream_replaces_refused: [
    "The upstream does not accept the certificate that an order replaces, so the relay has ordered without naming it.",
    "Do nothing, unless the upstream limits orders that replace no certificate.",
    "clients/renewal.md"
  ],
  upstream_record_left: [
    "A relay could not remove its TXT record from a zone after the validation.",
    "Remove the TXT record at the name that this record gives, and permit the relay to delete records in the zone.",
    "configure/signers.md"
  ],
  upstream_bad_nonce_retry: "The upstream did not accept a nonce, so the relay has asked again with another one.",
  upstream_relay_succeeded: "A relay has got a certificate from its upstream.",
  upstream_relay_failed: [
    "A relay has got no certificate from its upstream; unless the failure is final, the service tries again by itself.",
    "Look at the error; `acme-svc upstream order show ORDER_ID` shows what the upstream says.",
    "operate/runbooks/upstream-away.md"
  ],
  http_01_responder_mounted: "The listener answers the challenges that the upstream of a relay validates.",
  http_01_token_store_failed: [
    "The token for a validation by the upstream could not be stored; the service tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  signer_script_failed: [
    "The program that signs has failed, or has printed something that cannot be used.",
    "Look at the error and the output, and correct the program of `signer.custom.script_path`.",
    "configure/signers.md"
  ],
  signer_script_timeout: [
    "The program that signs did not end in time, and was killed. Or it could not begin in time, because others ran.",
    "Find out what the program waits for, or raise `signer.custom.timeout_ms`.",
    "operate/runbooks/script-hangs.md"
  ]
} as const satisfies SomeMeanings
