import { Effect, Layer } from "effect"
import { everyRole } from "../domain/Role.ts"
import { isExecutable } from "../kernel/host/Files.ts"
import * as TlsFiles from "../kernel/http/TlsFiles.ts"
import { PublicKeys } from "../services/keys/PublicKeys.ts"
import * as Backends from "../services/signing/Backends.ts"
import type { Config } from "../settings/AppConfig.ts"
import { checkAddresses } from "./Addresses.ts"
import * as Graph from "./Graph.ts"

/* Finds everything that a start would refuse. It binds no socket and changes no file. */

/** The scripts of the served profiles, each with the key that names it. */
const scriptsOf = ({ profiles }: Config): ReadonlyArray<readonly [key: string, path: string]> =>
  profiles.filter(({ enabled }) => enabled).flatMap(({ filter, name, signer }) => [
    ...signer.backend === "custom"
      ? [[`profiles.${name}.signer.custom.script_path`, signer.custom.script_path] as const]
      : [],
    ...Object.entries(filter.check).flatMap(([check, { script_path, type }]) =>
      type === "custom" ? [[`profiles.${name}.filter.check.${check}.script_path`, script_path] as const] : []
    )
  ])

const executable = ([key, path]: readonly [string, string]) =>
  Effect.flatMap(
    isExecutable(path),
    (isIt) => isIt ? Effect.void : Effect.fail({ message: `${key}: ${path} is not an executable file.` })
  )

const tlsOf = ({ admin, server }: Config): ReadonlyArray<TlsFiles.TlsFileSettings> =>
  ([["acme", true, server], ["admin", admin.enabled, admin]] as const).flatMap(
    ([listener, isServed, { base_url, tls }]) =>
      isServed && tls.enabled
        ? [{ listener, cert_path: tls.cert_path, key_path: tls.key_path, host: new URL(base_url).hostname }]
        : []
  )

/** One sentence for each thing that a start with every role would refuse. The list is empty when the start would succeed. */
export const faultsOf = (config: Config, version: string): Effect.Effect<ReadonlyArray<string>> => {
  const served = config.profiles.filter(({ enabled }) => enabled)
  const checks: ReadonlyArray<Effect.Effect<unknown, { readonly message: string }>> = [
    checkAddresses(config, new Set(everyRole)),
    ...served.map((profile) => Effect.scoped(Layer.build(Graph.policiesOf(config, [profile], version)))),
    Effect.scoped(Layer.build(PublicKeys.layer(config.keys.blocklist_paths))),
    ...served.map(Backends.check),
    Effect.scoped(Layer.build(Graph.deliveriesOf(config, version))),
    ...tlsOf(config).map(TlsFiles.check),
    ...scriptsOf(config).map(executable)
  ]
  return Effect.map(
    Effect.forEach(
      checks,
      (check) => Effect.match(check, { onFailure: ({ message }) => [message], onSuccess: () => [] })
    ),
    (found) => [...new Set(found.flat())]
  )
}
