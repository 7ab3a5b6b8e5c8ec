import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { resolve } from "node:path"
import { Entropy } from "../crypto/Entropy.ts"
import { everyRole } from "../domain/Role.ts"
import { ConfigRefused } from "../engine/config/ConfigRefused.ts"
import { fileVariable } from "../engine/config/KeyPath.ts"
import { said, writeNewFile } from "../engine/host/KeyFile.ts"
import * as TlsFiles from "../engine/http/TlsFiles.ts"
import type { Web } from "../engine/net/Web.ts"
import * as passwordLinks from "../operations/operator/identity/PasswordLinks.ts"
import * as upstream from "../operations/operator/Upstream.ts"
import { Passwords } from "../services/operators/Passwords.ts"
import { generateIfAbsent } from "../services/signing/CaFiles.ts"
import type { Config } from "../settings/AppConfig.ts"
import { renderInitialConfig } from "../settings/Example.ts"
import type { Loaded } from "../settings/Load.ts"
import { loadConfig } from "../settings/Load.ts"
import { CommandFailed, filesFailed, refusedFor } from "./CommandFailed.ts"
import { Operator } from "./CommandOperator.ts"
import { seenFromHere } from "./Here.ts"
import { Host } from "./Host.ts"
import { tlsOf } from "./ListenerTls.ts"
import { Settings } from "./Settings.ts"

/**
 * Reads the configuration for `init`. If no profile is configured and there is no file, writes a first file. Only its
 * owner can read this file, because it may later contain passwords. If the file was written, also returns its path.
 */
export const loadOrCreate: Effect.Effect<
  { readonly loaded: Loaded; readonly created: string | undefined },
  CommandFailed,
  Entropy | Host | Settings
> = Effect.gen(function*() {
  const { cwd, env } = yield* Host
  const first = yield* Effect.result(loadConfig({ env, cwd }))
  if (first._tag === "Success") return { loaded: first.success, created: undefined }
  const refusal = new CommandFailed({ code: 3, message: first.failure.message })
  if (!lacksOnlyProfiles(first.failure)) return yield* refusal
  const named = env[fileVariable]
  const path = named === undefined || named === "" ? "config.toml" : named
  const entropy = yield* Entropy
  const suffix = yield* entropy.token
  const written = yield* Effect.result(
    writeNewFile({ path: resolve(cwd, path), content: renderInitialConfig(), mode: 0o600, suffix })
  )
  // Another process may have written the file meanwhile.
  if (written._tag === "Failure" && written.failure.reason !== "exists") {
    return yield* new CommandFailed({ code: 1, message: `${path} cannot be written: ${said(written.failure)}.` })
  }
  const settings = yield* Settings
  return {
    loaded: yield* settings.fresh(new Set(everyRole)),
    created: written._tag === "Failure" ? undefined : path
  }
})

/**
 * Returns whether the file of a configuration is still as `init` has written it, with or without the URL of a database.
 */
export const isInitial = ({ config, file: { text } }: Loaded): boolean =>
  text === renderInitialConfig() || text === renderInitialConfig({ database_url: Redacted.value(config.database.url) })

/** Returns whether a configuration is refused only because nothing has been configured yet. */
export const lacksOnlyProfiles = ({ faults }: ConfigRefused): boolean =>
  faults.every(({ key }) => key === "profiles" || key === fileVariable)

/**
 * Creates the key files that are missing. Returns a line for each new pair. Existing files are never changed. With
 * `lacksCa` no CA is made, because its certificate comes from elsewhere.
 */
export const createFiles = (
  config: Config,
  { lacksCa = false } = {}
): Effect.Effect<ReadonlyArray<string>, CommandFailed, Entropy | Host> =>
  Effect.gen(function*() {
    const made: Array<string> = []
    for (const { enabled, signer } of config.profiles) {
      if (lacksCa || !enabled || signer.backend !== "local_ca") continue
      const { cert_path, key_path } = signer.local_ca
      if (yield* generateIfAbsent(signer.local_ca)) {
        made.push(`CA            ${yield* seenFromHere(cert_path, key_path)}`)
      }
    }
    for (const listener of ["acme", "admin"] as const) {
      const { enabled, settings } = tlsOf(config, listener)
      if (!enabled || !(yield* TlsFiles.generateIfMissing(settings))) continue
      made.push(`TLS pair      ${yield* seenFromHere(settings.cert_path, settings.key_path)}`)
    }
    return made
  }).pipe(Effect.mapError(filesFailed))

/**
 * Creates the first operator, whose password nobody knows, if the panel is on and there is no operator. Returns the
 * name of the operator.
 */
export const createOperator = (config: Config) =>
  config.admin.enabled
    ? Effect.flatMap(Operator, (operator) => passwordLinks.createFirst(config, operator)).pipe(
      Effect.mapError((error) =>
        error._tag === "StorageFailed" ? new CommandFailed({ code: 1, message: error.message }) : refusedFor(error)
      ),
      Effect.provide(Passwords.layer())
    )
    : Effect.undefined

/**
 * Creates the missing accounts of relays at their upstreams. Returns a line for each account. This is the last step,
 * because an upstream might not answer, or might require a credential first.
 */
export const createAccounts = (
  config: Config
): Effect.Effect<ReadonlyArray<string>, CommandFailed, Entropy | Web | Host> =>
  Effect.flatMap(
    Effect.forEach(config.profiles.filter(({ enabled }) => enabled), (profile) =>
      Effect.mapError(
        upstream.createIfAbsent(profile),
        ({ detail, mayPass }) =>
          new CommandFailed({ code: mayPass ? 1 : 3, message: `Profile ${profile.name}: ${detail}` })
      )),
    (made) =>
      Effect.forEach(made.filter(({ length }) => length > 0), (files) =>
        Effect.map(seenFromHere(...files), (shown) => `account       ${shown}`))
  )
