import { Effect } from "effect"
import type { Scope } from "effect"
import type { DnsUpdate, UpdateServer } from "../../../kernel/net/DnsUpdate.ts"
import { isInZone } from "../../../kernel/net/Zone.ts"
import { emit } from "../../../kernel/telemetry/EventLog.ts"
import { keyAuthorizationDigest } from "../../../pki/jose/KeyAuthorization.ts"
import { UpstreamRefused, UpstreamUnavailable } from "./UpstreamFailed.ts"

/* How the relay proves to the upstream that it may have a name (docs/signers.md, "An upstream ACME CA"). */

/** A challenge the upstream offers: types unknown here and absent tokens are possible. */
export interface UpstreamChallenge {
  readonly type: string
  readonly url: unknown
  readonly token: string | undefined
  readonly status: string
}

/** What is to be proved. */
export interface Proof {
  /** The base name: no wildcard. */
  readonly name: string
  readonly isWildcard: boolean
  readonly keyAuthorization: string
  readonly token: string
}

/** One way to prove names. What it has put in place is taken away again with the scope, interrupted or not. */
export interface Strategy {
  /** The challenge it answers of those offered; fails where it is not among them. */
  readonly choose: (
    name: string,
    isWildcard: boolean,
    offered: ReadonlyArray<UpstreamChallenge>
  ) => Effect.Effect<UpstreamChallenge, UpstreamRefused>
  readonly prepare: (proof: Proof) => Effect.Effect<void, UpstreamRefused | UpstreamUnavailable, Scope.Scope>
  /** Takes away what an attempt that was killed has left in place, where nothing else does. */
  readonly clear?: (proof: Proof) => Effect.Effect<void>
}

const refuse = (detail: string) => new UpstreamRefused({ detail, status: undefined, type: "strategy" })

const only = (type: string, strategy: string): Strategy["choose"] => (name, _, offered) => {
  const found = offered.find((one) => one.type === type && one.token !== undefined)
  return found === undefined
    ? refuse(`the upstream offers no ${type} for ${name}, and challenge_strategy is ${strategy}`)
    : Effect.succeed(found)
}

/** The upstream is told that the names are validated: whatever it offers is triggered, and nothing put in place. */
export const bypass: Strategy = {
  choose: (name, _, offered) => {
    const [first] = ["http-01", "dns-01", "tls-alpn-01"].flatMap((type) => offered.filter((one) => one.type === type))
    const found = first ?? offered[0]
    return found === undefined ? refuse(`the upstream offers no challenge for ${name}`) : Effect.succeed(found)
  },
  prepare: () => Effect.void
}

/** Where key authorizations are kept that every process of the acme role serves. */
export interface TokenStore {
  readonly put: (token: string, keyAuthorization: string) => Effect.Effect<void, UpstreamUnavailable>
  readonly remove: (token: string) => Effect.Effect<void>
}

/** The key authorization is served by the root router; a forwarder brings the upstream's request there. */
export const http01 = (tokens: TokenStore): Strategy => ({
  choose: (name, isWildcard, offered) =>
    isWildcard
      ? refuse(`http01 cannot prove *.${name}; a wildcard needs challenge_strategy dns01`)
      : only("http-01", "http01")(name, isWildcard, offered),
  prepare: ({ keyAuthorization, token }) =>
    Effect.asVoid(Effect.acquireRelease(tokens.put(token, keyAuthorization), () => tokens.remove(token)))
})

/** `signer.relay.dns01`, read. */
export interface Dns01Settings {
  readonly server: UpdateServer
  /** Lower case, with a final dot. */
  readonly zone: string
  /** Name in whose place every challenge is published; empty for the names' own. */
  readonly alias: string
  /** Seconds to wait before the upstream is asked to look; 0 for none. */
  readonly delaySeconds: number
}

/** The digest is published as a TXT value, and taken away by its value. */
export const dns01 = (updates: DnsUpdate["Type"], settings: Dns01Settings): Strategy => {
  const { alias, delaySeconds, server, zone } = settings
  const placeOf = (name: string) => `_acme-challenge.${alias === "" ? name : alias}`
  const change = (action: "add" | "delete", { keyAuthorization, name }: Proof) => {
    const value = keyAuthorizationDigest(keyAuthorization).toString("base64url")
    return updates.update(server, { action, zone, name: placeOf(name), value })
  }
  const clear = (proof: Proof) =>
    Effect.catchAll(
      change("delete", proof),
      ({ detail: error }) => emit("upstream_record_left", { identifier: placeOf(proof.name), error })
    )
  return {
    choose: only("dns-01", "dns01"),
    clear,
    prepare: (proof) =>
      Effect.gen(function*() {
        const at = placeOf(proof.name)
        if (!isInZone(at, zone)) return yield* refuse(`${at} is not in the zone ${zone}`)
        // Before it is made: an update nobody answered may have been made all the same.
        yield* Effect.addFinalizer(() => clear(proof))
        yield* Effect.mapError(
          change("add", proof),
          ({ detail }) =>
            new UpstreamUnavailable({ detail: `the TXT record ${at} was not made: ${detail}`, status: undefined })
        )
        if (delaySeconds > 0) yield* Effect.sleep(`${delaySeconds} seconds`)
      })
  }
}
