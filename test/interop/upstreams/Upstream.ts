/* A real upstream of a fixed version, which relays reach through proxies. */

/** An upstream that has not started yet. */
export interface Upstream {
  readonly name: string
  readonly version: string
  /** Whether the short run includes this upstream even if its programs must be fetched first. */
  readonly isOfGate: boolean
  /** Whether the short run plays more faults at this upstream than at others. */
  readonly isReference: boolean
  /** How a relay proves names to this upstream: without a proof, or with records of the zone. */
  readonly strategy: "bypass" | "dns01"
  /** Whether the upstream accepts a reason for a revocation. */
  readonly takesReasons: boolean
  /**
   * Whether the list of an account's orders can be read without harm. In the list, a relay finds an order whose answer
   * was lost.
   */
  readonly lists: "whole" | "none" | "harmful"
  /** The command that fetches or builds the programs. */
  readonly installer: "go" | "pip3"
  /** Returns whether the programs are in the kept folder. */
  readonly isThere: () => boolean
  /** Fetches or builds the programs. */
  readonly install: () => Promise<void>
  /** Starts the upstream, which looks up names at the server `resolver`, given as `127.0.0.1:port`. */
  readonly start: (resolver: string) => Promise<Started>
}

/** A running upstream. */
export interface Started {
  readonly host: string
  readonly port: number
  /** Returns the path of the directory for a proxy at this `127.0.0.1:port`, which is the host in the URLs. */
  readonly directoryFor: (proxy: string) => Promise<string>
  readonly stop: () => Promise<void>
}
