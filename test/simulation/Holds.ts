/*
 * Limits how long a held poll waits. A process that serves learns of the end of its own jobs at once, and looks for the
 * end of other jobs after pauses of up to half a second.
 */

/** The longest that a poll may wait after its order has ended: the longest pause, and some time for the answer. */
const longestMillis = 650

const polled = /\/order\/([0-9a-f-]{36})$/

/** Checks the polls of orders that end while the polls are held. */
export class Holds {
  readonly #violated: (what: string) => void
  readonly #longestMillis: number
  readonly #endedAt = new Map<string, number>()

  /** A sync takes up to `syncMillis`. The end of the order and the answer may each wait for two of them. */
  constructor(violated: (what: string) => void, syncMillis: number) {
    this.#violated = violated
    this.#longestMillis = longestMillis + 4 * syncMillis
  }

  /** Records that an order has its certificate, or has failed. */
  ended(order: string, now: number): void {
    this.#endedAt.set(order, now)
  }

  /** Checks a request that was answered now and during which nothing went wrong. */
  answered({ method, path }: { readonly method: string; readonly path: string }, begun: number, now: number): void {
    const order = method === "POST" ? polled.exec(path)?.[1] : undefined
    const ended = order === undefined ? undefined : this.#endedAt.get(order)
    if (ended === undefined || begun > ended || now - ended <= this.#longestMillis) return
    this.#violated(`a poll of the order ${String(order)} was answered ${now - ended} ms after its end`)
  }
}
