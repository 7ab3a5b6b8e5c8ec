import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { shownContacts } from "../../domain/Audit.ts"
import { transaction } from "../../engine/sql/Database.ts"
import * as AcmeClient from "../../services/signing/relay/AcmeClient.ts"
import { loadKey, readKid } from "../../services/signing/relay/UpstreamAccount.ts"
import { changeKey, keyInForce } from "../../services/signing/relay/UpstreamKey.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import * as audit from "../../store/AuditRows.ts"
import type { AtKeyboard } from "../Operator.ts"
import { actorOf } from "../Operator.ts"
import { relayOf } from "./Upstream.ts"

/* Changes a relay's account at its upstream. Each change writes a row to the audit trail. */

type Relaying = Pick<ProfileConfig, "name" | "signer">

/** There is no account yet. */
export class NotRegistered extends Data.TaggedError("NotRegistered")<{ readonly profile: string }> {}

const accountOf = (profile: Relaying) =>
  Effect.gen(function*() {
    const relay = yield* relayOf(profile)
    const { account_key_path: keyPath, directory_url: directoryUrl } = relay
    const accountUrl = yield* readKid(keyPath)
    if (accountUrl === undefined) return yield* new NotRegistered({ profile: profile.name })
    return { relay, accountUrl, place: { directoryUrl, keyPath, profile: profile.name } }
  })

/**
 * Gives the account a new key. An interrupted roll-over may have already put a new key in force. In that case, that key
 * is the new key, and no request is sent to the upstream.
 */
export const rollOver = (operator: AtKeyboard, profile: Relaying) =>
  Effect.gen(function*() {
    const { accountUrl, place } = yield* accountOf(profile)
    const { thumbprint: previous } = yield* loadKey(place.keyPath)
    const key = yield* keyInForce(place)
    const { thumbprint } = key.thumbprint === previous ? yield* changeKey(place, accountUrl, key) : key
    yield* transaction(audit.insert({
      event: "upstream_key_changed",
      actorKind: "cli",
      actorId: actorOf(operator).actorId,
      profile: profile.name,
      detail: { account_url: accountUrl, key_fp: thumbprint, previous_key_fp: previous }
    }))
    return { accountUrl, keyThumbprint: thumbprint, previousKeyThumbprint: previous }
  })

/**
 * Sets the contacts of the account. If no contacts are given, the contacts in the configuration are used. There may be
 * none.
 */
export const setContact = (operator: AtKeyboard, profile: Relaying, given: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const { accountUrl, place, relay } = yield* accountOf(profile)
    const contact = given.length === 0 ? relay.contact : given
    const client = yield* AcmeClient.make(place.directoryUrl, yield* keyInForce(place), place.profile)
    yield* client.post("account", accountUrl, { contact }, { kid: accountUrl })
    yield* transaction(audit.insert({
      event: "upstream_contact_updated",
      actorKind: "cli",
      actorId: actorOf(operator).actorId,
      profile: profile.name,
      detail: { account_url: accountUrl, contacts: contact.length, added: shownContacts(contact) }
    }))
    return { accountUrl, contact }
  })
