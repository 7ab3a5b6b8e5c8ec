import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as AcmeClient from "../../services/signing/relay/AcmeClient.ts"
import { account } from "../../services/signing/relay/Relay.ts"
import type { UpstreamCredential } from "../../services/signing/relay/UpstreamAccount.ts"
import {
  hasKey,
  kidPathOf,
  readKid,
  register,
  replaceKid,
  writeKid
} from "../../services/signing/relay/UpstreamAccount.ts"
import { keyInForce } from "../../services/signing/relay/UpstreamKey.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"

/* Lets operators manage a relay's account at its upstream. */

/** The profile does not relay. */
export class NotRelaying extends Data.TaggedError("NotRelaying")<{ readonly profile: string }> {}

/**
 * There is already an account, but the upstream refuses it and also refuses to create a new account for its key.
 * `detail` is the answer of the upstream.
 */
export class AccountRefused extends Data.TaggedError("AccountRefused")<{
  readonly url: string
  readonly keyPath: string
  readonly kidPath: string
  readonly detail: string
}> {}

/** Returns the relay of a profile. */
export const relayOf = ({ name, signer }: Pick<ProfileConfig, "name" | "signer">) =>
  signer.backend === "relay" ? Effect.succeed(signer.relay) : new NotRelaying({ profile: name })

/** Returns what this service knows about the account. No request is sent to the upstream. */
export const show = (profile: Pick<ProfileConfig, "name" | "signer">) =>
  Effect.gen(function*() {
    const { account_key_path, directory_url } = yield* relayOf(profile)
    const accountUrl = yield* readKid(account_key_path)
    return {
      directoryUrl: directory_url,
      accountKeyPath: account_key_path,
      accountKeyPresent: yield* hasKey(account_key_path),
      accountUrl,
      registered: accountUrl !== undefined
    }
  })

/**
 * Creates the account with a credential of the upstream. The credential is never stored. If there is already an
 * account, the upstream is asked whether it still exists. If it does not, its key is registered again.
 */
export const registerAt = (
  profile: Pick<ProfileConfig, "name" | "signer">,
  credential: UpstreamCredential | undefined
) =>
  Effect.gen(function*() {
    const { account_key_path, contact, directory_url } = yield* relayOf(profile)
    const known = yield* readKid(account_key_path)
    const client = yield* AcmeClient.make(
      directory_url,
      yield* keyInForce({ directoryUrl: directory_url, keyPath: account_key_path, profile: profile.name }),
      profile.name
    )
    if (known === undefined) {
      const accountUrl = yield* register(client, contact, credential)
      yield* writeKid(account_key_path, accountUrl)
      return { accountUrl, was: "absent" } as const
    }
    const refused = yield* client.post("account", known, "", { kid: known }).pipe(
      Effect.as(undefined),
      Effect.catchTag("UpstreamRefused", (error) => Effect.succeed(error))
    )
    if (refused === undefined) return { accountUrl: known, was: "known" } as const
    const accountUrl = yield* register(client, contact, credential).pipe(
      Effect.filterOrFail((url) => url !== known, () => refused),
      Effect.catchTag("UpstreamRefused", ({ detail }) =>
        new AccountRefused({
          url: known,
          keyPath: account_key_path,
          kidPath: kidPathOf(account_key_path),
          detail
        }))
    )
    yield* replaceKid(account_key_path, accountUrl)
    return { accountUrl, was: "lost" } as const
  })

/**
 * Creates the account if there is none, and returns the files that were created. If there is an account, no request
 * about it is sent to the upstream.
 */
export const createIfAbsent = ({ name, signer }: Pick<ProfileConfig, "name" | "signer">) =>
  Effect.gen(function*() {
    if (signer.backend !== "relay") return []
    const { account_key_path } = signer.relay
    const hadKey = yield* hasKey(account_key_path)
    if ((yield* readKid(account_key_path)) !== undefined && hadKey) return []
    yield* account(name, signer.relay)
    return [...(hadKey ? [] : [account_key_path]), kidPathOf(account_key_path)]
  })
