/* What the states of a demo have in common. */

/** A demo while it is made. */
export interface DemoPlace {
  readonly directory: string
  /** The file of the database. */
  readonly database: string
  /** When the demo was begun, in epoch seconds. */
  readonly now: number
  readonly tell: (text: string) => void
  /** Runs a command of the service, which must succeed, and returns its output. */
  readonly command: (words: ReadonlyArray<string>) => Promise<string>
  /** Waits for an event in the log of the service. */
  readonly waitForEvent: (event: string) => Promise<void>
}

type Step = (place: DemoPlace) => Promise<void> | void

/** A state in which a demo begins. Its steps run in this order. */
export interface DemoState {
  /** What the state shows. */
  readonly shows: string
  /** Whether there is a month of history, and certificates of clients. */
  readonly hasHistory: boolean
  /** Returns further sections of the configuration. */
  readonly toml?: (now: number) => string
  /** Runs before the first command, when only the CAs are there. */
  readonly before?: Step
  /** Runs when the database is made, before the service starts. */
  readonly filled?: Step
  /** Runs beside the service, when the clients have their certificates. */
  readonly running?: Step
  /** Runs after the service was stopped. The service is then started again, with the flags. */
  readonly stopped?: Step
  readonly flags?: ReadonlyArray<string>
}
