import * as Effect from "effect/Effect"
import { purposeWord } from "../../crypto/x509/KeyPurpose.ts"
import type { CertificateKind } from "../../domain/CertificateKind.ts"
import { BadRequest, UnknownWord } from "../../domain/OperatorError.ts"
import { member } from "../../engine/Members.ts"
import type { Config, ProfileConfig } from "../../settings/AppConfig.ts"
import { lifetimeText } from "../../settings/CertificateForms.ts"
import { certificateKinds } from "../../settings/CertificateKinds.ts"

/* The kinds of certificates of the served profiles. They are facts of the configuration, so no record is read. */

/** Finds a profile that is served. */
export const servedProfile = (
  { profiles }: Pick<Config, "profiles">,
  name: string
): Effect.Effect<ProfileConfig, BadRequest> => {
  const served = profiles.filter(({ enabled }) => enabled)
  const found = served.find((profile) => profile.name === name)
  return found === undefined
    ? new BadRequest({
      member: "profile",
      detail: `takes the name of a profile that is served: ${served.map((profile) => profile.name).join(", ")}.`
    })
    : Effect.succeed(found)
}

/** Finds a kind of a profile by its name. Without a name, returns the kind that an order gets if it names no kind. */
export const namedKind = (
  profile: ProfileConfig,
  name: string | undefined,
  as = "kind"
): Effect.Effect<CertificateKind, UnknownWord> => {
  const { byName, chosen } = certificateKinds(profile)
  const found = name === undefined ? chosen : byName.get(name)
  return found === undefined
    ? new UnknownWord({ name: as, word: name?.slice(0, 64) ?? "", known: [...byName.keys()] })
    : Effect.succeed(found)
}

const attributes: { readonly [oid: string]: string } = {
  "2.5.4.6": "country",
  "2.5.4.7": "locality",
  "2.5.4.8": "state",
  "2.5.4.10": "organization",
  "2.5.4.11": "organizational_unit"
}

/** What only a local CA decides. */
const localObject = ({ commonName, content, validitySeconds }: CertificateKind) => ({
  validity: lifetimeText(validitySeconds),
  usages: content.usages.map(purposeWord),
  commonName,
  ...member(
    "subject",
    content.subject.length === 0
      ? undefined
      : Object.fromEntries(content.subject.map(({ type, value }) => [attributes[type] ?? type, value]))
  ),
  policies: content.policies
})

const kindObject = ({ name, signer }: ProfileConfig, kind: CertificateKind, isDefault: boolean) => ({
  profile: name,
  kind: kind.name,
  isDefault,
  description: kind.description,
  backend: signer.backend,
  ...(signer.backend === "local_ca" ? localObject(kind) : {}),
  keys: kind.keys,
  unrequested: kind.unrequested,
  ...member("upstream", kind.upstream === "" ? undefined : kind.upstream)
})

/** Returns the kinds of one served profile, or of all. The words are those of the configuration. */
export const kindsOf = Effect.fn("KindRecords.kindsOf")(
  function*(config: Pick<Config, "profiles">, profile: string | undefined) {
    const wanted = profile === undefined
      ? config.profiles.filter(({ enabled }) => enabled)
      : [yield* servedProfile(config, profile)]
    return wanted.flatMap((one) => {
      const { byName, chosen } = certificateKinds(one)
      return [...byName.values()].map((kind) => kindObject(one, kind, kind === chosen))
    })
  }
)

/** Returns the names of all kinds of all profiles, each once. The kind `default` is the first. */
export const kindNames = (
  { profiles }: Pick<Config, "profiles">
): ReadonlyArray<string> => [...new Set(profiles.flatMap((profile) => [...certificateKinds(profile).byName.keys()]))]
