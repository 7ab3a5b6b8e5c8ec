import * as Effect from "effect/Effect"
import { Entropy } from "../../crypto/Entropy.ts"
import { BadPublicKey } from "../../crypto/jose/JoseRefused.ts"
import type { AccountKey } from "../../crypto/jose/Jwk.ts"
import { fingerprint } from "../../crypto/jose/Jws.ts"
import type { Account } from "../../domain/Account.ts"
import { checkContacts } from "../../domain/Account.ts"
import type { AccountBlocked } from "../../domain/AcmeError.ts"
import { AccountDoesNotExist, Unauthorized, UserActionRequired } from "../../domain/AcmeError.ts"
import { contactChange } from "../../domain/Audit.ts"
import { AccountId } from "../../domain/Id.ts"
import type { ClientFacts } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { AccountKeys } from "../../services/keys/AccountKeys.ts"
import { PublicKeys } from "../../services/keys/PublicKeys.ts"
import { notify, telling } from "../../services/notify/Notifier.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import * as accounts from "../../store/AccountRows.ts"
import { remember } from "../../store/Acknowledged.ts"
import * as audit from "../../store/AuditRows.ts"
import { changing } from "../../store/AuditRows.ts"
import { burntFault } from "../BurntKey.ts"
import type { Caller } from "../Caller.ts"
import { auditFacts } from "../Caller.ts"
import { refuseIfBlocked, refuseUnlessValid } from "./Authenticate.ts"
import { holdBinding, refuseExhausted, verifyBinding } from "./Binding.ts"
import * as limits from "./Limits.ts"
import type { faultOf } from "./NewKey.ts"

/** A newAccount request whose signature and nonce have been checked. */
export interface Registration {
  readonly profile: ProfileConfig
  readonly key: AccountKey
  readonly contact: ReadonlyArray<string>
  readonly termsOfServiceAgreed: boolean
  readonly onlyReturnExisting: boolean
  /** The `externalAccountBinding` as posted; it is checked only if `eab.enabled` is on. */
  readonly binding: unknown
  /** The URL of newAccount. A binding must contain it. */
  readonly url: string
  readonly client: ClientFacts
}

/**
 * Refuses a caller whose account has ended or was blocked since the request was accepted, for example while a program
 * of a policy ran.
 */
export const refuseUnlessOrdering = ({ accountId, profile }: Caller) =>
  Effect.flatMap(
    accounts.find(profile.name, accountId),
    (account): Effect.Effect<void, AccountBlocked | AccountDoesNotExist | Unauthorized> =>
      account === undefined
        ? new AccountDoesNotExist()
        : Effect.andThen(
          refuseUnlessValid(account),
          refuseIfBlocked({ accountId, blockedAt: account.blockedAt })
        )
  )

const found = (registration: Registration, account: Account) =>
  Effect.gen(function*() {
    yield* refuseUnlessValid(account)
    yield* emit("account_found", { account_id: account.id, key_fp: fingerprint(registration.key.spki) })
    if (!registration.termsOfServiceAgreed || account.termsOfServiceAgreed === true) return account
    yield* accounts.recordAgreement(account.profile, account.id)
    return { ...account, termsOfServiceAgreed: true }
  })

const foundBound = (registration: Registration, account: Account, kid: string | undefined) =>
  Effect.andThen(
    kid === undefined ? Effect.void : emit("eab_verified", { kid, account_id: account.id }),
    found(registration, account)
  )

const refuseKey = (
  key: AccountKey,
  fault: Effect.Success<ReturnType<typeof faultOf>>
): Effect.Effect<void, BadPublicKey> =>
  fault === undefined
    ? Effect.void
    : Effect.andThen(
      emit("account_key_refused", { key_fp: fingerprint(key.spki), reason: fault.reason }),
      new BadPublicKey({ detail: fault.detail })
    )

/**
 * Handles newAccount (RFC 8555 section 7.3): finds the account with this key, or creates one. Order of checks: existing
 * key, onlyReturnExisting, terms of service, contacts, external account binding, key, insert. If another request
 * inserts the account first, the result is the account of that request. A binding is also required for a known key, but
 * the account keeps the binding that it already has.
 */
export const register = Effect.fnUntraced(function*(registration: Registration) {
  const { key, onlyReturnExisting, profile, termsOfServiceAgreed } = registration
  const existing = yield* accounts.findByKey(profile.name, key.spki)
  if (existing !== undefined) yield* refuseUnlessValid(existing)
  if (onlyReturnExisting) {
    if (existing === undefined) return yield* new AccountDoesNotExist()
    return { account: yield* found(registration, existing), created: false }
  }
  const terms = profile.meta.terms_of_service
  if (terms !== "" && !termsOfServiceAgreed) return yield* new UserActionRequired({ terms })
  const contact = yield* Effect.fromResult(checkContacts(registration.contact))
  const bind = verifyBinding({ binding: registration.binding, key, profile: profile.name, url: registration.url })
  const kid = profile.eab.enabled ? yield* bind : undefined
  if (existing !== undefined) return { account: yield* foundBound(registration, existing, kid), created: false }
  if (kid !== undefined) yield* refuseExhausted(kid)
  yield* refuseKey(key, yield* (yield* PublicKeys).faultOf(key.spki))
  const account = yield* create({ ...registration, contact }, kid)
  if (account !== undefined) return { account, created: true }
  const winner = yield* accounts.findByKey(profile.name, key.spki)
  if (winner === undefined) {
    yield* refuseKey(key, yield* burntFault(key.spki))
    if (kid !== undefined) {
      yield* bind // fails if the credential was revoked in the meantime
      yield* refuseExhausted(kid)
    }
    return yield* new AccountDoesNotExist() // the credential was deleted between the two statements
  }
  return { account: yield* foundBound(registration, winner, kid), created: false }
})

// This cannot be interrupted: if a client disconnects after the insert, the insert must still be logged.
const create = Effect.fnUntraced(function*(registration: Registration, eabKid: string | undefined) {
  const { client, contact, key, profile, termsOfServiceAgreed } = registration
  const entropy = yield* Entropy
  const id = AccountId(yield* entropy.uuid)
  const now = yield* currentSeconds
  const reached = yield* limits.ofNewAccount(profile, client, now)
  if (reached !== undefined) {
    yield* refuseKey(key, yield* burntFault(key.spki)) // otherwise the client would come back later with a key that is refused
    return yield* limits.refuse(profile.name, reached, { client })
  }
  const agreed = termsOfServiceAgreed ? true : undefined
  const account: Account = {
    id,
    profile: profile.name,
    pubkey: key.spki,
    status: "valid",
    contact,
    termsOfServiceAgreed: agreed,
    lastSeenAt: now,
    lastSeenIp: client.ip,
    eabKid,
    blockedAt: undefined
  }
  const { pubkey } = account
  const row = {
    id,
    profile: profile.name,
    pubkey,
    contact,
    termsOfServiceAgreed: agreed,
    eabKid,
    now,
    ip: client.ip,
    network: limits.networkOf(client),
    ptr: client.ptr
  }
  // While this request waited for its turn to write, the credential may have been revoked and its accounts may have
  // ended.
  const insert = eabKid === undefined
    ? accounts.insert(row)
    : transaction(
      Effect.flatMap(holdBinding(eabKid, now), (mayBind) => mayBind ? accounts.insert(row) : Effect.succeed(undefined))
    )
  const inserted = yield* telling(insert, {
    event: "account_created",
    scope: profile.name,
    fields: { account_id: id, contact, eab_kid: eabKid, client_ip: client.ip }
  })
  if (inserted === undefined) return undefined
  const keys = yield* AccountKeys
  keys.keep(id, key)
  if (eabKid !== undefined) yield* emit("eab_verified", { kid: eabKid, account_id: id })
  yield* remember({ change: "account_created", at: now, profile: profile.name, accountId: id })
  yield* emit("account_created", { account_id: id, key_fp: fingerprint(key.spki) })
  return account
}, Effect.uninterruptible)

const gone = new Unauthorized({ detail: "The account is no longer valid." })

/** Replaces the contacts. An empty list removes all contacts. */
export const updateContact = Effect.fnUntraced(function*(
  caller: Caller,
  account: Account,
  given: ReadonlyArray<string>
) {
  const contact = yield* Effect.fromResult(checkContacts(given))
  if (contact.length === account.contact.length && contact.every((one, index) => one === account.contact[index])) {
    return account
  }
  const row = audit.insert({
    event: "account_contact_updated",
    actorKind: "acme",
    actorId: account.id,
    accountId: account.id,
    ...auditFacts(account.profile, caller.client),
    detail: contactChange(account.contact, contact)
  })
  const updated = yield* changing(accounts.updateContact(account.profile, account.id, contact), row)
  if (updated === undefined) return yield* gone
  yield* emit("account_updated", { account_id: account.id, key_fp: fingerprint(account.pubkey) })
  return updated
}, Effect.uninterruptible)

/** Deactivates the account permanently (RFC 8555 section 7.3.6). Its orders stay, so certificates remain revocable. */
export const deactivate = Effect.fnUntraced(function*(caller: Caller, account: Account) {
  const row = audit.insert({
    event: "account_deactivated",
    actorKind: "acme",
    actorId: account.id,
    accountId: account.id,
    ...auditFacts(account.profile, caller.client),
    detail: { via: "account" }
  })
  const told = notify({
    event: "account_deactivated",
    scope: account.profile,
    fields: { account_id: account.id, client_ip: caller.client.ip }
  })
  const deactivated = yield* changing(accounts.deactivate(account.profile, account.id), Effect.andThen(row, told))
  if (deactivated === undefined) return yield* gone
  yield* emit("account_deactivated", { account_id: account.id })
  return deactivated
}, Effect.uninterruptible)
