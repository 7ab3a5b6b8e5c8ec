import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { everyRole } from "../domain/Role.ts"
import { isExecutable } from "../engine/host/Files.ts"
import * as TlsFiles from "../engine/http/TlsFiles.ts"
import type { Record } from "../engine/telemetry/EventLog.ts"
import { layerMemory } from "../engine/telemetry/EventLog.ts"
import { PublicKeys } from "../services/keys/PublicKeys.ts"
import { keyOf } from "../services/notify/Deliveries.ts"
import { sectionsOf } from "../services/notify/NotifyRoutes.ts"
import { scriptsOfFilter } from "../services/policy/PolicyAdvisories.ts"
import * as Backends from "../services/signing/Backends.ts"
import type { Config } from "../settings/AppConfig.ts"
import type { Loaded } from "../settings/Load.ts"
import { checkAddresses } from "./Addresses.ts"
import { advise, adviseOfFile } from "./Advisories.ts"
import * as Graph from "./Graph.ts"
import type { Installed } from "./Host.ts"
import { tlsOf } from "./ListenerTls.ts"

/* Finds everything that would make startup fail. Binds no socket and changes no file. */

type Scripts = ReadonlyArray<readonly [key: string, path: string]>

/** Returns the scripts of served sections, each with the configuration key that names it. */
const scriptsOf = (config: Config): Scripts => [
  ...config.profiles.filter(({ enabled }) => enabled).flatMap(({ filter, ipam, name, signer }) => [
    ...signer.backend === "custom"
      ? [[`profiles.${name}.signer.custom.script_path`, signer.custom.script_path] as const]
      : [],
    ...scriptsOfFilter(`profiles.${name}.filter`, filter),
    ...ipam.backend === "custom"
      ? [[`profiles.${name}.ipam.custom.script_path`, ipam.custom.script_path] as const]
      : []
  ]),
  ...config.admin.enabled ? scriptsOfFilter("admin.filter", config.admin.filter) : [],
  ...[...sectionsOf(config)].flatMap(([scope, { custom, custom_enabled, enabled }]) =>
    enabled.includes("custom")
      ? custom_enabled.map((entry) =>
        [`${keyOf(scope)}.custom.${entry}.script_path`, custom[entry]?.script_path ?? ""] as const
      )
      : []
  )
]

const executable = ([key, path]: readonly [string, string]) =>
  Effect.flatMap(
    isExecutable(path),
    (isIt) => isIt ? Effect.void : Effect.fail({ message: `${key}: ${path} is not an executable file.` })
  )

const tlsFilesOf = (config: Config): ReadonlyArray<TlsFiles.TlsFileSettings> =>
  (["acme", "admin"] as const).map((listener) => ({ isServed: listener === "acme" || config.admin.enabled, listener }))
    .flatMap(({ isServed, listener }) => {
      const { enabled, settings } = tlsOf(config, listener)
      return isServed && enabled ? [settings] : []
    })

// The module is loaded only when templates are checked. At startup, only a process that serves operators loads it.
const templatesOf = ({ admin }: Config, panel: Installed["panel"]) =>
  Effect.flatMap(
    Effect.promise(() => import("../surfaces/panel/Rendering.ts")),
    ({ renderingOf }) => Effect.scoped(renderingOf(panel, admin))
  )

/**
 * Returns the failures of signers that would make startup fail, and the failures that would leave a profile without
 * issuance. Each failure has a sentence that says why.
 */
const signersOf = (config: Config) =>
  Effect.gen(function*() {
    const served = config.profiles.filter(({ enabled }) => enabled)
    const results = yield* Effect.forEach(served, (profile) => Effect.result(Backends.check(profile)))
    const failures = results.flatMap((result) => Result.isFailure(result) ? [result.failure] : [])
    // If no signer could be made at all, startup fails.
    const isNone = failures.filter(({ isLoaded }) => !isLoaded).length === served.length
    const isDegraded = ({ isLoaded, isOutside }: Backends.ProfileUnusable) => isOutside && (isLoaded || !isNone)
    return { degraded: failures.filter(isDegraded), refused: failures.filter((failure) => !isDegraded(failure)) }
  })

/**
 * Returns a sentence for everything that would make startup with all roles fail. Also returns a sentence for each
 * script that cannot be run, although startup only warns about such a script.
 */
export const faultsOf = (
  config: Config,
  { panel, version }: Pick<Installed, "panel" | "version">
): Effect.Effect<ReadonlyArray<string>> => {
  const served = config.profiles.filter(({ enabled }) => enabled)
  const checks = (
    refused: ReadonlyArray<Backends.ProfileUnusable>
  ): ReadonlyArray<Effect.Effect<unknown, { readonly message: string }>> => [
    checkAddresses(config, new Set(everyRole)),
    ...served.map((profile) => Effect.scoped(Layer.build(Graph.policiesOf(config, [profile], version)))),
    Effect.scoped(Layer.build(PublicKeys.layer(config.keys.blocklist_paths))),
    ...refused,
    Effect.scoped(Layer.build(Graph.deliveriesOf(config, version))),
    ...tlsFilesOf(config).map(TlsFiles.check),
    ...config.admin.enabled ? [templatesOf(config, panel)] : [],
    ...scriptsOf(config).map(executable)
  ]
  return Effect.gen(function*() {
    const { degraded, refused } = yield* signersOf(config)
    const found = yield* Effect.forEach(
      checks(refused),
      (check) => Effect.match(check, { onFailure: ({ message }) => [message], onSuccess: () => [] })
    )
    // If there are faults, the problems that would only degrade a profile are reported too, so that all of them can be
    // corrected at once.
    const faults = new Set(found.flat())
    return faults.size === 0 ? [] : [...new Set([...faults, ...degraded.map(({ message }) => message)])]
  })
}

/**
 * Returns an advisory as a sentence. If the advisory has a key, the sentence begins with that key: `admin.base_url:
 * tls_base_url_mismatch, base_url https://…`.
 */
const sentenceOf = ({ event, fields: { key, ...facts } }: Record): string =>
  [
    typeof key === "string" ? `${key}: ${event}` : event,
    ...Object.entries(facts).map(([name, value]) => `${name} ${String(value)}`)
  ].join(", ")

/**
 * Returns a sentence for each profile that would be served without issuance, and for each advisory of a process with
 * all roles.
 */
export const advisoriesOf = (
  loaded: Pick<Loaded, "config" | "filePresent" | "ignored" | "path" | "sources">
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.suspend(() => {
    const { config, ignored } = loaded
    const records: Array<Record> = []
    // The code that prints these sentences adds the places of their keys in the file.
    const unplaced = ignored.map(({ key, message }) => ({ key, message }))
    const advised = Effect.andThen(adviseOfFile({ ...loaded, ignored: unplaced }), advise(config, new Set(everyRole)))
    return Effect.zipWith(
      signersOf(config),
      Effect.provide(advised, layerMemory(records)),
      ({ degraded }) => [
        ...degraded.map(({ message }) =>
          `${message} Until this is corrected, the profile is served but issues no certificates.`
        ),
        ...records.filter(({ outcome }) => outcome === "advisory").map(sentenceOf)
      ]
    )
  })
