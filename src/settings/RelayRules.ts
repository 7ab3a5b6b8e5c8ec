import * as Redacted from "effect/Redacted"
import { isInZone } from "../engine/net/Zone.ts"
import type { Finding, Subject } from "./Finding.ts"

/** Returns findings about keys that a relay requires, and about keys that contradict each other. */
export const relayFindings = ({ config, written }: Subject): ReadonlyArray<Finding> =>
  config.profiles.filter(({ signer }) => signer.backend === "relay").flatMap(({ name, signer: { relay } }) => {
    const at = (key: string) => written(`profiles.${name}.signer.${key}`)
    const finding = (key: string, message: string, ...more: ReadonlyArray<string>): Finding => ({
      key: at(`relay.${key}`),
      message,
      involves: [at(`relay.${key}`), at("backend"), ...more.map((one) => at(`relay.${one}`))]
    })
    const { challenge_strategy, dns01, eab, poll_timeout_secs } = relay
    const { challenge_alias, propagation, rfc2136 } = dns01
    const needed = (["server", "zone", "tsig_key_name", "tsig_key_secret"] as const).filter((key) => {
      const value = rfc2136[key]
      return (Redacted.isRedacted(value) ? Redacted.value(value) : value) === ""
    })
    const isDns = challenge_strategy === "dns01"
    const hasKey = Redacted.value(eab.hmac_key) !== ""
    return [
      ...relay.directory_url !== "" ? [] : [finding("directory_url", `must be set while ${at("backend")} is "relay"`)],
      ...isDns
        ? needed.map((key) =>
          finding(
            `dns01.rfc2136.${key}`,
            `must be set while ${at("relay.challenge_strategy")} is "dns01"`,
            "challenge_strategy"
          )
        )
        : [],
      ...isDns && challenge_alias !== "" && rfc2136.zone !== "" && !isInZone(challenge_alias, rfc2136.zone)
        ? [finding("dns01.challenge_alias", `must be in the zone ${rfc2136.zone}`, "dns01.rfc2136.zone")]
        : [],
      ...isDns && propagation.mode === "delay" && propagation.delay_secs === 0
        ? [finding("dns01.propagation.delay_secs", "must not be 0 while mode is \"delay\"", "dns01.propagation.mode")]
        : [],
      ...isDns && propagation.mode === "delay" && propagation.delay_secs >= poll_timeout_secs
        ? [finding(
          "dns01.propagation.delay_secs",
          `must be less than poll_timeout_secs, which is ${poll_timeout_secs}`,
          "poll_timeout_secs"
        )]
        : [],
      ...(eab.kid !== "") === hasKey ? [] : [
        eab.kid === "" ? finding("eab.kid", "must be set when hmac_key is set", "eab.hmac_key") : finding(
          "eab.hmac_key",
          "must be set when kid is set",
          "eab.kid"
        )
      ]
    ]
  })
