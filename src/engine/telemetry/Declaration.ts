/* The form of a declared event. */

/** Types of fields. */
export interface FieldTypes {
  readonly text: string
  /** A word of a closed set, for programs. */
  readonly word: string
  readonly int: number
  readonly bool: boolean
  /** A list of names. The record has the first ten of them. If there are more, it also has `<field>_total`. */
  readonly names: ReadonlyArray<string>
}

/** The fields that records may have, each with its type. */
export interface Dictionary {
  readonly [field: string]: keyof FieldTypes
}

/** The level of a record. */
export type Level = "debug" | "info" | "warn" | "error"

/**
 * The outcome of a record. `failure`: something did not work. `progress`: something has started, and its end is
 * recorded later. `advisory`: a remark about the setup.
 */
export type Outcome = "success" | "failure" | "progress" | "advisory"

/** The declaration of one event. The types of the level and the outcome say which other facts an event must have. */
export interface Declaration<F extends string = string, L extends Level = Level, O extends Outcome = Outcome> {
  readonly level: L
  readonly outcome: O
  readonly fields: ReadonlyArray<F>
}

/** Declares an event of this level and outcome, with these fields. */
const declare = <L extends Level, O extends Outcome>(level: L, outcome: O) =>
<const F extends ReadonlyArray<string>>(
  ...names: F
): Declaration<F[number], L, O> => ({ level, outcome, fields: names })

export const debug = declare("debug", "success")
/** Declares a failure that is not unusual, such as a stranger's failed handshake or a name that does not exist. */
export const debugFailure = declare("debug", "failure")
export const info = declare("info", "success")
export const progress = declare("info", "progress")
export const warn = declare("warn", "failure")
export const advisory = declare("warn", "advisory")
export const error = declare("error", "failure")
