import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Compound, InvalidProfile, RejectedIdentifier } from "../../domain/AcmeError.ts"
import type { CertificateKind, CertificateKinds } from "../../domain/CertificateKind.ts"
import type { CredentialScope } from "../../domain/CredentialScope.ts"
import { isScoped, noScope, uncovered } from "../../domain/CredentialScope.ts"
import type { DnsName } from "../../domain/Identifier.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import { certificateKinds } from "../../settings/CertificateKinds.ts"
import { scopeOfAccount } from "../../store/eab/EabScopes.ts"
import type { Caller } from "../Caller.ts"

/*
 * What an account may order by the scope of its credential. The scope is read for each order, so a change takes effect
 * with the next order, in every process.
 */

/**
 * Returns the scope of the caller's account. An account without a credential has no restriction. An account keeps the
 * kid of its credential even after the credential was deleted.
 */
export const scopeOfCaller = ({ accountId, eabKid }: Caller) =>
  eabKid === undefined ? Effect.succeed(noScope) : scopeOfAccount(accountId)

/** Returns whether only a worker that knows kinds and scopes may sign for an order. */
export const isRestricted = (scope: CredentialScope, kind: CertificateKind): boolean => !kind.isPlain || isScoped(scope)

/** Returns whether the names of an order need no challenge. */
export const isPrevalidated = ({ names, prevalidated }: CredentialScope): boolean =>
  prevalidated === true && names !== undefined

const mostListed = 10

/** Returns the refusal of the names that a scope does not cover, with a subproblem for each if there are several. */
export const scopeFault = (
  scope: CredentialScope,
  names: ReadonlyArray<DnsName>
): RejectedIdentifier | Compound | undefined => {
  const parts = uncovered(scope, names).map((value) =>
    new RejectedIdentifier({
      detail: "The credential of this account does not cover it.",
      identifier: { type: "dns", value }
    })
  )
  const [first, second] = parts
  if (second === undefined) return first
  const listed = parts.slice(0, mostListed)
  return new Compound({ parts: listed, unlisted: parts.length - listed.length })
}

/** Returns the names of the kinds of a profile that a scope permits. */
const permittedKinds = ({ kinds }: CredentialScope, { byName }: CertificateKinds): ReadonlyArray<string> =>
  [...byName.keys()].filter((name) => kinds === undefined || kinds.includes(name))

/**
 * Returns the kind of certificate that a request names. A request without a kind gets the default kind of the profile
 * or, if the scope does not permit that kind, the first kind that the scope permits.
 */
export const kindFor = (
  profile: ProfileConfig,
  scope: CredentialScope,
  named: string | undefined
): Result.Result<CertificateKind, InvalidProfile> => {
  const kinds = certificateKinds(profile)
  const permitted = permittedKinds(scope, kinds)
  const offered = named === undefined || kinds.isOffered ? permitted : []
  const wanted = named ?? (permitted.includes(kinds.chosen.name) ? kinds.chosen.name : permitted[0])
  const kind = wanted !== undefined && offered.includes(wanted) ? kinds.byName.get(wanted) : undefined
  return kind === undefined
    ? Result.fail(new InvalidProfile({ profile: wanted ?? kinds.chosen.name, offered }))
    : Result.succeed(kind)
}

/** Returns the refusal of a kind that a scope does not permit. */
export const kindFault = (
  scope: CredentialScope,
  kinds: CertificateKinds,
  kind: string
): InvalidProfile | undefined => {
  const offered = permittedKinds(scope, kinds)
  return offered.includes(kind) ? undefined : new InvalidProfile({ profile: kind, offered })
}
