interface Waiter {
  readonly target: number
  readonly resolve: () => void
}

/** A counter for which a caller can wait. */
export class Tally {
  #value = 0
  #waiting: ReadonlyArray<Waiter> = []

  get value(): number {
    return this.#value
  }

  add(): void {
    this.#value++
    const met = this.#waiting.filter(({ target }) => target <= this.#value)
    if (met.length === 0) return
    this.#waiting = this.#waiting.filter(({ target }) => target > this.#value)
    for (const { resolve } of met) resolve()
  }

  /** Resolves once `count` more have been added. */
  more(count: number): Promise<void> {
    const target = this.#value + count
    return count <= 0 ? Promise.resolve() : new Promise((resolve) => {
      this.#waiting = [...this.#waiting, { target, resolve }]
    })
  }
}
