import * as Result from "effect/Result"
import type { NameConstraints } from "../../crypto/x509/NameConstraints.ts"
import { nameConstraintsViolation } from "../../crypto/x509/NameConstraints.ts"
import type { IdentifierRefused } from "../../domain/AcmeError.ts"
import { Compound, MalformedIdentifier, RejectedIdentifier, UnsupportedIdentifier } from "../../domain/AcmeError.ts"
import { provesDns } from "../../domain/Challenge.ts"
import type { DnsName, KnownLabels } from "../../domain/Identifier.ts"
import { isWildcard, normalizeIdentifier } from "../../domain/Identifier.ts"
import type { Issuer } from "../../services/signing/Issuers.ts"
import { unprovable } from "../../services/signing/relay/Provable.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"

const accept = (
  profile: ProfileConfig,
  identifier: { readonly type: string; readonly value: string },
  { constraints, dns01Enabled, known }: {
    readonly constraints: ReadonlyArray<NameConstraints>
    readonly dns01Enabled: boolean
    readonly known: KnownLabels
  }
): Result.Result<DnsName, IdentifierRefused> => {
  if (identifier.type !== "dns") return Result.fail(new UnsupportedIdentifier({ identifier }))
  const name = normalizeIdentifier(identifier.value, { dns01Enabled }, known)
  if (Result.isFailure(name)) {
    const { detail, kind } = name.failure
    return Result.fail(
      kind === "malformed"
        ? new MalformedIdentifier({ detail, identifier })
        : new RejectedIdentifier({ detail, identifier })
    )
  }
  const detail = isWildcard(name.success) && !dns01Enabled
    ? "A wildcard needs dns-01, which this profile does not offer."
    : nameConstraintsViolation(constraints, [name.success]) !== undefined
    ? "The CA may not issue for this name: its name constraints forbid it."
    : profile.signer.backend === "relay"
    ? unprovable(profile.signer.relay, name.success)
    : undefined
  return detail === undefined
    ? Result.succeed(name.success)
    : Result.fail(new RejectedIdentifier({ detail, identifier }))
}

/**
 * The highest number of refusals that one answer lists. A client with more refusals must correct the listed ones first.
 */
const mostRefusals = 10

/**
 * Checks all identifiers, also against the name constraints of the CA that issues for the profile. If one identifier is
 * refused, fails with that refusal. If several are refused, fails with a compound of these refusals.
 */
export const acceptAll = (
  profile: ProfileConfig,
  issuer: Pick<Issuer, "nameConstraints"> | undefined,
  identifiers: ReadonlyArray<{ readonly type: string; readonly value: string }>
): Result.Result<ReadonlyArray<DnsName>, IdentifierRefused | Compound> => {
  const refusals: Array<IdentifierRefused> = []
  const names = new Set<DnsName>()
  const judging = {
    constraints: issuer?.nameConstraints ?? [],
    dns01Enabled: profile.challenge.enabled.some(provesDns),
    known: new Map()
  }
  for (const identifier of identifiers) {
    const judged = accept(profile, identifier, judging)
    if (Result.isSuccess(judged)) names.add(judged.success)
    else refusals.push(judged.failure)
  }
  const [first, second] = refusals
  if (first === undefined) return Result.succeed([...names])
  if (second === undefined) return Result.fail(first)
  const parts = refusals.slice(0, mostRefusals)
  return Result.fail(new Compound({ parts, unlisted: refusals.length - parts.length }))
}
