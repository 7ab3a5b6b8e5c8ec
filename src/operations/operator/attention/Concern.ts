import type { AttentionCause, Severity } from "../../../domain/words/AttentionCause.ts"
import { declarationOf } from "../../../domain/words/AttentionCause.ts"

/** Where an operator continues: a page of the panel with its label, and a command that shows or does the same. */
export interface Way {
  readonly label: string
  /** A path of the panel with its query. */
  readonly path: string
  /** A command line after `acme-svc`. */
  readonly command: string
}

/** Something that needs the attention of an operator. There is one for each cause and subject. */
export interface Concern {
  readonly cause: AttentionCause
  readonly severity: Severity
  /** What has happened, as a sentence without a full stop. */
  readonly title: string
  /** Who or what suffers from it, as a sentence. */
  readonly effect: string
  /** The number of things concerned, if they can be counted. */
  readonly count?: number | undefined
  /** The epoch second since which this is so, if it is known. */
  readonly since?: number | undefined
  /** The last error. */
  readonly error?: string | undefined
  readonly way: Way
}

/** Makes a concern. It is as urgent as its cause, unless something else is given. */
export const concern = (
  cause: AttentionCause,
  given: Omit<Concern, "cause" | "severity"> & { readonly severity?: Severity }
): Concern => ({ severity: declarationOf(cause).severity, ...given, cause })

/** Returns a count with its noun: `1 order`, `2 orders`. */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`
