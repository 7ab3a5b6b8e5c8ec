import type { Config } from "./AppConfig.ts"

/** A conflict between keys, each of which is valid by itself. */
export interface Finding {
  /** The key that must be changed. */
  readonly key: string
  readonly message: string
  /**
   * The keys on which the finding depends, as they were written. If one of them is refused for another reason, the
   * finding is dropped.
   */
  readonly involves: ReadonlyArray<string>
}

/** The input of the rules. */
export interface Subject {
  readonly config: Config
  /**
   * Returns the key that the operator wrote for the full name of a key in force. For a key that a profile inherits,
   * this is the process-wide key.
   */
  readonly written: (key: string) => string
  /** Returns whether the key with this full name was configured, and does not merely have its default. */
  readonly isSet: (key: string) => boolean
  /**
   * The directory in which relative paths are compared. If it is undefined, paths are compared as they were written.
   */
  readonly cwd: string | undefined
}
