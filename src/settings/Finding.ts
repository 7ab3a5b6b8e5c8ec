import type { Config } from "./AppConfig.ts"

/** A conflict between keys that are each valid. */
export interface Finding {
  /** The key to change. */
  readonly key: string
  readonly message: string
  /** The written keys on which the finding depends. If one of these keys is itself refused, the finding is dropped. */
  readonly involves: ReadonlyArray<string>
}

/** The input of the rules. */
export interface Subject {
  readonly config: Config
  /**
   * Returns the key as it was written, for the full name of a key in force. A key that a profile inherits was written
   * process-wide.
   */
  readonly written: (key: string) => string
  /** Returns whether the key with this full name was configured. If its default is in force, it was not. */
  readonly isSet: (key: string) => boolean
  /** The directory in which relative paths are compared; without it, they are compared as written. */
  readonly cwd: string | undefined
}
