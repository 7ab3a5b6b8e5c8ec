import { Result } from "effect"
import { assert } from "vitest"
import type { CertificateKind } from "../../src/domain/CertificateKind.ts"
import { certificateKinds } from "../../src/settings/CertificateKinds.ts"
import { resolveConfig } from "../../src/settings/Resolve.ts"

/** Returns a kind of certificate of the only profile in a file. */
export const kindOf = (fileText: string, name = "default"): CertificateKind => {
  const [profile] = Result.getOrElse(
    resolveConfig({ fileText, env: {} }),
    (refused) => assert.fail(refused.message)
  ).config.profiles
  return profile === undefined
    ? assert.fail("no profile")
    : certificateKinds(profile).byName.get(name) ?? assert.fail(`no kind ${name}`)
}

/** The kind of certificate that is issued if nothing is configured. */
export const usualKind = kindOf("[profiles.default]\n")
