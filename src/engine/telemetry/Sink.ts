import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { escapeHidden } from "../HiddenText.ts"
import { engineEvents } from "./EngineLog.ts"
import type { Record as LogRecord } from "./EventLog.ts"
import { EventLog } from "./EventLog.ts"
import type { Filter } from "./LogFilter.ts"
import { targetOf } from "./LogFilter.ts"

/** How records are rendered, and where the text is written. */
export interface SinkOptions {
  readonly filter: Filter
  readonly json: boolean
  /** Which of the events `span_opened` and `span_closed` are written: none of them, only the second, or both. */
  readonly spanEvents: "none" | "close" | "full"
  /** Whether the fields of the event are at the top level of a record. This matters only with `json`. */
  readonly flatten: boolean
  readonly colours: boolean
  /** Whether a request is one short line, so that what a person has to read stays on the screen. Not with `json`. */
  readonly briefRequests: boolean
  /**
   * Whether other processes write to the same stream. Then no write is longer than what a pipe takes as a whole, so that
   * lines of different processes do not mix.
   */
  readonly isShared: boolean
  /**
   * Writes whole lines, and calls `done` when the system has taken them, with the error if they were lost. A function
   * that never calls `done` counts as losing nothing.
   */
  readonly write: (text: string, done: (error: NodeJS.ErrnoException | null | undefined) => void) => void
}

/** The state of the stream to which the log is written. */
export interface OutputState {
  /** How many writes were lost since the process started. */
  readonly lost: number
  /** The system's error code for the last write, such as `ENOSPC`. Present if that write was lost. */
  readonly trouble: string | undefined
}

/** No write was lost. */
const nothingLost: OutputState = { lost: 0, trouble: undefined }

/**
 * The state of the log's stream. Readiness and metrics report it, because a log that cannot be written cannot report
 * that itself. By default, nothing was lost.
 */
export const LogOutput = Context.Reference<{ readonly state: () => OutputState }>("acme/engine/telemetry/LogOutput", {
  defaultValue: () => ({ state: () => nothingLost })
})

const maxText = 500
const maxNames = 10

const cut = (value: unknown): unknown =>
  typeof value === "string" && value.length > maxText ? value.slice(0, maxText) : value

/** Leaves out values that are unknown. Shortens long texts and long lists of names. */
const bounded = (record: LogRecord): { [name: string]: unknown } => {
  const out: { [name: string]: unknown } = { event: record.event, outcome: record.outcome }
  for (const name in record.fields) {
    const value = record.fields[name]
    if (value === undefined) continue
    if (Array.isArray(value)) {
      out[name] = value.slice(0, maxNames).map(cut)
      if (value.length > maxNames) out[`${name}_total`] = value.length
    } else {
      out[name] = cut(value)
    }
  }
  return out
}

interface Common {
  readonly target: string
  readonly message: string
}

const commons = new Map<string, Common>()

/** Returns the parts that all records of an event have in common. */
const commonOf = (event: string): Common => {
  let common = commons.get(event)
  if (common === undefined) {
    common = { target: targetOf(event), message: event.replaceAll("_", " ") }
    commons.set(event, common)
  }
  return common
}

const renderJson = (record: LogRecord, flatten: boolean): string => {
  const { message, target } = commonOf(record.event)
  const head = `{"timestamp":"${new Date(record.at).toISOString()}","level":"${record.level}","target":"${target}",`
  const facts = bounded(record)
  facts["message"] = message
  const fields = JSON.stringify(facts)
  // Text from outside must neither break the line nor reach a terminal unescaped. JSON escapes only few such
  // characters.
  const line = `${head}${flatten ? fields.slice(1, -1) : `"fields":${fields}`},"span":${JSON.stringify(record.span)}}`
  return escapeHidden(line)
}

const colours = { debug: 34, info: 32, warn: 33, error: 31 } as const

// A quoted value is made from the original text, because `JSON.stringify` does the escaping.
const printable = (value: unknown): string => {
  const text = typeof value === "string" ? value : JSON.stringify(value)
  const escaped = escapeHidden(text)
  return /[\s"=]/.test(escaped) || escaped === "" ? escapeHidden(JSON.stringify(text)) : escaped
}

const pairs = (values: { readonly [name: string]: unknown }): string =>
  Object.entries(values).filter(([, value]) => value !== undefined).map(([name, value]) =>
    `${name}=${printable(value)}`
  )
    .join(" ")

/** How many characters of a request the short form shows. */
const briefLength = 100

/**
 * Renders the record of a request in a short form: the time of day, the level if it is not `info`, the status, the
 * request, and the milliseconds. The id is there if the request failed, because it leads to the cause.
 */
const renderRequest = (record: LogRecord, level: string): string => {
  const { latency_ms, status } = record.fields
  const { client_ip, method, request_id, uri } = record.span
  const asked = method === undefined ? `no request, from ${String(client_ip)}` : `${String(method)} ${String(uri)}`
  const shown = asked.length > briefLength ? `${asked.slice(0, briefLength)}…` : asked
  return [
    `${new Date(record.at).toISOString().slice(11, 19)}Z`,
    ...record.level === "info" ? [] : [level.trimEnd()],
    String(status),
    escapeHidden(shown),
    `${String(latency_ms)} ms`,
    ...Number(status) >= 400 && request_id !== undefined ? [escapeHidden(String(request_id))] : []
  ].join(" ")
}

const renderHuman = (
  record: LogRecord,
  { briefRequests, colours: coloured }: Pick<SinkOptions, "briefRequests" | "colours">
): string => {
  const { event, ...rest } = bounded(record)
  const level = record.level.toUpperCase().padEnd(5)
  const shown = coloured ? `\u001b[${colours[record.level]}m${level}\u001b[0m` : level
  if (briefRequests && event === "request_completed") return renderRequest(record, shown)
  const unsaid = Object.fromEntries(Object.entries(record.span).filter(([name, value]) => rest[name] !== value))
  return [new Date(record.at).toISOString(), shown, String(event), pairs(rest), pairs(unsaid)]
    .filter((part) => part !== "").join(" ")
}

/** Renders one record as one line, without the line end. */
const render = (
  record: LogRecord,
  options: Pick<SinkOptions, "briefRequests" | "colours" | "flatten" | "json">
): string => options.json ? renderJson(record, options.flatten) : renderHuman(record, options)

/** How many octets a pipe takes as a whole, whoever else writes to it (`PIPE_BUF` of Linux). */
const wholeBytes = 4096

/** Returns texts of whole lines that are not longer than {@link wholeBytes}, unless one line is. */
const inPieces = (lines: ReadonlyArray<string>): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  let [piece, bytes] = ["", 0]
  for (const line of lines) {
    const more = Buffer.byteLength(line) + 1
    if (bytes > 0 && bytes + more > wholeBytes) {
      pieces.push(piece)
      ;[piece, bytes] = ["", 0]
    }
    piece += `${line}\n`
    bytes += more
  }
  return [...pieces, piece]
}

/** Makes the record that says how many writes were lost. It is written as soon as a write succeeds again. */
const gap = (count: number): LogRecord => {
  const { level, outcome } = engineEvents.server_log_gap
  return { event: "server_log_gap", level, outcome, at: Date.now(), fields: { count }, span: {} }
}

const isWanted = (event: string, spanEvents: SinkOptions["spanEvents"]): boolean =>
  event === "span_opened" ? spanEvents === "full" : event !== "span_closed" || spanEvents !== "none"

/** A sink for records. */
export interface Sink {
  /** The log, and the state of its stream. When the scope ends, the records that are still waiting are written. */
  readonly layer: Layer.Layer<never>
  /**
   * Changes the options. They apply from the next record on. Records that are already waiting are written with the old
   * options.
   */
  readonly configure: (options: SinkOptions) => void
}

/** Makes a sink that writes records as lines. Several lines may be one write. */
export const make = (given: SinkOptions): Sink => {
  let options = given
  let waiting: Array<string> = []
  const passes = new Map<string, boolean>()
  let state = nothingLost
  let told = 0
  const written = (error: NodeJS.ErrnoException | null | undefined) => {
    if (error !== null && error !== undefined) state = { lost: state.lost + 1, trouble: error.code ?? error.message }
    else if (state.trouble !== undefined) state = { lost: state.lost, trouble: undefined }
  }
  const flush = () => {
    if (waiting.length === 0) return
    const lines = waiting
    waiting = []
    if (state.lost > told && state.trouble === undefined) {
      lines.push(render(gap(state.lost - told), options))
      told = state.lost
    }
    if (!options.isShared) return options.write(`${lines.join("\n")}\n`, written)
    for (const piece of inPieces(lines)) options.write(piece, written)
  }
  const log: EventLog = {
    enabled: (event, level) => {
      const name = `${event} ${level}`
      let known = passes.get(name)
      if (known === undefined) {
        known = isWanted(event, options.spanEvents) && options.filter(targetOf(event), level)
        passes.set(name, known)
      }
      return known
    },
    // All lines of one turn of the event loop are written by one call. An error may be the last record of the process,
    // so it is written at once.
    write: (record) => {
      if (waiting.push(render(record, options)) === 1) setImmediate(flush)
      if (record.level === "error") flush()
    }
  }
  return {
    layer: Layer.merge(
      Layer.effect(EventLog, Effect.acquireRelease(Effect.succeed(log), () => Effect.sync(flush))),
      Layer.succeed(LogOutput, { state: () => state })
    ),
    configure: (next) => {
      flush()
      options = next
      passes.clear()
    }
  }
}
