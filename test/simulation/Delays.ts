import { timeoutMillis } from "./Receivers.ts"
import type { Store } from "./Store.ts"

/*
 * Checks that no job waits too long. The jobs of an account do not wait behind those of another account: an account
 * without a running job of a kind gets the next slot of that kind, and slots are reserved for such accounts. So a due
 * job that is the only one of its account begins within one poll and the time of one claim. A job also never waits for
 * a time that only a wrong clock has set.
 */

/**
 * The longest that either wait may last in milliseconds if nothing else is wrong: the longest poll, and as much again.
 */
const longestWait = 12_000

// A flooded process makes two deliveries at once, but each of the two profiles has two receivers. So two attempts for
// other receivers may use the same slot before a receiver gets its turn, each attempt until its time limit.
const turnsOfOthers = 2 * timeoutMillis
// A program that signs may use its whole time limit in the only slot.
const signingMillis = 60_000
const longestOf = (wait: string): number =>
  wait.startsWith("notify_deliver of ")
    ? longestWait + turnsOfOthers
    : /^(?:signer_issue|signer_issue_restricted|orphan_revoke) of /.test(wait)
    ? longestWait + signingMillis
    : longestWait

const lookEvery = 500

// Jobs of one account wait for one another, so only the wait of the account's next job is measured. After a turn,
// however short, another job is the next one.
const behindOthers = (second: number) => `
  SELECT kind || ' of ' || share || ' waits behind those of others' AS what, lower(hex(id)) AS id FROM jobs
  WHERE status = 'ready' AND share <> '' AND run_at <= ${second}
    AND id = (SELECT own.id FROM jobs AS own WHERE own.status = 'ready' AND own.kind = jobs.kind
      AND own.share = jobs.share ORDER BY own.run_at, own.id LIMIT 1)
    AND NOT EXISTS (SELECT 1 FROM jobs AS own
      WHERE own.status = 'running' AND own.kind = jobs.kind AND own.share = jobs.share)`
const ahead = (second: number) => `
  SELECT kind || ' ' || lower(hex(id)) || ' waits for a time that a wrong clock has said' AS what, '' AS id FROM jobs
  WHERE status = 'ready' AND run_at > ${second} AND updated_at > ${second}`

/** Checks the waiting jobs as time passes. */
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
   * Checks the jobs if a check is due. `calmClock` returns the time on which all clocks agree. While the clocks
   * disagree, or nobody runs jobs, it returns undefined, and every wait begins anew.
   */
  look(now: number, calmClock: () => number | undefined): void {
    // Uncommitted rows are not checked.
    if (now - this.#lookedAt < lookEvery || this.#store.isInTransaction()) return
    this.#lookedAt = now
    const clock = calmClock()
    const next = new Map<string, number>()
    if (clock !== undefined) {
      const second = Math.floor(clock / 1000)
      for (const { id, what } of [...this.#store.rows(behindOthers(second)), ...this.#store.rows(ahead(second))]) {
        const wait = String(what)
        const since = this.#since.get(`${wait} ${id}`) ?? now
        next.set(`${wait} ${id}`, since)
        if (now - since > longestOf(wait)) this.#violated(`a ${wait} for ${now - since} ms`)
      }
    }
    this.#since = next
  }
}
