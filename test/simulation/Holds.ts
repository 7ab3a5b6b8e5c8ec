import type { Answer, Request } from "../../src/engine/http/Message.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import { jsonOf } from "./Session.ts"

/*
 * Limits how long a request is held. A process that serves learns of the end of its own jobs at once, and looks for the
 * end of other jobs after pauses of up to half a second. A reload changes nothing for a request that has begun.
 */

/** The longest that a request may wait after its job has ended: the longest pause, and some time for the answer. */
const longestMillis = 650

/** The longest time for which a read is held. */
const longestReadMillis = 1000

const heldPath = /\/(order|chall)\/([0-9a-f-]{36})(\/finalize)?$/

type Asked = Pick<Request, "method" | "path">

const subjectOf = ({ method, path }: Asked) => {
  const [, kind, id, finalize] = method === "POST" ? heldPath.exec(path) ?? [] : []
  return id === undefined ? undefined : { id, begins: kind === "chall" || finalize !== undefined, kind }
}

/** Returns whether the answer to a request may be held until the verdict or the certificate. */
export const mayBegin = (request: Asked): boolean => subjectOf(request)?.begins ?? false

/** A request for an order or a challenge that has begun. */
interface Begun {
  readonly path: string
  /** The id of the order or the challenge. */
  readonly subject: string
  readonly begunAt: number
  /** For how long the answer to a request that begins something may be held. 0 for a read. */
  readonly waitMillis: number
  /** From when on the wait is measured: since the request began, or since something last went wrong. */
  since: number
}

/** Checks the requests that are held for an order or a challenge. */
export class Holds {
  readonly #violated: (what: string) => void
  readonly #longestMillis: number
  readonly #lateMillis: number
  readonly #endedAt = new Map<string, number>()
  readonly #open = new Set<Begun>()

  /**
   * A sync takes up to `syncMillis`. The end of the job and the answer may each wait for two of them. A wait may last up
   * to `lateMillis` too long.
   */
  constructor(violated: (what: string) => void, syncMillis: number, lateMillis: number) {
    this.#violated = violated
    this.#longestMillis = longestMillis + 4 * syncMillis
    this.#lateMillis = lateMillis
  }

  /** Records that an order has its certificate or has failed, or that a challenge has its verdict. */
  ended(subject: string, now: number): void {
    this.#endedAt.set(subject, now)
  }

  /** Records that a request has begun with a configuration. Returns nothing if such a request is never held. */
  begun(request: Asked, { profiles: [profile] }: Pick<Config, "profiles">, now: number): Begun | undefined {
    const subject = subjectOf(request)
    if (subject === undefined) return undefined
    const own = subject.kind === "chall" ? profile?.challenge.answer_wait_ms : profile?.order.finalize_wait_ms
    const waitMillis = subject.begins ? own ?? 0 : 0
    const begun = { path: request.path, subject: subject.id, begunAt: now, waitMillis, since: now }
    this.#open.add(begun)
    return begun
  }

  /** Records that a request has an answer, or that its client or its process is gone. */
  left(begun: Begun | undefined): void {
    if (begun !== undefined) this.#open.delete(begun)
  }

  /** Checks that no request waits longer than it may. Nothing is checked while `isCalm` is false. */
  look(now: number, isCalm: boolean): void {
    for (const begun of this.#open) {
      if (!isCalm) begun.since = now
      const { path, since, waitMillis } = begun
      if (now - since <= Math.max(longestReadMillis, waitMillis) + this.#longestMillis + this.#lateMillis) continue
      this.#open.delete(begun)
      this.#violated(`${path} was not answered within its wait, but is held for ${now - since} ms`)
    }
  }

  /** Checks a request that was answered now and during which nothing went wrong. */
  answered(begun: Begun | undefined, answer: Answer, now: number): void {
    if (begun === undefined) return
    const { begunAt, path, subject, waitMillis } = begun
    const isOpen = jsonOf<{ readonly status?: unknown }>(answer).status === "processing"
    const ended = this.#endedAt.get(subject)
    const isLate = ended !== undefined && now - ended > this.#longestMillis
    if (isLate && begunAt <= ended) this.#violated(`${path} was answered ${now - ended} ms after its job had ended`)
    if (isLate && isOpen) this.#violated(`${path} was answered as processing ${now - ended} ms after its job had ended`)
    if (isOpen && now - begunAt < waitMillis) {
      this.#violated(`${path} was answered as processing after ${now - begunAt} of ${waitMillis} ms`)
    }
  }
}
