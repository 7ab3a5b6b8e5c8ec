import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as nodePath from "node:path"
import type { Roles } from "../domain/Role.ts"
import type { ConfigRefused } from "../engine/config/ConfigRefused.ts"
import { fileVariable } from "../engine/config/KeyPath.ts"
import type { Environment } from "../engine/config/Source.ts"
import { readText } from "../engine/host/Files.ts"
import type { Config } from "./AppConfig.ts"
import { withFilesAt } from "./Placed.ts"
import type { NeededSection, PlaceOf, Readable, Resolved, Sources } from "./Resolve.ts"
import { readableConfig, resolveConfig } from "./Resolve.ts"

/** A configuration, the sources of its values, and facts about the file. */
export interface Loaded extends Resolved {
  /** The absolute path of the file that was read or, if no file was read, of the file that is absent. */
  readonly path: string
  readonly filePresent: boolean
  /** `ACME_SVC_CONFIG` names a file that does not exist: the advisory `server_config_file_absent`. */
  readonly fileNamedButAbsent: boolean
  /** Finds the places of the keys in the file. */
  readonly places: Effect.Effect<PlaceOf>
  /** The file as it was read, from which another process can load the same configuration. */
  readonly file: ConfigFile
}

/**
 * A configuration file as it was read. It has a text, or the reason why it cannot be read, or neither if the file does
 * not exist.
 */
export interface ConfigFile {
  readonly path: string
  readonly text?: string
  readonly fault?: string
}

/** The surroundings of a program: its directory, its environment variables and, if it serves, its roles. */
interface Surroundings {
  readonly cwd: string
  readonly env: Environment
  readonly roles?: Roles | undefined
  /** The file, if it has already been read. */
  readonly file?: ConfigFile | undefined
}

const absentCodes = ["ENOENT", "ENOTDIR"]

/**
 * Reads the file at the given path or, if there is none, at the path with the extension. A directory at the first path
 * does not hide a file at the second.
 */
const readFirst = Effect.fnUntraced(function*(paths: ReadonlyArray<string>): Effect.fn.Return<ConfigFile> {
  let directory: ConfigFile | undefined
  for (const path of paths) {
    const reading = yield* Effect.result(readText(path))
    if (Result.isSuccess(reading)) return { path, text: reading.success }
    const { code = "", reason } = reading.failure
    if (absentCodes.includes(code)) continue
    const file = { path, fault: reason }
    if (code !== "EISDIR") return file
    directory ??= file
  }
  return directory ?? { path: paths[0] ?? "" }
})

/** Finds the places of the keys in a file. The module that does this is loaded only here, not at every startup. */
const placesOf = (path: string, text: string | undefined): Effect.Effect<PlaceOf> =>
  text === undefined ? Effect.succeed(() => undefined) : Effect.map(
    Effect.promise(() => import("../engine/config/Lines.ts")),
    ({ lineOf, linesOf }) => {
      const lines = linesOf(text)
      return (...keys) => {
        const line = lineOf(lines, ...keys)
        return line === undefined ? undefined : `line ${line} of ${nodePath.basename(path)}`
      }
    }
  )

const readSources = Effect.fnUntraced(function*({ cwd, env, file: known, roles }: Surroundings) {
  const named = env[fileVariable] === "" ? undefined : env[fileVariable]
  const given = nodePath.resolve(cwd, named ?? "config.toml")
  const paths = given.endsWith(".toml") ? [given] : [given, `${given}.toml`]
  const file = known ?? (yield* readFirst(paths))
  const { fault, path, text: fileText } = file
  const sources: Sources = {
    fileText,
    env,
    cwd,
    fileName: path,
    ...roles === undefined ? {} : { roles },
    ...fault === undefined ? {} : { fileFault: fault }
  }
  const filePresent = fileText !== undefined
  const fileNamedButAbsent = named !== undefined && fault === undefined && !filePresent
  return { sources, file, path, filePresent, fileNamedButAbsent }
})

/** Reads the file of a configuration, and judges nothing in it. */
export const readConfigFile = (surroundings: Surroundings): Effect.Effect<ConfigFile> =>
  Effect.map(readSources(surroundings), ({ file }) => file)

type Read = Effect.Success<ReturnType<typeof readSources>>

const resolve = Effect.fnUntraced(function*(
  { file, fileNamedButAbsent, filePresent, path, sources }: Read
): Effect.fn.Return<Loaded, ConfigRefused> {
  const places = placesOf(path, sources.fileText)
  const first = resolveConfig(sources)
  const resolved = yield* Effect.fromResult(Result.mapError(
    Result.isSuccess(first) && first.success.ignored.length === 0
      ? first
      : resolveConfig({ ...sources, placeOf: yield* places }),
    // The missing values may be in the file that does not exist.
    (refused) => fileNamedButAbsent ? refused.advised(`${fileVariable} names ${path}, which does not exist.`) : refused
  ))
  return {
    ...resolved,
    config: withFilesAt(sources.cwd ?? "", resolved.config),
    path,
    filePresent,
    fileNamedButAbsent,
    places,
    file
  }
})

/**
 * Reads and resolves the configuration. The file is `config.toml` in `cwd`, or the file that ACME_SVC_CONFIG names (the
 * extension is optional, and an empty value names no file). The environment overrides the file. A missing file is no
 * fault. An unreadable file is a fault, which is reported together with all faults of the environment
 * (docs/reference/configuration.md, "Where values come from").
 */
export const loadConfig = Effect.fn("Config.load")((surroundings: Surroundings) =>
  Effect.flatMap(readSources(surroundings), resolve)
)

/** A configuration for work that needs only one section. */
export interface Portion {
  readonly config: Config
  /** A sentence about a refused configuration. Undefined if the configuration was accepted. */
  readonly remark: string | undefined
}

const remarkOn = ({ filePresent, path }: Read, { isFileRead }: Readable, section: NeededSection): string => {
  const what = filePresent ? path : "The configuration"
  const rest = isFileRead
    ? "Keys with a fault count as their defaults."
    : `Only the section ${section} and the variables were read: other keys have their defaults, and nobody whom the file names is notified.`
  return `${what} is refused, and \`acme-svc config check\` says why. ${rest}`
}

/**
 * Loads the configuration like {@link loadConfig}. But if the configuration is refused and the needed section has no
 * fault, the readable part of the configuration is used (docs/contribute/decisions/configuration.md, "Commands that
 * need the database alone").
 */
export const loadSection = Effect.fn("Config.loadSection")(function*(
  surroundings: Surroundings,
  section: NeededSection
): Effect.fn.Return<Portion, ConfigRefused> {
  const read = yield* readSources(surroundings)
  return yield* Effect.matchEffect(resolve(read), {
    onSuccess: ({ config }) => Effect.succeed({ config, remark: undefined }),
    onFailure: (refused) => {
      const readable = readableConfig(read.sources, section)
      return readable === undefined ? Effect.fail(refused) : Effect.succeed({
        config: withFilesAt(surroundings.cwd, readable.config),
        remark: remarkOn(read, readable, section)
      })
    }
  })
})
