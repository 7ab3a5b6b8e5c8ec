import { isInZone } from "../../../engine/net/Zone.ts"
import type { RelaySettings } from "./RelaySettings.ts"

/* Determines which names a relay can prove to its upstream (docs/configure/signers.md, "An upstream ACME CA"). */

/**
 * Returns the name in the DNS at which the proof of a name is published. `alias` is
 * `signer.relay.dns01.challenge_alias`.
 */
export const publishedName = (name: string, alias: string): string => `_acme-challenge.${alias === "" ? name : alias}`

/**
 * Returns why the relay can never prove a name, as a sentence for the client. Returns `undefined` if it can. A wildcard
 * is given with its `*.`.
 */
export const unprovable = (
  { challenge_strategy, dns01 }: Pick<RelaySettings, "challenge_strategy" | "dns01">,
  name: string
): string | undefined => {
  if (challenge_strategy === "http01" && name.startsWith("*.")) {
    return "The relay of this profile proves names by http01, which cannot prove a wildcard; that needs challenge_strategy dns01."
  }
  const published = publishedName(name.replace(/^\*\./, ""), dns01.challenge_alias)
  return challenge_strategy === "dns01" && !isInZone(published, dns01.rfc2136.zone)
    ? `The authority behind this server is shown a name by the record ${published}, which this server cannot publish.`
    : undefined
}
