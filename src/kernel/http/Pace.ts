/** How many connections are accepted before requests have their turn, and how many requests begin in one turn. */
const most = 64

/**
 * Accepts connections before it begins requests. libuv accepts one connection for each iteration of the event loop, however many
 * wait: where an iteration handles every request that has arrived, a few busy peers let the kernel's queue fill up, and a
 * newcomer waits behind a thousand. So requests wait until an iteration has accepted none, which then begins all of them and
 * lets them share a commit; neither side waits for more than {@link most} of the other.
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

/** That of the process, whose listeners share one event loop. */
export const pace = new Pace()
