import * as Effect from "effect/Effect"
import { lacking } from "../engine/queue/Lacking.ts"
import type { Config } from "../settings/AppConfig.ts"
import { certificateKinds } from "../settings/CertificateKinds.ts"

/*
 * What must not be used while a process of an older version runs (docs/contribute/decisions/compatibility.md,
 * "Neighbours").
 */

/**
 * The words that this version writes into its row of `workers`: kinds of certificates, scopes of credentials, and blocks
 * of accounts.
 */
export const knownWords = ["kinds", "scopes", "blocks"] as const

const hasKinds = ({ profiles }: Config): boolean =>
  profiles.some((profile) =>
    profile.enabled && [...certificateKinds(profile).byName.values()].some(({ isPlain }) => !isPlain)
  )

/**
 * Returns why a configuration cannot be used beside the processes that run, or undefined if it can. A process that
 * knows no kinds would sign every order as the plain kind.
 */
export const kindsFault = (config: Config) =>
  hasKinds(config)
    ? Effect.map(lacking("kinds"), (owner) =>
      owner === undefined
        ? undefined
        : `certificates.kinds: the process ${owner} runs an older version, which knows no kinds of certificates and would `
          + "issue others than they say; stop it first")
    : Effect.succeed(undefined)
