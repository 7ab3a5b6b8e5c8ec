import * as Effect from "effect/Effect"
import { Entropy } from "../../../crypto/Entropy.ts"
import type { RequestKey } from "../../../crypto/jose/RequestKey.ts"
import { newRequestKey } from "../../../crypto/jose/RequestKey.ts"
import { removeFile, replaceFile, writeNewFile } from "../../../engine/host/KeyFile.ts"
import type { Web } from "../../../engine/net/Web.ts"
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
 * Changes the account's key (RFC 8555 section 7.3.5). The new key is written to a file of its own before the upstream
 * is asked. When the upstream knows the account by the new key, this key replaces the old one. So the key in force is
 * always on the disk, even if the process dies in between.
 */

/** The place of an account and of its key. */
export interface AccountPlace {
  readonly directoryUrl: string
  readonly keyPath: string
  readonly profile: string
}

const clientOf = ({ directoryUrl, profile }: AccountPlace, key: RequestKey) =>
  AcmeClient.make(directoryUrl, key, profile)

/** Returns whether the upstream knows the account by a key. */
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
 * Returns the key of the account. If there is no key, makes one. If an earlier key change was interrupted, asks the
 * upstream whether it knows the account by the new key. If so, the new key replaces the old one.
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

/**
 * Returns the new key: the key of an interrupted key change or, if there was none, a newly made key. If this succeeds,
 * the key is on the disk.
 */
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

/** Changes the key of the account, and returns the new key. */
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
    // The upstream also refuses the change if an earlier request has already changed the key. In that case, the account
    // has the new key.
    const now = yield* keyInForce(place)
    if (now.thumbprint === next.thumbprint) return now
    if (refused === undefined) {
      const detail = "it took the new key, and does not know the account by it"
      return yield* new UpstreamUnavailable({ detail, status: undefined })
    }
    yield* removeFile(nextPathOf(place.keyPath))
    return yield* refused
  })
