import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { Entropy } from "../../crypto/Entropy.ts"
import type { SignerBackend } from "../../domain/SignerBackend.ts"
import { emit } from "../../domain/words/Log.ts"
import { sectionText } from "../../engine/config/Section.ts"
import type { Scripts } from "../../engine/host/Scripts.ts"
import type { DnsUpdate } from "../../engine/net/DnsUpdate.ts"
import type { Web } from "../../engine/net/Web.ts"
import type { CaFilesUnusable } from "./CaFiles.ts"
import type { LocalCaSettings } from "./ConfiguredCas.ts"
import * as Custom from "./Custom.ts"
import * as LocalCa from "./LocalCa.ts"
import { recovering } from "./Recovering.ts"
import { AskedFor } from "./relay/AskedFor.ts"
import * as Relay from "./relay/Relay.ts"
import type { RelaySettings } from "./relay/RelaySettings.ts"
import type { AccountUnusable } from "./relay/UpstreamAccount.ts"
import { findKey } from "./relay/UpstreamAccount.ts"
import type { CrlIssuer, RelaySigner, Signer } from "./Signer.ts"
import { ProfileNotMounted, Signers } from "./Signer.ts"
import type { CustomSettings } from "./SignerScript.ts"

/** The parts of a profile that concern signing. */
export interface SigningProfile {
  readonly name: string
  readonly signer: {
    readonly backend: SignerBackend
    readonly local_ca: LocalCaSettings
    readonly custom: CustomSettings
    readonly relay: RelaySettings
  }
  /** The kinds of certificates. A relay must know which profile of the upstream each kind needs. */
  readonly certificates?: { readonly kinds: { readonly [name: string]: { readonly upstream: string } } }
}

/** The backend of a profile could not be made, so the profile is not served. */
export class ProfileUnusable extends Data.TaggedError("ProfileUnusable")<{
  readonly profile: string
  readonly detail: string
  /** Whether a later attempt may succeed, because a file could not be written, or an upstream did not answer. */
  readonly mayPass: boolean
  /**
   * Whether the cause is outside the configuration, such as a missing file. If so, the other profiles can be served.
   */
  readonly isOutside: boolean
  /**
   * Whether the backend was loaded. If so, only the dates of its CA or the record of its lists prevent it from signing.
   */
  readonly isLoaded: boolean
}> {
  override get message(): string {
    return `Profile ${this.profile}: ${this.detail}`
  }
}

/** The services with which backends reach other hosts and programs. */
type Needs = Entropy | Scripts | Web | DnsUpdate

/** One kind of backend: how its signer is made, and how its files are checked without making the signer. */
interface Maker {
  readonly make: (profile: SigningProfile) => Effect.Effect<Signer, AccountUnusable | CaFilesUnusable, Needs>
  readonly check: (settings: SigningProfile["signer"]) => Effect.Effect<unknown, AccountUnusable | CaFilesUnusable>
}

/** A signer that is asked for its trouble may wait for another server. The others do not wait for it. */
const troublesAtOnce = 16

/** All kinds of backends, by their words in `signer.backend`. */
const makers: { readonly [B in SignerBackend]: Maker } = {
  custom: { make: ({ signer }) => Custom.make(signer.custom), check: () => Effect.void },
  local_ca: { make: ({ signer }) => LocalCa.make(signer.local_ca), check: ({ local_ca }) => LocalCa.check(local_ca) },
  relay: {
    make: ({ name, signer }) => Relay.make(name, signer.relay),
    check: ({ relay }) => findKey(relay.account_key_path)
  }
}

const unusable = (
  profile: string,
  { detail, isLoaded = false, isOutside = false, mayPass = false }:
    & Pick<AccountUnusable | CaFilesUnusable, "detail" | "isOutside" | "mayPass">
    & Pick<CaFilesUnusable, "isLoaded">
) => new ProfileUnusable({ profile, detail, isLoaded, isOutside, mayPass })

const attempted = (profile: SigningProfile): Effect.Effect<Signer, ProfileUnusable, Needs> =>
  makers[profile.signer.backend].make(profile).pipe(
    Effect.mapError((error) => unusable(profile.name, error)),
    Effect.tapError(({ detail }) => emit("profile_init_failed", { profile: profile.name, error: detail }))
  )

interface Backend {
  readonly signer: Signer
  /** Why the backend could not be made. Present if the profile is served without its backend. */
  readonly failure?: ProfileUnusable
}

/**
 * Makes the backend of a profile. If a cause outside the configuration prevents this and the profile may be degraded,
 * returns a backend that will be made later.
 */
const backendOf = (profile: SigningProfile, mayDegrade: boolean): Effect.Effect<Backend, ProfileUnusable, Needs> =>
  Effect.gen(function*() {
    const needs = yield* Effect.context<Needs>()
    const again = Effect.provide(attempted(profile), needs)
    const first = yield* Effect.result(again)
    if (Result.isFailure(first)) {
      const { failure } = first
      return mayDegrade && failure.isOutside
        ? { signer: recovering(profile.signer.backend === "relay", failure, again), failure }
        : yield* failure
    }
    return { signer: first.success }
  })

/** Refuses a profile whose signer could be made but cannot sign now. */
const refuseTrouble = Effect.fnUntraced(function*(profile: string, { trouble }: Signer) {
  const detail = trouble === undefined ? undefined : yield* trouble
  if (detail !== undefined) return yield* unusable(profile, { detail, isOutside: true, mayPass: false })
})

/**
 * Returns a sentence about the first kind of certificate whose upstream profile the upstream does not offer, or
 * undefined if there is none.
 */
const unofferedKind = Effect.fnUntraced(function*({ certificates }: SigningProfile, signer: Signer) {
  const wanted = Object.entries(certificates?.kinds ?? {}).filter(([, { upstream }]) => upstream !== "")
  if (wanted.length === 0 || signer.relay === undefined) return
  const offered = yield* signer.upstreamProfiles ?? Effect.succeed(undefined)
  const unoffered = offered && wanted.find(([, { upstream }]) => !offered.includes(upstream))
  if (unoffered === undefined) return
  const [kind, { upstream }] = unoffered
  return `certificates.kinds.${kind}.upstream: the upstream offers no profile ${upstream}, but ${
    offered?.join(", ") || "none"
  }.`
})

/**
 * Refuses a profile with a kind that its upstream does not offer. If the profile may be degraded, only logs this:
 * orders of the other kinds still succeed, and the upstream refuses orders of this kind.
 */
const judgeUnoffered = Effect.fnUntraced(function*(profile: SigningProfile, signer: Signer, mayDegrade: boolean) {
  const detail = yield* unofferedKind(profile, signer)
  if (detail === undefined) return
  if (!mayDegrade) return yield* unusable(profile.name, { detail, isOutside: true, mayPass: true })
  yield* emit("profile_kind_unoffered", { profile: profile.name, error: detail })
})

/**
 * Refuses the files of a profile's backend if {@link layer} would refuse them. Creates nothing, and sends nothing to an
 * upstream.
 */
export const check = ({ name, signer }: SigningProfile): Effect.Effect<void, ProfileUnusable> =>
  Effect.asVoid(Effect.mapError(makers[signer.backend].check(signer), (error) => unusable(name, error)))

/**
 * Returns the signer for one profile. If several profiles share a relay, the requests of this signer are recorded under
 * the given profile.
 */
const askedFor = (profile: string, signer: Signer): Signer => {
  if (signer.relay === undefined) return signer
  const { leftOver, relay, renewal, revoke } = signer
  const asking = Effect.provideService(AskedFor, profile)
  return {
    ...signer,
    relay: (request, relaying) => asking(relay(request, relaying)),
    renewal: (certificate) => asking(renewal(certificate)),
    revoke: (leaf, reason) => asking(revoke(leaf, reason)),
    leftOver: (orderUrl) => asking(leftOver(orderUrl))
  } satisfies RelaySigner
}

/**
 * Makes one backend for each distinct `signer` section. Fails if one of them cannot be made. A backend of `before` is
 * used again if its section and `outbound` are unchanged. `outbound` contains the sections that say how other hosts are
 * reached (docs/contribute/decisions/process.md, "Reload"). If `mayDegrade` allows it and the cause is outside the
 * configuration, a profile is served even without a usable backend (docs/contribute/decisions/degraded-profiles.md).
 */
export const layer = (
  profiles: ReadonlyArray<SigningProfile>,
  { before = new Map(), mayDegrade = () => false, outbound = {} }: {
    readonly before?: Signers["Service"]["bySection"] | undefined
    readonly outbound?: object
    readonly mayDegrade?: (profile: string) => boolean
  } = {}
): Layer.Layer<Signers, ProfileUnusable, Needs> =>
  Layer.effect(
    Signers,
    Effect.gen(function*() {
      const bySection = new Map<string, Signer>()
      const byProfile = new Map<string, Signer>()
      const failures: Array<ProfileUnusable> = []
      for (const profile of profiles) {
        const section = sectionText({ signer: profile.signer, outbound })
        let signer = bySection.get(section) ?? before.get(section)
        if (signer === undefined) {
          const backend = yield* backendOf(profile, mayDegrade(profile.name))
          if (backend.failure !== undefined) failures.push(backend.failure)
          signer = backend.signer
        }
        if (!mayDegrade(profile.name)) yield* refuseTrouble(profile.name, signer)
        yield* judgeUnoffered(profile, signer, mayDegrade(profile.name))
        bySection.set(section, signer)
        byProfile.set(profile.name, askedFor(profile.name, signer))
      }
      // If no signer at all could be made, this layer cannot be made either.
      const [failure] = failures
      if (failure !== undefined && failures.length === bySection.size) return yield* failure
      return Signers.of({
        bySection,
        get crlIssuers() {
          const crls = new Map<string, CrlIssuer>()
          for (const { crls: ofSigner = [] } of bySection.values()) for (const crl of ofSigner) crls.set(crl.id, crl)
          return [...crls.values()]
        },
        troubles: Effect.map(
          Effect.forEach(byProfile, ([profile, { trouble }]) =>
            Effect.map(trouble ?? Effect.succeed(undefined), (found) =>
              [profile, found] as const), { concurrency: troublesAtOnce }),
          (found) =>
            new Map(found)
        ),
        of: (profile) => {
          const signer = byProfile.get(profile)
          return signer === undefined ? new ProfileNotMounted({ profile }) : Effect.succeed(signer)
        }
      })
    })
  )
