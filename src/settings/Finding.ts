import type { Config } from "./AppConfig.ts"

/** Something wrong between keys that are each right. */
export interface Finding {
  /** The key to change. */
  readonly key: string
  readonly message: string
  /** Keys as written the verdict rests on; when one of them is refused for itself, the finding is dropped. */
  readonly involves: ReadonlyArray<string>
}

/** What the rules look at. */
export interface Subject {
  readonly config: Config
  /** The key as written for the full name of a key in force: a profile's inherited key stands process-wide. */
  readonly written: (key: string) => string
  /** Whether somebody wrote the key in force under this full name; a default is nobody's. */
  readonly isSet: (key: string) => boolean
  /** Directory relative paths are compared in; without it they are compared as written. */
  readonly cwd: string | undefined
}
