import * as Redacted from "effect/Redacted"
import type { Source } from "../engine/config/Assemble.ts"
import type { Node } from "../engine/config/Key.ts"
import { dotted } from "../engine/config/KeyPath.ts"
import type { Config } from "./AppConfig.ts"
import { maskedDatabaseUrl } from "./DatabaseUrl.ts"
import type { Resolved } from "./Resolve.ts"
import { table } from "./Table.ts"

/* Lists the configuration in force, key by key, without any secret. */

/** One key in force. */
export interface EffectiveKey {
  /** The full name of the key. A key of a profile begins with `profiles.<name>`. */
  readonly key: string
  /**
   * The value, or undefined if the key is unset and has no default. A secret is shown as `***`, and the URL of a
   * webhook as its host. Each argument of a program counts as a secret.
   */
  readonly value: string | number | boolean | ReadonlyArray<string> | undefined
  readonly source: Source
  /** Whether the key holds a secret. */
  readonly isSecret: boolean
}

const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !Redacted.isRedacted(value)

const within = (value: unknown, name: string): unknown => isRecord(value) ? value[name] : undefined

const isWebhookUrl = (key: string): boolean => /(?:^|\.)notify\.webhook\.[^.]+\.url$/.test(key)

const databaseUrls = new Set(["database.url", "database.listen_url", "database.read_url"])

/** Masks a secret. In a database URL, only the password is masked. Of a webhook's URL, only the host is kept. */
const masked = (key: string, secret: Redacted.Redacted<unknown>): string | ReadonlyArray<string> => {
  const value = Redacted.value(secret)
  if (Array.isArray(value)) return value.map(() => "***")
  const text = String(value)
  if (databaseUrls.has(key) && text !== "") {
    return maskedDatabaseUrl(Redacted.make(text))
  }
  if (isWebhookUrl(key) && URL.canParse(text)) return new URL(text).host
  return text === "" ? "" : "***"
}

/** Masks the user part and the query of a URL, which may be secret even if the URL as a whole is not. */
const withoutSecrets = (text: string): string => {
  if (!URL.canParse(text)) return text
  const url = new URL(text)
  if (url.username === "" && url.password === "" && url.search === "") return text
  return `${url.protocol}//${url.username + url.password === "" ? "" : "***@"}${url.host}${url.pathname}${
    url.search === "" ? "" : "?***"
  }`
}

const shown = (key: string, value: unknown): EffectiveKey["value"] =>
  Redacted.isRedacted(value)
    ? masked(key, value)
    : typeof value === "string" && key.endsWith("signer.relay.directory_url")
    ? withoutSecrets(value)
    : value as EffectiveKey["value"]

/**
 * Returns whether the configuration file contains a secret. The arguments of programs do not count, because they may be
 * any text.
 */
export const hasSecretInFile = (resolved: Pick<Resolved, "config" | "sources">): boolean =>
  [undefined, ...resolved.config.profiles.map(({ name }) => name)]
    .flatMap((profile) => effectiveKeys(resolved, profile) ?? [])
    .some(({ isSecret, key, source, value }) =>
      isSecret && source === "file" && typeof value === "string" && (isWebhookUrl(key) || value.includes("***"))
    )

/** Returns the value of a key such as `database.url` as text without secrets. */
export const shownAt = (config: Config, key: string): string =>
  String(shown(key, key.split(".").reduce<unknown>((value, name) => within(value, name), config)) ?? "")

/** Returns every key below a node of the table, with its value in force. */
const keysOf = (
  node: Node,
  path: ReadonlyArray<string>,
  value: unknown,
  sources: Resolved["sources"]
): ReadonlyArray<EffectiveKey> => {
  if (node._tag === "Key") {
    const key = dotted(path)
    const source = sources.get(key) ?? "default"
    return [{ key, value: shown(key, value), source, isSecret: node.facts.secret }]
  }
  const below = node._tag === "Entries"
    ? Object.keys(isRecord(value) ? value : {}).map((name) => [name, node.entry] as const)
    : [...node.fields]
  return below.flatMap(([name, child]) => keysOf(child, [...path, name], within(value, name), sources))
}

/**
 * Returns the keys in force: either the process-wide keys, or the keys of one profile with everything that the profile
 * inherits. Returns undefined if the profile does not exist.
 */
export const effectiveKeys = (
  { config, sources }: Pick<Resolved, "config" | "sources">,
  profile: string | undefined
): ReadonlyArray<EffectiveKey> | undefined => {
  if (table._tag !== "Section") return []
  const { profiles, ...wide } = config
  if (profile === undefined) {
    return [...table.fields].flatMap(([name, node]) =>
      name === "profiles" ? [] : keysOf(node, [name], within(wide, name), sources)
    )
  }
  const entries = table.fields.get("profiles")
  const found = profiles.find(({ name }) => name === profile)
  return found === undefined || entries?._tag !== "Entries"
    ? undefined
    : keysOf(entries.entry, ["profiles", profile], found, sources)
}
