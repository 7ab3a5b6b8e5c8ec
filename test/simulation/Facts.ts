import type { Row, Store } from "./Store.ts"

/*
 * The changes that were committed. The audit trail must record each of them, and the receivers of notifications must be
 * told of it.
 */

/** A change that was committed. */
interface Fact {
  readonly event: string
  /** The id of the order, the account or the challenge, as in the tables. */
  readonly subject: string
}

const audited = new Set(["account_deactivated", "account_key_changed", "certificate_issued", "certificate_revoked"])
const told = new Set([
  "account_created",
  "account_deactivated",
  "certificate_issued",
  "certificate_revoked",
  "challenge_failed"
])

const bareId = (id: unknown): string => String(id).replaceAll("-", "").toLowerCase()
const keyOf = ({ event, subject }: Fact): string => `${event} ${subject}`

/**
 * Returns the facts that a change of a row shows. `before` is the earlier state of the row, or undefined if the row is
 * new.
 */
export const factsOf = (table: string, row: Row, before: Row | undefined): ReadonlyArray<Fact> => {
  const subject = String(row["id"])
  const became = (column: string, event: string, is: (value: unknown) => boolean): ReadonlyArray<Fact> =>
    is(row[column]) && !is(before?.[column]) ? [{ event, subject }] : []
  switch (table) {
    case "accounts": {
      if (before === undefined) return [{ event: "account_created", subject }]
      const isNew = (column: string) => before[column] !== row[column]
      return [
        ...isNew("status") ? [{ event: "account_deactivated", subject }] : [],
        ...isNew("pubkey") ? [{ event: "account_key_changed", subject }] : []
      ]
    }
    case "challenges":
      return became("is_refused", "challenge_failed", (value) => value === 1)
    case "orders":
      return [
        ...became("status", "certificate_issued", (value) => value === "valid"),
        ...became("revoked_at", "certificate_revoked", (value) => value !== null && value !== undefined)
      ]
    default:
      return []
  }
}

/** The members of a notification that identify the order, the account or the challenge. */
export interface Notice {
  readonly hook: string
  readonly delivery_id: string
  readonly [member: string]: unknown
}

const factOf = ({ account_id, challenge_id, hook, order_id }: Notice): Fact => ({
  event: hook,
  subject: bareId(challenge_id ?? order_id ?? account_id)
})

/** The facts that commits made, and the notifications of them. */
export class Facts {
  readonly #facts: Array<Fact> = []
  readonly #happened = new Set<string>()
  /** The id of each notification, by the change that it is about. */
  readonly #ids = new Map<string, string>()
  /** The notifications that arrived, by receiver and event. */
  readonly #told = new Set<string>()
  readonly #givenUp = new Set<string>()
  readonly #receivers: ReadonlyArray<string>
  readonly #violated: (what: string) => void

  constructor(receivers: ReadonlyArray<string>, violated: (what: string) => void) {
    this.#receivers = receivers
    this.#violated = violated
  }

  /** Records a change that a commit has made. */
  happened(fact: Fact): void {
    this.#facts.push(fact)
    this.#happened.add(keyOf(fact))
  }

  /** Forgets a change that a power cut has undone. Nobody may have been told of the change. */
  undone(fact: Fact): void {
    const key = keyOf(fact)
    const at = this.#facts.findLastIndex((one) => keyOf(one) === key)
    if (at >= 0) this.#facts.splice(at, 1)
    if (this.#facts.some((one) => keyOf(one) === key)) return
    this.#happened.delete(key)
    if (this.#ids.has(key)) this.#violated(`somebody was told of ${key}, which is lost with the power`)
  }

  /**
   * Records that a notification has arrived. The notification must be about a committed change, and have the only id of
   * that change.
   */
  told(receiver: string, notice: Notice): void {
    const key = keyOf(factOf(notice))
    if (!this.#happened.has(key)) this.#violated(`${receiver} was told of ${key}, which has not happened`)
    const known = this.#ids.get(key)
    if (known !== undefined && known !== notice.delivery_id) {
      this.#violated(`${receiver} was told of ${key} as ${notice.delivery_id}, which is also ${known}`)
    }
    this.#ids.set(key, notice.delivery_id)
    this.#told.add(`${receiver} ${key}`)
  }

  /** Remembers which deliveries were given up before their rows are swept. */
  settled({ rows }: Store): void {
    const failed = rows(`SELECT payload, attempts, max_attempts, last_error FROM jobs
      WHERE kind = 'notify_deliver' AND status = 'failed'`)
    for (const { attempts, last_error, max_attempts, payload } of failed) {
      const { entry, fields } = JSON.parse(String(payload)) as { readonly entry: string; readonly fields: Notice }
      const told = `${entry} ${keyOf(factOf(fields))}`
      if (this.#givenUp.has(told)) continue
      this.#givenUp.add(told)
      if (Number(attempts) < Number(max_attempts) && !String(last_error).includes("DeadlinePassed")) {
        this.#violated(`${told} was given up after ${String(attempts)} attempts: ${String(last_error)}`)
      }
    }
  }

  /** Checks that the audit trail records each change once. */
  areAudited({ rows }: Store): void {
    const written = new Map<string, number>()
    for (const { account_id, event, order_id } of rows("SELECT event, account_id, order_id FROM audit_log")) {
      const key = `${String(event)} ${bareId(order_id ?? account_id)}`
      written.set(key, (written.get(key) ?? 0) + 1)
    }
    const times = new Map<string, number>()
    for (const fact of this.#facts) {
      if (audited.has(fact.event)) times.set(keyOf(fact), (times.get(keyOf(fact)) ?? 0) + 1)
    }
    for (const [key, count] of times) {
      const found = written.get(key) ?? 0
      if (found !== count) this.#violated(`the audit trail tells of ${key} ${found} times, and it happened ${count}`)
    }
  }

  /** Checks that each receiver was notified of each change, or that the delivery job was given up. */
  areTold(): void {
    for (const fact of this.#facts.filter(({ event }) => told.has(event))) {
      for (const receiver of this.#receivers) {
        const key = `${receiver} ${keyOf(fact)}`
        if (!this.#told.has(key) && !this.#givenUp.has(key)) this.#violated(`nobody told ${key}`)
      }
    }
  }

  /** The number of notifications that arrived, without repetitions. */
  get arrived(): number {
    return this.#told.size
  }
}
