/** How many connections are accepted before requests get a turn, and how many requests begin in one turn. */
const most = 64

/**
 * Accepts connections before it begins requests. In each iteration of the event loop, libuv accepts one connection,
 * however many wait. If an iteration handled all requests that had arrived, a few busy peers could fill the kernel's
 * queue, and a new client would wait behind a thousand others. So requests wait for an iteration that accepts no
 * connection, and then begin together, so that they can share a commit. Neither side waits for more than {@link most}
 * of the other.
 */
export class Pace {
  #waiting: Array<() => void> = []
  #next = 0
  #accepted = 0
  #hasAccepted = false
  #isScheduled = false

  /** A connection was accepted. */
  accepted(): void {
    this.#hasAccepted = true
  }

  /** Begins a request in its turn. */
  run(begin: () => void): void {
    this.#waiting.push(begin)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#turn()
    })
  }

  #turn(): void {
    const mayWait = this.#hasAccepted && ++this.#accepted < most
    this.#hasAccepted = false
    if (mayWait) return this.#schedule()
    this.#accepted = 0
    const end = Math.min(this.#next + most, this.#waiting.length)
    while (this.#next < end) this.#waiting[this.#next++]?.()
    if (this.#next < this.#waiting.length) return this.#schedule()
    this.#waiting = []
    this.#next = 0
  }
}

/** The instance of the process: all listeners share one event loop. */
export const pace = new Pace()
