// Only the latest turns are remembered. A share whose last turn was before them counts as a newcomer, and would come
// before others again if its rows are older. So the number is larger than that of the shares of a flood.
const mostNames = 100_000

// Turns that ended in the same second are told apart by this part of a second.
const step = 2 ** -20

/**
 * When each group and each share last gave a slot back. Without it, a share whose job has just ended would have as few
 * slots as a share that waited meanwhile, and its next job, if it is older, would come first.
 */
export class LastTurns {
  // The names are in the order of their turns.
  readonly #endedAt = new Map<string, number>()
  /** The names whose turns have ended, but without a time yet. */
  readonly #ended = new Set<string>()
  #last = 0
  #now = 0

  /** Records that a group or a share has given a slot back. */
  end(name: string): void {
    this.#ended.delete(name)
    this.#ended.add(name)
  }

  /** Sets the time in seconds. If it goes back, all turns are forgotten, because they would count as later ones. */
  setTime(now: number): void {
    if (now < this.#now) {
      this.#endedAt.clear()
      this.#last = 0
    }
    this.#now = now
    this.#dateEnded()
  }

  /** Returns since when a row that was due at `runAt` waits for a turn of this group or share, in seconds. */
  waitsSince(name: string, runAt: number): number {
    this.#dateEnded()
    return Math.max(runAt, this.#endedAt.get(name) ?? 0)
  }

  // A turn may end while a pass reads, so its time is the time of this pass or of the next.
  #dateEnded(): void {
    if (this.#ended.size === 0) return
    for (const name of this.#ended) {
      this.#last = Math.max(this.#now, this.#last) + step
      this.#endedAt.delete(name)
      this.#endedAt.set(name, this.#last)
    }
    this.#ended.clear()
    for (const name of this.#endedAt.keys()) {
      if (this.#endedAt.size <= mostNames) return
      this.#endedAt.delete(name)
    }
  }
}
