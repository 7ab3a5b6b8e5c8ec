import * as Effect from "effect/Effect"
import { removeFile, replaceFile, writeNewFile } from "../../../kernel/host/KeyFile.ts"
import type { Web } from "../../../kernel/net/Web.ts"
import { Entropy } from "../../../pki/Entropy.ts"
import type { RequestKey } from "../../../pki/jose/RequestKey.ts"
import { newRequestKey } from "../../../pki/jose/RequestKey.ts"
import * as AcmeClient from "./AcmeClient.ts"
import type { AccountUnusable } from "./UpstreamAccount.ts"
import {
  loadKey,
  nextPathOf,
  outside,
  parseKey,
  readIfPresent,
  readKid,
  unwritten,
  withoutStop
} from "./UpstreamAccount.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"
import { UpstreamRefused, UpstreamUnavailable } from "./UpstreamFailed.ts"

/*
 * The roll-over of the account's key (RFC 8555 section 7.3.5). The new key is in a file of its own before the upstream is asked
 * for the change, and takes the place of the old one once the upstream knows the account by it. So whatever dies in between,
 * the key that is in force is on disk.
 */

/** Where an account is, and its key. */
export interface AccountPlace {
  readonly directoryUrl: string
  readonly keyPath: string
  readonly profile: string
}

const clientOf = ({ directoryUrl, profile }: AccountPlace, key: RequestKey) =>
  AcmeClient.make(directoryUrl, key, profile)

/** Whether the upstream knows the account by a key. */
const isKnownBy = (place: AccountPlace, key: RequestKey, accountUrl: string) =>
  Effect.gen(function*() {
    const client = yield* clientOf(place, key)
    const { newAccount } = yield* client.directory
    return yield* client.probe("newAccount", newAccount, { onlyReturnExisting: true }, "jwk").pipe(
      Effect.map(({ location }) => location === accountUrl),
      Effect.catchTag("UpstreamRefused", () => Effect.succeed(false))
    )
  })

/**
 * The key of the account, made if there is none. Where a roll-over did not come to its end the upstream is asked whether it knows
 * the account by the new key, which then takes the place of the old one.
 */
export const keyInForce = (place: AccountPlace): Effect.Effect<RequestKey, AccountUnusable, Entropy | Web> =>
  Effect.gen(function*() {
    const { keyPath } = place
    const [key, nextPath] = [yield* loadKey(keyPath), nextPathOf(keyPath)]
    const [content, accountUrl] = [yield* readIfPresent(nextPath), yield* readKid(keyPath)]
    if (content === undefined || accountUrl === undefined) return key
    const next = yield* parseKey(nextPath, content)
    if (next.thumbprint !== key.thumbprint) {
      const isNext = yield* Effect.mapError(isKnownBy(place, next, accountUrl), (error) =>
        outside(
          `signer.relay.directory_url: the upstream does not say whether its account has the key ${nextPath}: ${
            withoutStop(error.detail)
          }.`,
          true
        ))
      if (!isNext) return key
      const suffix = yield* (yield* Entropy).token
      yield* Effect.mapError(replaceFile({ path: keyPath, content, mode: 0o600, suffix }), unwritten(keyPath))
    }
    yield* removeFile(nextPath)
    return next
  })

/** The new key: that of a roll-over which did not come to its end, or another, which is on disk by then. */
const nextKey = (keyPath: string) =>
  Effect.gen(function*() {
    const path = nextPathOf(keyPath)
    const kept = yield* readIfPresent(path)
    if (kept !== undefined) return yield* parseKey(path, kept)
    const content = yield* newRequestKey
    const suffix = yield* (yield* Entropy).token
    yield* Effect.mapError(writeNewFile({ path, content, mode: 0o600, suffix }), unwritten(path))
    return yield* parseKey(path, content)
  })

/** Changes the key of the account from one that is in force to a new one, and answers that. */
export const changeKey = (
  place: AccountPlace,
  accountUrl: string,
  key: RequestKey
): Effect.Effect<RequestKey, AccountUnusable | UpstreamFailed, Entropy | Web> =>
  Effect.gen(function*() {
    const client = yield* clientOf(place, key)
    const { keyChange } = yield* client.directory
    if (keyChange === undefined) {
      const detail = "its directory has no keyChange"
      return yield* new UpstreamRefused({ detail, status: undefined, type: "unsupported" })
    }
    const next = yield* nextKey(place.keyPath)
    const inner = yield* next.sign(
      { jwk: next.jwk, url: keyChange },
      JSON.stringify({ account: accountUrl, oldKey: key.jwk })
    )
    const refused = yield* client.post("keyChange", keyChange, inner, { kid: accountUrl }).pipe(
      Effect.as(undefined),
      Effect.catchTag("UpstreamRefused", (error) => Effect.succeed(error))
    )
    // What an earlier request has done is refused too: the account has the key then.
    const now = yield* keyInForce(place)
    if (now.thumbprint === next.thumbprint) return now
    if (refused === undefined) {
      const detail = "it took the new key, and does not know the account by it"
      return yield* new UpstreamUnavailable({ detail, status: undefined })
    }
    yield* removeFile(nextPathOf(place.keyPath))
    return yield* refused
  })
