import * as Effect from "effect/Effect"
import { Entropy } from "../../crypto/Entropy.ts"
import type { CredentialScope } from "../../domain/CredentialScope.ts"
import { isScoped, noScope, scopeIn, statedScope } from "../../domain/CredentialScope.ts"
import { isId } from "../../domain/Id.ts"
import { BadRequest, NoSuch } from "../../domain/OperatorError.ts"
import { emit } from "../../domain/words/Log.ts"
import { lacking } from "../../engine/queue/Lacking.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { certificateKinds } from "../../settings/CertificateKinds.ts"
import * as audit from "../../store/AuditRows.ts"
import * as deletions from "../../store/Deletions.ts"
import type { Credential, EabStatus } from "../../store/eab/EabKeys.ts"
import * as eabKeys from "../../store/eab/EabKeys.ts"
import * as eabScopes from "../../store/eab/EabScopes.ts"
import { ordersOfDay } from "../acme/Limits.ts"
import type { Operator } from "../Operator.ts"
import { actorFields, actorOf, tellingRefusal } from "../Operator.ts"
import { checkFuture } from "./FutureTime.ts"
import { readForOperator } from "./OperatorReads.ts"

const scopeOf = (
  { label, profile }: { readonly label?: string | undefined; readonly profile?: string | undefined }
) => ({
  ...(label === undefined ? {} : { label }),
  ...(profile === undefined ? {} : { scope: profile })
})

/** Every status of a credential. */
export const eabStatuses: ReadonlyArray<EabStatus> = ["active", "revoked"]

/** The highest number of characters in a label. */
export const longestLabel = 256

/** Refuses a profile that is not served, because no client could use the credential. */
export const checkProfile = (
  { profiles }: Pick<Config, "profiles">,
  profile: string
): Effect.Effect<void, BadRequest> => {
  const served = profiles.filter(({ enabled }) => enabled).map(({ name }) => name)
  return served.includes(profile)
    ? Effect.void
    : new BadRequest({
      member: "profile",
      detail: `takes the name of a profile that is served: ${served.join(", ")}.`
    })
}

/**
 * Refuses a kind of certificate that no profile of the credential has, because a misspelt kind would forbid every
 * order.
 */
export const checkKinds = (
  { profiles }: Pick<Config, "profiles">,
  profile: string | undefined,
  kinds: ReadonlyArray<string> = []
): Effect.Effect<void, BadRequest> => {
  const usable = profiles.filter(({ enabled, name }) => enabled && (profile === undefined || name === profile))
  const known = new Set(usable.flatMap((one) => [...certificateKinds(one).byName.keys()]))
  const unknown = kinds.find((kind) => !known.has(kind))
  return unknown === undefined ? Effect.void : new BadRequest({
    member: "kinds",
    detail: `takes kinds of certificates: ${[...known].join(", ")}; there is no kind ${unknown}.`
  })
}

const secretSize = 32

// Returns whether a secret begins with a hyphen in base64url. Clients write the secret on their command line, where a
// hyphen begins an option.
const isOption = ([first = 0]: Uint8Array): boolean => first >> 2 === 62

/**
 * Refuses a scope that contradicts itself, or that a running process of an older version would ignore. Must be run in
 * the transaction that has written the scope: such a process is either found here, or finds the scope when it starts
 * (migration 0044).
 */
const checkScope = Effect.fnUntraced(function*(scope: CredentialScope) {
  const { names, prevalidated } = scope
  if (prevalidated === true && names === undefined) {
    return yield* new BadRequest({
      member: "prevalidated",
      detail: "needs names, because otherwise every name would be issued without a challenge."
    })
  }
  if (!isScoped(scope)) return
  const owner = yield* lacking("scopes")
  if (owner === undefined) return
  return yield* new BadRequest({
    detail:
      `The process ${owner} runs an older version, which does not know what a credential may ask for; stop it first.`
  })
})

/** A new credential. `external` has the identifier and the secret that another server gave to it. */
export interface NewCredential {
  readonly label: string
  readonly profile: string | undefined
  readonly scope?: CredentialScope
  readonly external?: { readonly kid: string; readonly secret: Uint8Array }
}

const takenExternal = (kid = "that was imported at this moment") =>
  new BadRequest({ member: "externalKid", detail: `is the identifier of the credential ${kid}.` })

const isAscii = (text: string): boolean => Buffer.byteLength(text) === text.length

/** Creates a credential. Only this result contains the secret. */
export const create = Effect.fn("Eab.create")(function*(
  operator: Operator,
  { external, label, profile, scope = noScope }: NewCredential
) {
  yield* checkFuture("expiresAt", scope.expiresAt)
  const entropy = yield* Entropy
  const kid = yield* entropy.uuid
  const secret = external?.secret ??
    (yield* Effect.repeat(entropy.bytes(secretSize), { until: (drawn) => !isOption(drawn) }))
  const now = yield* currentSeconds
  const externalKid = external?.kid
  if (externalKid !== undefined) {
    if (!isAscii(externalKid)) {
      return yield* new BadRequest({ member: "externalKid", detail: "takes ASCII characters only (RFC 8555)." })
    }
    const taken = yield* eabKeys.secretOfExternal(externalKid, profile ?? "")
    if (taken !== undefined) return yield* takenExternal(taken.kid)
  }
  const inserted = Effect.filterOrFail(
    eabKeys.insert({ kid, secret, label, profile, now, externalKid, ...scope }),
    (row) => row !== undefined,
    () => takenExternal()
  )
  yield* transaction(Effect.andThen(
    Effect.andThen(inserted, checkScope(scope)),
    audit.insert({
      event: "eab_created",
      ...actorOf(operator),
      profile,
      detail: {
        kid,
        ...scopeOf({ label, profile }),
        ...isScoped(scope) ? { after: statedScope(scope) } : {},
        ...externalKid === undefined ? {} : { external_kid: externalKid }
      }
    })
  ))
  yield* emit("admin_eab_created", { ...actorFields(operator), kid })
  const credential: Credential = {
    kid,
    label,
    profile,
    status: "active",
    createdAt: now,
    accounts: 0,
    externalKid,
    ...scope
  }
  return { credential, secret }
}, Effect.uninterruptible)

/**
 * Changes what a credential may ask for. The change takes effect with the next order, in every process. `cleared` names
 * the restrictions to remove.
 */
export const setScope = Effect.fn("Eab.setScope")(function*(
  operator: Operator,
  kid: string,
  { changes, cleared }: {
    readonly changes: Partial<CredentialScope>
    readonly cleared: ReadonlyArray<keyof CredentialScope>
  }
) {
  const stated = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
  const without = Object.fromEntries(cleared.map((member) => [member, undefined]))
  const isChanged = yield* transaction(Effect.gen(function*() {
    if (!isId(kid) || !(yield* eabKeys.lock(kid))) return yield* new NoSuch({ noun: "credential", id: kid })
    const { label, profile, ...found } = yield* find(kid)
    const before = scopeIn(found)
    const after: CredentialScope = { ...before, ...stated, ...without }
    if (JSON.stringify(statedScope(before)) === JSON.stringify(statedScope(after))) return false
    // A credential that has ended may still be changed in other respects.
    if (after.expiresAt !== before.expiresAt) yield* checkFuture("expiresAt", after.expiresAt)
    yield* eabScopes.writeScope(kid, after)
    yield* checkScope(after)
    yield* audit.insert({
      event: "eab_scope_changed",
      ...actorOf(operator),
      profile,
      detail: { kid, ...scopeOf({ label, profile }), before: statedScope(before), after: statedScope(after) }
    })
    return true
  })).pipe(tellingRefusal(operator, { kid }))
  if (isChanged) yield* emit("admin_eab_scope_changed", { ...actorFields(operator), kid })
  return yield* find(kid)
}, Effect.uninterruptible)

/** Finds one credential, without its secret. */
export const find = Effect.fn("Eab.find")(function*(kid: string) {
  const credential = isId(kid) ? yield* eabKeys.find(kid) : undefined
  return credential ?? (yield* new NoSuch({ noun: "credential", id: kid }))
})

/**
 * Returns one credential, with the number of orders and of live certificates of its accounts. `ordersOfDay` is the
 * number of orders that count towards its limit of orders in a day.
 */
export const detail = (kid: string) =>
  readForOperator(Effect.gen(function*() {
    const credential = yield* find(kid)
    const now = yield* currentSeconds
    const accounts = yield* eabKeys.accountsOf(kid)
    const bound = yield* deletions.owned(accounts)
    return {
      credential,
      orderCount: bound.reduce((sum, { orders }) => sum + orders, 0),
      ordersOfDay: yield* ordersOfDay(kid, now),
      liveCertificates: yield* deletions.liveCertificates(accounts, now)
    }
  }))

/** Returns a page of credentials, newest first, and the total number. */
export const list = (page: {
  readonly status: EabStatus | undefined
  readonly limit: number
  readonly offset: number
}) => readForOperator(Effect.all({ items: eabKeys.list(page), total: eabKeys.count(page.status) }))

/**
 * Revokes a credential: newAccount no longer accepts it, and the accounts bound to it stay. A second call changes
 * nothing.
 */
export const revoke = Effect.fn("Eab.revoke")(function*(operator: Operator, kid: string) {
  const { label, profile } = yield* find(kid)
  const detail = { kid, ...scopeOf({ label, profile }) }
  const revoked = yield* audit.changing(
    eabKeys.revoke(kid),
    audit.insert({ event: "eab_revoked", ...actorOf(operator), profile, detail })
  )
  if (revoked !== undefined) yield* emit("admin_eab_revoked", { ...actorFields(operator), kid })
  return yield* find(kid)
}, Effect.uninterruptible)
