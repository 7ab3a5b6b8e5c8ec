import type * as Redacted from "effect/Redacted"

/** The keys of `signer.relay`. */
export interface RelaySettings {
  readonly directory_url: string
  readonly account_key_path: string
  readonly contact: ReadonlyArray<string>
  readonly challenge_strategy: "bypass" | "http01" | "dns01"
  readonly poll_interval_ms: number
  readonly poll_timeout_secs: number
  readonly revocation_reasons: boolean
  readonly eab: { readonly kid: string; readonly hmac_key: Redacted.Redacted<string> }
  readonly dns01: {
    readonly challenge_alias: string
    readonly propagation: { readonly mode: "none" | "delay"; readonly delay_secs: number }
    readonly rfc2136: {
      readonly server: string
      readonly zone: string
      readonly tsig_key_name: string
      readonly tsig_key_secret: Redacted.Redacted<string>
      readonly tsig_algorithm: "" | "hmac-sha256" | "hmac-sha384" | "hmac-sha512"
    }
  }
}
