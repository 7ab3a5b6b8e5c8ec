import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Roles } from "../domain/Role.ts"
import type { Config } from "../settings/AppConfig.ts"
import type { ConfigFile, Loaded } from "../settings/Load.ts"
import { loadConfig, loadSection, readConfigFile } from "../settings/Load.ts"
import type { NeededSection } from "../settings/Resolve.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { Host } from "./Host.ts"

const refused = ({ message }: { readonly message: string }) => new CommandFailed({ code: 3, message })

/** Reads the configuration of a host. Reports all faults at once, with exit code 3. */
const read = (
  { cwd, env }: Host["Service"],
  roles?: Roles,
  file?: ConfigFile
): Effect.Effect<Loaded, CommandFailed> => Effect.mapError(loadConfig({ env, cwd, roles, file }), refused)

/**
 * Reads the part of the configuration that work on one section needs. Remarks about a refused configuration are printed
 * at once.
 */
const readSection = ({ cwd, env }: Host["Service"], section: NeededSection): Effect.Effect<Config, CommandFailed> =>
  loadSection({ cwd, env }, section).pipe(
    Effect.mapError(({ message }) =>
      refused({ message: `${message}\nNor can the section ${section} alone be used, which this command needs.` })
    ),
    Effect.tap(({ remark }) => remark === undefined ? Effect.void : Console.error(`Warning: ${remark}`)),
    Effect.map(({ config }) => config)
  )

const gone = ({ path }: ConfigFile) => refused({ message: `${path} was there before, and does not exist any more.` })

/** The configuration, from the file and the variables of the host. */
export class Settings extends Context.Service<Settings, {
  /** The configuration. It is read at the first use and then kept, because a command uses only one configuration. */
  readonly loaded: Effect.Effect<Loaded, CommandFailed>
  /** The configuration of a command that needs nothing but the database. It is also kept. */
  readonly forRecords: Effect.Effect<Config, CommandFailed>
  /** The configuration of a command that needs nothing but one listener. */
  readonly forListener: (section: "server" | "admin") => Effect.Effect<Config, CommandFailed>
  /**
   * Reads the configuration again, for a process with these roles. Faults in keys that only other roles use are
   * tolerated. If the file is given, it is not read again. A file that has disappeared since it was read is refused:
   * with the defaults in its place, a service would lose its policies without a word.
   */
  readonly fresh: (roles: Roles, file?: ConfigFile) => Effect.Effect<Loaded, CommandFailed>
}>()("acme/app/Settings") {
  static readonly layer: Layer.Layer<Settings, never, Host> = Layer.effect(
    this,
    Effect.gen(function*() {
      const host = yield* Host
      let wasPresent = false
      const fresh = (roles: Roles, given?: ConfigFile) =>
        Effect.gen(function*() {
          const file = given ?? (yield* readConfigFile(host))
          const isAbsent = file.text === undefined && file.fault === undefined
          if (isAbsent && wasPresent) return yield* gone(file)
          wasPresent ||= file.text !== undefined
          return yield* read(host, roles, file)
        })
      const loaded = yield* Effect.cached(read(host))
      const whole = Effect.map(loaded, ({ config }) => config)
      const forSection = (section: NeededSection) => Effect.catch(whole, () => readSection(host, section))
      return { loaded, fresh, forRecords: yield* Effect.cached(forSection("database")), forListener: forSection }
    })
  )

  /** The configuration that a command uses. */
  static readonly loaded: Effect.Effect<Loaded, CommandFailed, Settings> = Effect.flatMap(this, ({ loaded }) => loaded)

  /**
   * The configuration of a command on stored records. If the configuration is refused, the command says so. It
   * continues with the readable part, as long as `database.*` can be read.
   */
  static readonly forRecords: Effect.Effect<Config, CommandFailed, Settings> = Effect.flatMap(
    this,
    ({ forRecords }) => forRecords
  )
}
