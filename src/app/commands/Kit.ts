import { Command, Options } from "@effect/cli"
import { Console, Effect, Layer } from "effect"
import { Queue } from "../../kernel/queue/Queue.ts"
import type { StorageFailed } from "../../kernel/sql/Database.ts"
import { Database } from "../../kernel/sql/Database.ts"
import * as Migrations from "../../kernel/sql/Migrations.ts"
import type { EventLog } from "../../kernel/telemetry/EventLog.ts"
import type { AtKeyboard } from "../../operations/Operator.ts"
import { Entropy } from "../../pki/Entropy.ts"
import type { Loaded } from "../../settings/Load.ts"
import type { Globals } from "../../surfaces/cli/Globals.ts"
import { CommandFailed } from "../CommandFailed.ts"
import * as Configuration from "../Configuration.ts"
import type { Streams } from "../Logging.ts"
import * as Logging from "../Logging.ts"
import { database } from "../OpenDatabase.ts"
import type { Process } from "../Serve.ts"
import { clampedFlag } from "./Flags.ts"

/** The surroundings of a command. */
export interface Host extends Streams {
  readonly cwd: string
  readonly process: Process
  readonly stdin: {
    readonly isTerminal: boolean
    /** The next line, without its end. */
    readonly readLine: Effect.Effect<string>
  }
}

/** What a command over stored records runs with. */
export type Records = Database | Entropy | Queue

/** What commands are made with. */
export interface Kit {
  readonly host: Host
  readonly globals: Globals
  readonly load: Effect.Effect<Loaded, CommandFailed>
  /** Commands keep silent unless a level is asked for, and then speak on stderr. */
  readonly quiet: (loaded: Loaded) => Layer.Layer<EventLog>
  /** Opens the configured database, whose schema must be current, and runs the program over it. */
  readonly records: <A>(
    program: (loaded: Loaded) => Effect.Effect<A, CommandFailed | StorageFailed, Records>
  ) => Effect.Effect<A, CommandFailed>
  /** Asks before something goes; fails unless the answer is yes, or `--yes` was given. */
  readonly confirm: (question: string) => Effect.Effect<void, CommandFailed>
  /** Who the environment says is at the keyboard. */
  readonly operator: AtKeyboard
}

const longestName = 64

const operatorOf = (env: Host["env"]): AtKeyboard => ({
  kind: "cli",
  id: ["SUDO_USER", "USER", "LOGNAME"].map((name) => env[name] ?? "").find((name) => name !== "")?.slice(0, longestName)
})

const current = (host: Host) =>
  Effect.gen(function*() {
    const { dialect } = yield* Database
    const migrations = yield* Migrations.read(host.process.migrations, dialect)
    return yield* Migrations.pending(migrations)
  }).pipe(
    Effect.mapError((error) =>
      new CommandFailed({ code: 1, message: error._tag === "SchemaUnusable" ? error.detail : error.message })
    ),
    Effect.filterOrFail(
      (pending) => pending.length === 0,
      () => new CommandFailed({ code: 1, message: "The schema of the database is behind; run `acme-svc migrate`." })
    )
  )

/** The kit of one run of the program. */
export const make = (host: Host, globals: Globals): Kit => {
  const load = Configuration.load(host.env, host.cwd)
  const quiet: Kit["quiet"] = ({ config }) => {
    const level = globals.logLevel ?? ((host.env["RUST_LOG"] ?? "") === "" ? "off" as const : undefined)
    return Logging.make({ logging: { ...config.logging, target: "stderr" } }, host, { ...globals, logLevel: level })
      .layer
  }
  return {
    host,
    globals,
    load,
    quiet,
    operator: operatorOf(host.env),
    records: (program) =>
      Effect.flatMap(load, (loaded) =>
        Effect.zipRight(current(host), program(loaded)).pipe(
          Effect.catchTag("StorageFailed", ({ message }) => new CommandFailed({ code: 1, message })),
          Effect.provide(Queue.layer({ maxAttempts: () => loaded.config.jobs.max_attempts })),
          Effect.provide(Layer.merge(database(loaded.config), Entropy.layer)),
          Effect.provide(quiet(loaded))
        )),
    confirm: (question) => {
      if (globals.yes) return Effect.void
      if (!host.stdin.isTerminal) {
        return new CommandFailed({ code: 2, message: "Nobody can be asked here: say --yes to go ahead." })
      }
      return Effect.sync(() => host.stderr.write(`${question} [y/N] `)).pipe(
        Effect.zipRight(host.stdin.readLine),
        Effect.filterOrFail(
          (answer) => /^y(?:es)?$/i.test(answer.trim()),
          () => new CommandFailed({ code: 3, message: "Nothing was changed." })
        ),
        Effect.asVoid
      )
    }
  }
}

export const jsonOption = Options.boolean("json").pipe(Options.withDescription("Print JSON."))

const largestPage = 10_000

/** `--limit` and `--offset`, clamped rather than refused. */
export const pageOptions = {
  limit: clampedFlag("limit", { least: 1, most: largestPage }).pipe(
    Options.withDefault(50),
    Options.withDescription("Rows to print, at most 10000.")
  ),
  offset: clampedFlag("offset", { least: 0, most: Number.MAX_SAFE_INTEGER }).pipe(
    Options.withDefault(0),
    Options.withDescription("Rows to skip.")
  )
}

export const described = <N extends string, R, E, A>(self: Command.Command<N, R, E, A>, text: string) =>
  Command.withDescription(self, text)

/** Prints an object as JSON or as text. */
export const print = (json: boolean, object: unknown, text: () => string): Effect.Effect<void> =>
  Console.log(json ? JSON.stringify(object) : text())

/** A word of a closed set; anything else cannot be done as asked. */
export const wordOf = <W extends string>(flag: string, words: ReadonlyArray<W>, given: string | undefined) => {
  if (given === undefined) return Effect.succeed(undefined)
  const word = words.find((one) => one === given)
  return word === undefined
    ? new CommandFailed({ code: 3, message: `--${flag} takes one of ${words.join(", ")}.` })
    : Effect.succeed(word)
}
