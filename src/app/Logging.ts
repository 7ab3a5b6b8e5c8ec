import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { emit } from "../domain/words/Log.ts"
import type { LevelWord } from "../engine/telemetry/LogFilter.ts"
import { parseFilter } from "../engine/telemetry/LogFilter.ts"
import * as Sink from "../engine/telemetry/Sink.ts"
import type { Config } from "../settings/AppConfig.ts"
import { logFilter } from "../settings/LogFilterForm.ts"
import { Globals } from "../surfaces/cli/Globals.ts"
import { CommandFailed } from "./CommandFailed.ts"
import type { Output, Streams } from "./Host.ts"
import { Host } from "./Host.ts"

/**
 * Returns whether the output is coloured. An explicit flag decides. `auto` means that colours need a terminal and that
 * NO_COLOR turns them off.
 */
export const wantsColour = (flag: "auto" | "always" | "never", output: Output, env: Streams["env"]): boolean =>
  flag === "always" || (flag === "auto" && output.isTerminal && (env["NO_COLOR"] ?? "") === "")

type Flags = { readonly logLevel: LevelWord | undefined; readonly color: "auto" | "always" | "never" }

/** Refuses a value of RUST_LOG that would be refused in `logging.filter`. With `--log-level`, RUST_LOG is not read. */
export const checkVariable: Effect.Effect<void, CommandFailed, Host | Globals> = Effect.gen(function*() {
  const variable = (yield* Host).env["RUST_LOG"] ?? ""
  const { logLevel } = yield* Globals
  const fault = variable === "" || logLevel !== undefined ? undefined : logFilter.fault(variable)
  if (fault !== undefined) return yield* new CommandFailed({ code: 3, message: `RUST_LOG: ${fault}.` })
})

/**
 * Returns the filter in force, and its source. `--log-level` has precedence over RUST_LOG, which has precedence over
 * `logging.filter`.
 */
const filterOf = ({ filter }: Config["logging"], env: Streams["env"], { logLevel }: Flags) => {
  if (logLevel !== undefined) return { text: `acme_svc=${logLevel}`, source: "flag" } as const // only for our own target
  const variable = env["RUST_LOG"] ?? ""
  return variable === "" ? { text: filter, source: "key" } as const : { text: variable, source: "env" } as const
}

const outputOf = (logging: Config["logging"], streams: Streams): Output =>
  streams[logging.target === "stderr" ? "stderr" : "stdout"]

const optionsOf = (logging: Config["logging"], streams: Streams, flags: Flags): Sink.SinkOptions => {
  const output = outputOf(logging, streams)
  return {
    filter: parseFilter(filterOf(logging, streams.env, flags).text),
    json: logging.json_format,
    spanEvents: logging.span_events,
    flatten: logging.json_format && logging.flatten_event,
    colours: logging.ansi && wantsColour(flags.color, output, streams.env),
    briefRequests: output.isTerminal && !logging.json_format,
    isShared: streams.isShared === true,
    write: output.write
  }
}

/** The log of the process. It uses the `logging.*` settings that were applied last. */
export interface Log {
  /** Effect's own logger is removed: every record must be one of the defined events. */
  readonly layer: Layer.Layer<never>
  /** Applies new settings, beginning with the next record. */
  readonly enforce: (config: Pick<Config, "logging">) => Effect.Effect<void>
}

/** Makes a log that writes to the streams of a host, with its initial settings and flags. */
export const make = ({ logging }: Pick<Config, "logging">, streams: Streams, flags: Flags): Log => {
  let known = logging
  const sink = Sink.make(optionsOf(logging, streams, flags))
  return {
    layer: Layer.merge(sink.layer, Logger.layer([])),
    enforce: (config) =>
      Effect.suspend(() => {
        const isFilterNew = config.logging.filter !== known.filter
        known = config.logging
        sink.configure(optionsOf(known, streams, flags))
        const { source } = filterOf(known, streams.env, flags)
        return Effect.andThen(
          isFilterNew && source !== "key" ? emit("server_logging_filter_overridden", { source }) : Effect.void,
          advisories(config)
        )
      })
  }
}

/**
 * Provides the log of a command. Without a given level, nothing is logged. With a level, the log is written to standard
 * error.
 */
export const quiet = (
  { config }: { readonly config: Pick<Config, "logging"> }
): Layer.Layer<never, never, Host | Globals> =>
  Layer.unwrap(Effect.gen(function*() {
    const host = yield* Host
    const globals = yield* Globals
    const logLevel = globals.logLevel ?? ((host.env["RUST_LOG"] ?? "") === "" ? "off" as const : undefined)
    return make({ logging: { ...config.logging, target: "stderr" } }, host, { ...globals, logLevel }).layer
  }))

/** Logs advisories about the logging keys themselves. */
export const advisories = ({ logging }: Pick<Config, "logging">): Effect.Effect<void> =>
  logging.flatten_event && !logging.json_format
    ? emit("server_logging_key_unused", { key: "logging.flatten_event" })
    : Effect.void
