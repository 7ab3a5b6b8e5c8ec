import { Effect, Layer, Logger } from "effect"
import type { Config } from "../subsystems/config/AppConfig.ts"
import type { EventLog } from "../subsystems/log/EventLog.ts"
import { emit } from "../subsystems/log/EventLog.ts"
import type { LevelWord } from "../subsystems/log/Filter.ts"
import { parseFilter } from "../subsystems/log/Filter.ts"
import * as Sink from "../subsystems/log/Sink.ts"

/** The process's output streams. */
interface Output {
  readonly isTerminal: boolean
  readonly write: (text: string) => void
}

export interface Streams {
  readonly stdout: Output
  readonly stderr: Output
  readonly env: { readonly [name: string]: string | undefined }
}

/** Whether to colour: an explicit flag wins; `auto` asks for a terminal and honours NO_COLOR. */
export const wantsColour = (flag: "auto" | "always" | "never", output: Output, env: Streams["env"]): boolean =>
  flag === "always" || (flag === "auto" && output.isTerminal && (env["NO_COLOR"] ?? "") === "")

/**
 * The sink of `logging.*`. `--log-level` beats RUST_LOG, which beats `logging.filter`; the flag covers our own target.
 * Effect's own logger is silenced: every record goes through the vocabulary.
 */
export const layer = (
  { logging }: Pick<Config, "logging">,
  streams: Streams,
  flags: { readonly logLevel: LevelWord | undefined; readonly color: "auto" | "always" | "never" }
): Layer.Layer<EventLog> => {
  const output = streams[logging.target === "stderr" ? "stderr" : "stdout"]
  const variable = streams.env["RUST_LOG"] ?? ""
  const filter = flags.logLevel === undefined ? variable || logging.filter : `acme_svc=${flags.logLevel}`
  return Layer.merge(
    Sink.layer({
      filter: parseFilter(filter),
      json: logging.json_format,
      flatten: logging.json_format && logging.flatten_event,
      colours: logging.ansi && wantsColour(flags.color, output, streams.env),
      write: output.write
    }),
    Logger.remove(Logger.defaultLogger)
  )
}

/** What there is to say about the logging keys themselves. */
export const advisories = ({ logging }: Pick<Config, "logging">): Effect.Effect<void> =>
  logging.flatten_event && !logging.json_format
    ? emit("server_logging_key_unused", { key: "logging.flatten_event" })
    : Effect.void
