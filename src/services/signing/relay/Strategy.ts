import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { keyAuthorizationDigest } from "../../../crypto/jose/KeyAuthorization.ts"
import { emit } from "../../../domain/words/Log.ts"
import type { DnsUpdate, UpdateServer } from "../../../engine/net/DnsUpdate.ts"
import { isInZone } from "../../../engine/net/Zone.ts"
import { publishedName } from "./Provable.ts"
import { UpstreamRefused, UpstreamUnavailable } from "./UpstreamFailed.ts"

/*
 * The ways in which the relay proves control of a name to the upstream (docs/configure/signers.md, "An upstream ACME
 * CA").
 */

/** A challenge that the upstream offers. Its type may be unknown here, and its token may be absent. */
export interface UpstreamChallenge {
  readonly type: string
  readonly url: unknown
  readonly token: string | undefined
  readonly status: string
}

/** The proof that the upstream will check. */
export interface Proof {
  /** The base name, never a wildcard. */
  readonly name: string
  readonly isWildcard: boolean
  readonly keyAuthorization: string
  readonly token: string
}

/**
 * One way to prove control of names. At the end of the scope, even after an interruption, the strategy removes the
 * proof that it published. If another attempt has taken over the order in the meantime, the proof stays, because that
 * attempt uses and removes the same record.
 */
export interface Strategy {
  /** Chooses one of the offered challenges that the strategy can answer. Fails if none is offered. */
  readonly choose: (
    name: string,
    isWildcard: boolean,
    offered: ReadonlyArray<UpstreamChallenge>
  ) => Effect.Effect<UpstreamChallenge, UpstreamRefused>
  readonly prepare: (proof: Proof) => Effect.Effect<void, UpstreamRefused | UpstreamUnavailable, Scope.Scope>
  /** Removes what a killed attempt left behind. Absent if the remains are removed in another way. */
  readonly clear?: (proof: Proof) => Effect.Effect<void>
}

const refuse = (detail: string) => new UpstreamRefused({ detail, status: undefined, type: "strategy" })

const only = (type: string, strategy: string): Strategy["choose"] => (name, _, offered) => {
  const found = offered.find((one) => one.type === type && one.token !== undefined)
  return found === undefined
    ? refuse(`the upstream offers no ${type} for ${name}, and challenge_strategy is ${strategy}`)
    : Effect.succeed(found)
}

/** Triggers any challenge that the upstream offers, without publishing a proof. */
export const bypass: Strategy = {
  choose: (name, _, offered) => {
    const [first] = ["http-01", "dns-01", "tls-alpn-01"].flatMap((type) => offered.filter((one) => one.type === type))
    const found = first ?? offered[0]
    return found === undefined ? refuse(`the upstream offers no challenge for ${name}`) : Effect.succeed(found)
  },
  prepare: () => Effect.void
}

/** The store of key authorizations. Every process with the acme role serves them. */
export interface TokenStore {
  readonly put: (token: string, keyAuthorization: string) => Effect.Effect<void, UpstreamUnavailable>
  readonly remove: (token: string) => Effect.Effect<void>
}

const unlessTakenOver = (isTakenOver: Effect.Effect<boolean>, act: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.flatMap(isTakenOver, (is) => is ? Effect.void : act)

/**
 * Proves control by http-01. The root router serves the key authorization. A forwarder must send the upstream's request
 * to this service.
 */
export const http01 = (tokens: TokenStore, isTakenOver: Effect.Effect<boolean>): Strategy => ({
  choose: (name, isWildcard, offered) =>
    isWildcard
      ? refuse(`http01 cannot prove *.${name}; a wildcard needs challenge_strategy dns01`)
      : only("http-01", "http01")(name, isWildcard, offered),
  prepare: ({ keyAuthorization, token }) =>
    Effect.asVoid(Effect.acquireRelease(
      tokens.put(token, keyAuthorization),
      () => unlessTakenOver(isTakenOver, tokens.remove(token))
    ))
})

/** The keys of `signer.relay.dns01` after decoding. */
export interface Dns01Settings {
  readonly server: UpdateServer
  /** The zone in lower case, with a final dot. */
  readonly zone: string
  /** The name at which every challenge is published. If it is empty, challenges are published at the ordered names. */
  readonly alias: string
  /** How many seconds to wait before the upstream is asked to validate. 0 means that there is no wait. */
  readonly delaySeconds: number
}

/** Proves control by dns-01. Publishes the digest as a TXT record, and removes the record by its value. */
export const dns01 = (
  updates: DnsUpdate["Service"],
  settings: Dns01Settings,
  isTakenOver: Effect.Effect<boolean>
): Strategy => {
  const { alias, delaySeconds, server, zone } = settings
  const placeOf = (name: string) => publishedName(name, alias)
  const change = (action: "add" | "delete", { keyAuthorization, name }: Proof) => {
    const value = keyAuthorizationDigest(keyAuthorization).toString("base64url")
    return updates.update(server, { action, zone, name: placeOf(name), value })
  }
  const clear = (proof: Proof) =>
    Effect.catch(
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
        // The removal of the record is registered before the update is sent, because the update may take effect even if
        // its answer never arrives.
        let isRefused = false
        yield* Effect.addFinalizer(() => isRefused ? Effect.void : unlessTakenOver(isTakenOver, clear(proof)))
        yield* Effect.mapError(
          change("add", proof),
          (error) => {
            isRefused = error.isRefused === true
            return new UpstreamUnavailable({
              detail: `the TXT record ${at} was not made: ${error.detail}`,
              status: undefined
            })
          }
        )
        if (delaySeconds > 0) yield* Effect.sleep(`${delaySeconds} seconds`)
      })
  }
}
