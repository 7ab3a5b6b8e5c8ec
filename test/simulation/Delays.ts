import type { Store } from "./Store.ts"

/*
 * Limits on waiting. No account's job waits behind those of another. An account without a running job of a kind gets
 * the next slot of it, and slots are reserved for such accounts. So a due job that is alone in its account begins
 * within a poll and the time of a claim. And no job waits for a time that only a wrong clock has set.
 */

/** Milliseconds either may last while nothing else is wrong: the longest poll, and as much again. */
const longestWait = 12_000
const lookEvery = 500

// Jobs of one account wait for one another, so the account's wait is measured.
const behindOthers = (second: number) => `
  SELECT DISTINCT kind || ' of ' || share || ' waits behind those of others' AS what FROM jobs
  WHERE status = 'ready' AND share <> '' AND run_at <= ${second} AND NOT EXISTS (SELECT 1 FROM jobs AS own
    WHERE own.status = 'running' AND own.kind = jobs.kind AND own.share = jobs.share)`
const ahead = (second: number) => `
  SELECT kind || ' ' || lower(hex(id)) || ' waits for a time that a wrong clock has said' AS what FROM jobs
  WHERE status = 'ready' AND run_at > ${second} AND updated_at > ${second}`

/** See above. The waiting jobs are checked as time passes. */
export class Delays {
  readonly #store: Store
  readonly #violated: (what: string) => void
  #since = new Map<string, number>()
  #lookedAt = 0

  constructor(store: Store, violated: (what: string) => void) {
    this.#store = store
    this.#violated = violated
  }

  /**
   * Checks, if it is time. `calmClock` is the time that all clocks agree on. While there is none, every wait is
   * measured anew.
   */
  look(now: number, calmClock: () => number | undefined): void {
    // Uncommitted rows are not judged.
    if (now - this.#lookedAt < lookEvery || this.#store.isInTransaction()) return
    this.#lookedAt = now
    const clock = calmClock()
    const next = new Map<string, number>()
    if (clock !== undefined) {
      const second = Math.floor(clock / 1000)
      for (const { what } of [...this.#store.rows(behindOthers(second)), ...this.#store.rows(ahead(second))]) {
        const wait = String(what)
        const since = this.#since.get(wait) ?? now
        next.set(wait, since)
        if (now - since > longestWait) this.#violated(`a ${wait} for ${now - since} ms`)
      }
    }
    this.#since = next
  }
}
