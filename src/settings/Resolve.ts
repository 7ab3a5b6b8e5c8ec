import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import type { Roles } from "../domain/Role.ts"
import { everyRole } from "../domain/Role.ts"
import type { Assembled, Source } from "../engine/config/Assemble.ts"
import { assemble, byName, merge } from "../engine/config/Assemble.ts"
import type { Fault } from "../engine/config/ConfigRefused.ts"
import { ConfigRefused } from "../engine/config/ConfigRefused.ts"
import { dotted, printableVariable, variableOf } from "../engine/config/KeyPath.ts"
import { tableOf } from "../engine/config/Salvage.ts"
import type { Environment, Layer, Written } from "../engine/config/Source.ts"
import { readEnvironment, readFile } from "../engine/config/Source.ts"
import { isExemption } from "../engine/net/Proxy.ts"
import type { Config } from "./AppConfig.ts"
import { makeInUse } from "./InUse.ts"
import { findings } from "./Rules.ts"
import { Table, table } from "./Table.ts"

/** The sources that {@link resolveConfig} reads. */
export interface Sources {
  /** The text of the file; `undefined` if there is no file. */
  readonly fileText: string | undefined
  /** Why a file that exists could not be read. This fault is reported together with the faults of the environment. */
  readonly fileFault?: string
  readonly env: Environment
  /** The name of the file, for faults of the file as a whole. The default is `config.toml`. */
  readonly fileName?: string
  /**
   * The directory in which relative paths are compared. If it is undefined, paths are compared as they were written.
   */
  readonly cwd?: string
  /** The roles of the process that uses the configuration. If they are undefined, the process has every role. */
  readonly roles?: Roles
  /** Finds the place of a key in the file. If it is undefined, faults have no place. */
  readonly placeOf?: PlaceOf
}

/**
 * Returns the place of the first given key that the file contains, such as `line 3 of config.toml`. If the file
 * contains none of the keys, returns the place of the innermost table that could contain the first one.
 */
export type PlaceOf = (...keys: readonly [string, ...ReadonlyArray<string>]) => string | undefined

/** A configuration, and the sources of its values. */
export interface Resolved {
  readonly config: Config
  /** The number of keys whose value comes from the file. A key that the environment overrides is not counted. */
  readonly keysFromFile: number
  /** The number of keys whose value comes from the environment. */
  readonly keysFromEnv: number
  /**
   * For each key, the source of its value. It lists every process-wide key, and every key of every profile by its full
   * name.
   */
  readonly sources: ReadonlyMap<string, Source>
  /**
   * The faults in sections that are off, and in keys that only other roles use. A key with such a fault has its default
   * (docs/contribute/decisions/configuration.md, "What is off").
   */
  readonly ignored: ReadonlyArray<Fault>
}

const placed = (fault: Fault, place: string | undefined): Fault => place === undefined ? fault : { ...fault, place }

const check = (placeOf: PlaceOf) => (written: Written): Result.Result<unknown, Fault> =>
  Result.mapError(Result.flatMap(written.raw, written.facts.read), (message) =>
    written.variable === undefined
      ? placed({ key: written.key, message }, placeOf(written.key))
      : { key: written.key, message: `${message} (${printableVariable(written.variable)})` })

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

const decode = Schema.decodeUnknownResult(Table, { errors: "all", onExcessProperty: "error" })

// HTTP_PROXY is never read, because a CGI host sets it to the value of a request header.
const readVariables = (env: Environment): Config["proxyVariables"] => {
  const first = (...names: ReadonlyArray<string>) =>
    names.map((name) => env[name]?.trim() ?? "").find((value) => value !== "") ?? ""
  // Many programs also accept these URLs without a scheme.
  const url = (text: string) => text === "" || text.includes("://") ? text : `http://${text}`
  return {
    http_url: url(first("http_proxy")),
    https_url: url(first("https_proxy", "HTTPS_PROXY")),
    // Some programs accept an entry with a port. The port does not matter here.
    no_proxy: first("no_proxy", "NO_PROXY").split(",").map((entry) => entry.trim().replace(/^([^:]+):\d+$/, "$1"))
      .filter(isExemption)
  }
}

const decodeTree = (tree: unknown, env: Environment): Result.Result<Config, ReadonlyArray<Fault>> =>
  Result.mapBoth(decode(tree), {
    onFailure: (error) =>
      formatIssues(error.issue).issues.map(({ message, path = [] }) => ({
        key: dotted(path.map(String)),
        message
      })),
    onSuccess: ({ profiles, ...sections }) => ({
      ...sections,
      profiles: Object.entries(profiles).sort(([left], [right]) => byName(left, right)).map(([name, profile]) => ({
        name,
        ...profile
      })),
      proxyVariables: readVariables(env)
    })
  })

/** A fault with all the keys that cause it, as they were written. */
interface Involving {
  readonly fault: Fault
  readonly involves: ReadonlyArray<string>
}

/**
 * Returns the faults that the rules over several keys find. A fault is dropped if it involves a key that is already
 * refused. It is also dropped if it is about a table that contains a refused key, because the refused key may be a
 * misspelling of the missing one. If the file does not set the key itself, the fault has the place of the first
 * involved key that the file sets.
 */
const crossFaults = (
  config: Config,
  { origins }: Assembled,
  unusable: ReadonlySet<string>,
  { cwd, placeOf = nowhere }: Sources
): ReadonlyArray<Involving> => {
  const from = (wanted: Source) =>
    new Set([...origins.values()].filter(({ source }) => source === wanted).map(({ key }) => key))
  const [file, environment] = [from("file"), from("env")]
  return findings({
    config,
    cwd,
    written: (key) => origins.get(key)?.key ?? key,
    isSet: (key) => (origins.get(key)?.source ?? "default") !== "default"
  })
    .filter(({ involves, key }) =>
      !involves.some((one) => unusable.has(one)) && ![...unusable].some((one) => one.startsWith(`${key}.`))
    )
    .map(({ involves, key, message }) => {
      const place = placeOf([key, ...involves].find((one) => file.has(one)) ?? key)
      return { fault: placed({ key, message }, environment.has(key) ? undefined : place), involves: [key, ...involves] }
    })
}

const nowhere: PlaceOf = () => undefined

/**
 * Reads and checks the sources, but does not apply the rules over several keys. A key with a fault gets its default.
 */
const read = (sources: Sources, file: Result.Result<Layer, string>) => {
  const { env, fileName = "config.toml", placeOf = nowhere } = sources
  const environment = readEnvironment(table, env)
  const layers = merge(Result.isSuccess(file) ? [file.success, environment] : [environment])
  const written = [...layers.values.values()]
  // An unknown key, or a text that is not TOML, may have been meant for any section.
  const unknown = [
    ...Result.isSuccess(file)
      ? file.success.faults.map((fault) => placed(fault, placeOf(fault.key)))
      : [{ key: fileName, message: file.failure }],
    ...environment.faults
  ]
  const unfit = written.map(check(placeOf)).filter(Result.isFailure).map(({ failure }) => failure)
  const unusable = new Set([...unknown, ...unfit].map(({ key }) => key))
  return { written, unknown, unfit, unusable, assembled: assemble(table, layers, unusable) }
}

const fileOf = ({ fileFault, fileText }: Sources): Result.Result<Layer, string> =>
  fileFault === undefined ? readFile(table, fileText ?? "") : Result.fail(fileFault)

/**
 * Resolves the sources: first the defaults, the file and the environment, then the inheritance of profiles, then the
 * rules. The failure lists every fault of every source (docs/contribute/decisions/configuration.md, "Layers first,
 * profiles second"). Faults of keys that are not used refuse nothing.
 */
export const resolveConfig = (sources: Sources): Result.Result<Resolved, ConfigRefused> => {
  const file = fileOf(sources)
  const { assembled, unfit, unknown, unusable, written } = read(sources, file)
  return Result.flatMap(
    Result.mapError(
      decodeTree(assembled.tree, sources.env),
      (faults) => ConfigRefused.of([...unknown, ...unfit, ...faults])
    ),
    (config) => {
      const isUsed = makeInUse(config, sources.roles ?? new Set(everyRole), assembled, unusable)
      const found = [
        ...unfit.map((fault) => ({ fault, involves: [fault.key] })),
        ...Result.isSuccess(file) ? crossFaults(config, assembled, unusable, sources) : []
      ]
      const [refused, ignored] = [true, false].map((wanted) =>
        found.filter(({ involves }) => involves.every(isUsed) === wanted).map(({ fault }) => fault)
      )
      const faults = [...unknown, ...refused ?? []]
      if (faults.length > 0) return Result.fail(ConfigRefused.of(faults))
      return Result.succeed({
        config,
        keysFromFile: written.filter(({ source }) => source === "file").length,
        keysFromEnv: written.filter(({ source }) => source === "env").length,
        sources: new Map([...assembled.origins].map(([key, { source }]) => [key, source])),
        ignored: ConfigRefused.of(ignored ?? []).faults
      })
    }
  )
}

/** A section that some commands need without any other section. */
export type NeededSection = "database" | "server" | "admin"

/** A configuration of which only a part could be read. */
export interface Readable {
  readonly config: Config
  /**
   * Whether the file is TOML. If it is, only the keys with a fault have their defaults. If it is not, only one section
   * of it was read.
   */
  readonly isFileRead: boolean
}

/**
 * Returns the readable part of a refused configuration, for work that needs one section. Returns undefined if that
 * section itself has a fault, or if it cannot be found in a file that is not TOML. `database.url` never has its default
 * here, because work on the wrong database would be worse than no work.
 */
export const readableConfig = (sources: Sources, section: NeededSection): Readable | undefined => {
  const whole = fileOf(sources)
  const isFileRead = Result.isSuccess(whole)
  const part = isFileRead || sources.fileText === undefined ? undefined : tableOf(sources.fileText, section)
  const file = part === undefined ? whole : readFile(table, part)
  const { assembled, unfit, unknown } = read(sources, file)
  const isFound = section === "database"
    ? (assembled.origins.get("database.url")?.source ?? "default") !== "default"
    : Result.isSuccess(file)
  // A variable with a misspelled name may also have been meant for this section.
  const isOfSection = ({ key }: Fault) =>
    key === section || key.startsWith(`${section}.`) || key.startsWith(variableOf([section]))
  if (!isFound || [...unknown, ...unfit].some(isOfSection) || (part !== undefined && Result.isFailure(file))) {
    return undefined
  }
  const config = Result.getOrUndefined(decodeTree(assembled.tree, sources.env))
  return config && { config, isFileRead }
}
