import { timeoutMillis } from "./Receivers.ts"
import type { Store } from "./Store.ts"

/*
 * Checks that no job waits too long. The jobs of an account do not wait behind the queue of another account: the next
 * slot of a kind goes to a profile and an account without a running job of that kind, and among several to those that
 * have waited longest since their last turn. So a due job that is the next of its account begins within one poll and
 * the time of one claim, or, if all slots are taken, after at most one turn of each rival. A job also never waits for a
 * time that only a wrong clock has set.
 */

/**
 * The longest that either wait may last in milliseconds if nothing else is wrong: the longest poll, and as much again.
 */
const longestWait = 12_000

/** The kinds whose attempts may take long, in a flooded process that has few slots. */
const slow = [
  { kinds: ["notify_deliver"], slots: 2, attemptMillis: timeoutMillis },
  // A program that signs may use its whole time limit.
  { kinds: ["signer_issue", "signer_issue_restricted", "orphan_revoke"], slots: 1, attemptMillis: 60_000 }
]

const groupOf = (share: string) => share.slice(0, share.indexOf("/"))
const memberOf = (share: string) => share.split("#")[0] ?? ""

/**
 * Counts the turns of others that may come before a share. Each turn of its group follows a turn of other groups, and
 * each turn of its member one of the other members of the group.
 */
const turnsBefore = (share: string, shares: ReadonlyArray<string>): number => {
  const members = new Set(shares.map(memberOf).filter((one) => groupOf(one) === groupOf(share))).size
  const own = shares.filter((one) => memberOf(one) === memberOf(share)).length
  return own * members * new Set(shares.map(groupOf)).size - 1
}

const longestOf = (kind: string, turns: number): number => {
  const limits = slow.find(({ kinds }) => kinds.includes(kind))
  return longestWait + (limits === undefined ? 0 : Math.ceil(turns / limits.slots) * limits.attemptMillis)
}

const lookEvery = 500

// Jobs of one account wait for one another, so only the wait of the account's next job is measured. After a turn,
// however short, another job is the next one.
const behindOthers = (second: number) => `
  SELECT kind, share, lower(hex(id)) AS id FROM jobs
  WHERE status = 'ready' AND share <> '' AND run_at <= ${second}
    AND id = (SELECT own.id FROM jobs AS own WHERE own.status = 'ready' AND own.kind = jobs.kind
      AND own.share = jobs.share ORDER BY own.run_at, own.id LIMIT 1)
    AND NOT EXISTS (SELECT 1 FROM jobs AS own
      WHERE own.status = 'running' AND own.kind = jobs.kind AND own.share = jobs.share)`
const sharesOf = (kind: string) => `
  SELECT DISTINCT share FROM jobs WHERE kind = '${kind}' AND share <> '' AND status IN ('ready', 'running')`
const ahead = (second: number) => `
  SELECT kind, lower(hex(id)) AS id FROM jobs WHERE status = 'ready' AND run_at > ${second} AND updated_at > ${second}`

interface Wait {
  readonly since: number
  /** The most turns of others that could come before it at any time of the wait. */
  readonly turns: number
}

/** Checks the waiting jobs as time passes. */
export class Delays {
  readonly #store: Store
  readonly #violated: (what: string) => void
  #waits: ReadonlyMap<string, Wait> = new Map()
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
    const next = new Map<string, Wait>()
    const check = (kind: string, key: string, what: string, turns: number) => {
      const before = this.#waits.get(key)
      const wait = { since: before?.since ?? now, turns: Math.max(turns, before?.turns ?? 0) }
      next.set(key, wait)
      if (now - wait.since > longestOf(kind, wait.turns)) this.#violated(`a ${what} for ${now - wait.since} ms`)
    }
    if (clock !== undefined) {
      const second = Math.floor(clock / 1000)
      for (const { id, kind, share } of this.#store.rows(behindOthers(second))) {
        const shares = this.#store.rows(sharesOf(String(kind))).map((row) => String(row["share"]))
        const turns = turnsBefore(String(share), shares)
        check(String(kind), `${id} behind`, `${kind} of ${share} waits behind those of others`, turns)
      }
      for (const { id, kind } of this.#store.rows(ahead(second))) {
        check(String(kind), `${id} ahead`, `${kind} ${id} waits for a time that a wrong clock has said`, 0)
      }
    }
    this.#waits = next
  }
}
