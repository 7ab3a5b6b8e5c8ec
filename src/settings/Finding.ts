import type { Config } from "./AppConfig.ts"

/** A conflict between keys that are each valid. */
export interface Finding {
  /** The key to change. */
  readonly key: string
  readonly message: string
  /** The written keys on which the finding depends. When one of them is itself refused, the finding is dropped. */
  readonly involves: ReadonlyArray<string>
}

/** The input of the rules. */
export interface Subject {
  readonly config: Config
  /** The key as written, for the full name of a key in force: an inherited key of a profile is written process-wide. */
  readonly written: (key: string) => string
  /** Whether the key with this full name was configured. It was not when a default is in force. */
  readonly isSet: (key: string) => boolean
  /** The directory in which relative paths are compared; without it, they are compared as written. */
  readonly cwd: string | undefined
}
