import type { Store } from "./Store.ts"

/*
 * What nobody's job may wait for. No account's waits behind those of another: whoever has nothing running of a kind gets
 * the next slot of it, and slots are left for such, so that a job that is due and alone of its account begins within a
 * poll and what a claim takes. And no job waits for a time that only a wrong clock has said.
 */

/** Milliseconds either may last while nothing else is wrong: the longest poll, and as much again. */
const longestWait = 12_000
const lookEvery = 500

// Those of one account wait for one another: it is the account that has waited.
const behindOthers = (second: number) => `
  SELECT DISTINCT kind || ' of ' || share || ' waits behind those of others' AS what FROM jobs
  WHERE status = 'ready' AND share <> '' AND run_at <= ${second} AND NOT EXISTS (SELECT 1 FROM jobs AS own
    WHERE own.status = 'running' AND own.kind = jobs.kind AND own.share = jobs.share)`
const ahead = (second: number) => `
  SELECT kind || ' ' || lower(hex(id)) || ' waits for a time that a wrong clock has said' AS what FROM jobs
  WHERE status = 'ready' AND run_at > ${second} AND updated_at > ${second}`

/** See above: what waits is looked at as time passes. */
export class Delays {
  readonly #store: Store
  readonly #violated: (what: string) => void
  #since = new Map<string, number>()
  #lookedAt = 0

  constructor(store: Store, violated: (what: string) => void) {
    this.#store = store
    this.#violated = violated
  }

  /** Looks, if it is time. `calmClock` is the time by everybody's clock; while there is none, every wait begins anew. */
  look(now: number, calmClock: () => number | undefined): void {
    // What somebody has not committed yet is nothing to judge.
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
