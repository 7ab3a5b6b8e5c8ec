/* A real upstream, pinned, as a relay meets it: behind proxies. */

/** An upstream that is not started yet. */
export interface Upstream {
  readonly name: string
  readonly version: string
  /** Part of the short run even where its programs have to be fetched first. */
  readonly isOfGate: boolean
  /** The short run plays more faults at it than at others. */
  readonly isReference: boolean
  /** How a relay proves names to it: by its word, or by records of the zone. */
  readonly strategy: "bypass" | "dns01"
  /** Whether it takes another reason for a revocation than none. */
  readonly takesReasons: boolean
  /** Whether the list of an account's orders, by which an order is found whose answer was lost, can be read without harm. */
  readonly lists: "whole" | "none" | "harmful"
  /** The command that fetches or builds its programs. */
  readonly installer: "go" | "pip3"
  /** Whether its programs are in the kept folder. */
  readonly isThere: () => boolean
  /** Fetches or builds them. */
  readonly install: () => Promise<void>
  /** Starts it. It looks names up at `resolver`, `127.0.0.1:port`. */
  readonly start: (resolver: string) => Promise<Started>
}

/** An upstream at work. */
export interface Started {
  readonly host: string
  readonly port: number
  /** The path of the directory for a proxy at this `127.0.0.1:port`, whose URLs have it as their host. */
  readonly directoryFor: (proxy: string) => Promise<string>
  readonly stop: () => Promise<void>
}
