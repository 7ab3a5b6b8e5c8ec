import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { ProxySource } from "../engine/net/Proxy.ts"
import type { Table } from "./Table.ts"

type Read = typeof Table.Type
type ReadProfile = Read["profiles"][string]

/**
 * One profile with every inherited value filled in. Member names are the keys of docs/configuration.md, "Reference";
 * durations are integers in the unit at the end of the key's name.
 */
export interface ProfileConfig extends ReadProfile {
  readonly name: string
}

/** The whole configuration, checked and with defaults. Profiles are sorted by name and include the parked profiles. */
export interface Config extends Omit<Read, "profiles"> {
  readonly profiles: ReadonlyArray<ProfileConfig>
  /** Proxies from the environment variables that many programs read. `proxy.*` takes precedence over them. */
  readonly proxyVariables: ProxySource
}

/** The configuration in force. */
export class AppConfig extends Context.Service<AppConfig, Config>()("acme/settings/AppConfig") {
  /** Provides a resolved configuration. */
  static readonly layer = (config: Config): Layer.Layer<AppConfig> => Layer.succeed(this, config)
}
