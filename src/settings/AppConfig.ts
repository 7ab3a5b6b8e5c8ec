import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { ProxySource } from "../engine/net/Proxy.ts"
import type { Table } from "./Table.ts"

type Read = typeof Table.Type
type ReadProfile = Read["profiles"][string]

/**
 * One profile, in which every inherited value is filled in. The names of its members are the keys in
 * docs/reference/configuration.md, "Reference". Durations are integers in the unit with which the name of the key ends.
 */
export interface ProfileConfig extends ReadProfile {
  readonly name: string
}

/**
 * The whole configuration, checked and completed with defaults. The profiles are sorted by name, and include the parked
 * profiles.
 */
export interface Config extends Omit<Read, "profiles"> {
  readonly profiles: ReadonlyArray<ProfileConfig>
  /**
   * The proxies in the environment variables that many programs read. The keys `proxy.*` take precedence over these
   * variables.
   */
  readonly proxyVariables: ProxySource
}

/** The configuration in force. */
export class AppConfig extends Context.Service<AppConfig, Config>()("acme/settings/AppConfig") {
  /** Provides a resolved configuration. */
  static readonly layer = (config: Config): Layer.Layer<AppConfig> => Layer.succeed(this, config)
}
