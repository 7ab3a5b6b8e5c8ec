import { setTimeout as delay } from "node:timers/promises"
import { AcmeSession, makeAcmeKey, problemType, UnexpectedAnswer } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import type { HttpAnswer, HttpClient } from "../support/Http.ts"
import { makeHttpClient } from "../support/Http.ts"
import type { Http01Responder } from "../support/Http01Responder.ts"
import { leafOf } from "../support/Openssl.ts"
import type { AccountEntry, OrderEntry } from "./Ledger.ts"
import { Ledger } from "./Ledger.ts"
import { Tally } from "./Tally.ts"

/** How long one step may take, including faults and the leases that they leave behind. */
export const patienceMs = 480_000

/** The target and the number of the honest clients. */
export interface LoadOptions {
  readonly directoryUrl: string
  readonly responder: Http01Responder
  readonly clients: number
  /** The ports that requests use by turns instead of the port of the service. */
  readonly ports?: ReadonlyArray<number>
  /**
   * Whether the service may lose an account or an order. If so, the client then begins again with a new account.
   * Otherwise the client gives up.
   */
  readonly isForgetful?: boolean
  /** How long clients repeat a request that fails, by default {@link patienceMs}. */
  readonly triesForMs?: number
  /** How long a client pauses before each order, by default not at all. */
  readonly restMs?: number
}

/** The honest clients. They repeat each request until it is answered, and rely on the answer. */
export interface Load {
  readonly ledger: Ledger
  /** The number of answers of any kind. */
  readonly answers: Tally
  /** The number of answers that report a failure of the service. */
  readonly failures: Tally
  /** The number of requests without an answer. */
  readonly broken: Tally
  /** The number of orders that ended without a certificate. */
  readonly refused: Tally
  /** The number of accounts and orders that the service no longer knew. */
  readonly forgotten: Tally
  /** The number of answers that differ from the documentation. */
  readonly oddities: ReadonlyArray<string>
  /** Milliseconds from newOrder to the certificate, of each order that got one. */
  readonly issuances: ReadonlyArray<number>
  /** Waits for `work`. Fails if a client gives up in the meantime. */
  readonly beside: <A>(work: Promise<A>) => Promise<A>
  /** Lets every client finish its current work. */
  readonly finish: () => Promise<void>
  /** Registers another account that uses the same connections. */
  readonly another: () => Promise<AcmeSession>
  readonly close: () => void
}

const oddityOf = (answer: HttpAnswer, isHead: boolean): string | undefined => {
  if (answer.status < 500) return undefined
  const isProblem = /^application\/problem\+json\b/.test(answer.headers["content-type"] ?? "")
  // The one failure whose problem has no type of its own (docs/reference/protocol.md).
  const isUnqueued = answer.text.includes("\"The validation could not be queued; ask again.\"")
  const isKnown = isHead || isUnqueued || answer.status === 503 || problemType(answer) === "serverInternal"
  return isProblem && isKnown ? undefined : `${answer.status} ${answer.text.slice(0, 200)}`
}

/** Starts the clients. Each registers one account after another until {@link Load.finish}. */
export const startLoad = async (options: LoadOptions): Promise<Load> => {
  const { clients, directoryUrl, ports = [], responder: { tokens } } = options
  const { origin } = new URL(directoryUrl)
  const base = makeHttpClient()
  const [answers, failures, broken, refused, forgotten] = Array.from({ length: 5 }, () => new Tally()) as [
    Tally,
    Tally,
    Tally,
    Tally,
    Tally
  ]
  let turn = 0
  const ledger = new Ledger()
  const oddities: Array<string> = []
  const issuances: Array<number> = []
  const stopping = new AbortController()

  const http: HttpClient = {
    close: base.close,
    send: async (url, request) => {
      const port = ports[turn++ % Math.max(1, ports.length)]
      const target = port === undefined ? url : url.replace(origin, `http://127.0.0.1:${port}`)
      const answer = await base.send(target, request).catch((error: unknown) => {
        broken.add()
        throw error
      })
      answers.add()
      if (answer.status >= 500) failures.add()
      const odd = oddityOf(answer, request?.method === "HEAD")
      if (odd !== undefined) oddities.push(odd)
      return answer
    }
  }

  const issue = async (account: AccountEntry, name: string): Promise<OrderEntry> => {
    const { session } = account
    await delay(options.restMs ?? 0)
    const begun = performance.now()
    const placed = await session.newOrder([name])
    const entry = ledger.order(placed.url, name, account)
    for (const url of placed.body.authorizations) {
      const challenge = (await session.authorization(url)).challenges.find(({ type }) => type === "http-01")
      if (challenge === undefined) throw new Error(`${url} has no http-01 challenge`)
      tokens.set(challenge.token, session.keyAuthorization(challenge.token))
      await session.trigger(challenge.url)
      ledger.challenge(entry, challenge.url)
    }
    const ready = await session.awaitOrder(placed.url, ["ready", "valid", "invalid"], patienceMs)
    if (ready.status === "invalid") {
      refused.add()
      return entry
    }
    const finalized = await session.finalize(placed.body, makeCsr({ names: [name] }).csr)
    // If the answer to finalize was lost, the order is no longer `ready`, and the repeated request is answered with
    // orderNotReady.
    if (finalized.status !== 200 && problemType(finalized) !== "orderNotReady") {
      throw new UnexpectedAnswer("finalize", finalized)
    }
    ledger.note(entry, { isFinalized: true })
    const done = await session.awaitOrder(placed.url, ["valid", "invalid"], patienceMs)
    if (done.certificate === undefined) refused.add()
    else {
      ledger.note(entry, { chain: await session.download(done.certificate) })
      issuances.push(performance.now() - begun)
    }
    return entry
  }

  const revoke = async (entry: OrderEntry): Promise<void> => {
    const { session } = entry.account
    if (entry.chain === undefined) return
    const certificate = leafOf(entry.chain).raw.toString("base64url")
    const answer = await session.post(session.directory.revokeCert ?? "", { certificate })
    if (answer.status !== 200 && problemType(answer) !== "alreadyRevoked") throw new UnexpectedAnswer("revoke", answer)
    ledger.note(entry, { isRevoked: true })
  }

  const rollOver = async (account: AccountEntry): Promise<void> => {
    const key = await makeAcmeKey()
    const answer = await account.session.rollOver(key)
    const session = await account.session.another(key)
    session.kid = account.url
    const isHearsay = answer.status !== 200
    // If the answer to the change was lost, the old key may no longer be valid. A request with the new key shows
    // whether the key was changed.
    if (isHearsay) {
      const told = await session.post(account.url)
      if (told.status !== 200) throw new UnexpectedAnswer(`keyChange, then ${told.status}`, answer)
    }
    ledger.note(account, {
      session,
      keyChanges: account.keyChanges + 1,
      isHearsay: account.isHearsay || isHearsay
    })
  }

  const deactivate = async (account: AccountEntry): Promise<void> => {
    const answer = await account.session.post(account.url, { status: "deactivated" })
    const isHearsay = answer.status !== 200
    if (isHearsay && problemType(answer) !== "unauthorized") throw new UnexpectedAnswer("deactivate", answer)
    ledger.note(account, { isDeactivated: true, isHearsay: account.isHearsay || isHearsay })
  }

  const first = await AcmeSession.open(directoryUrl, {
    http,
    patienceMs: options.triesForMs ?? patienceMs,
    pollMs: 100
  })
  const live = async (index: number, round: number): Promise<void> => {
    const session = await first.another()
    const account = ledger.account(await session.register(), session)
    await issue(account, `a${round}.c${index}.example`)
    if (stopping.signal.aborted) return
    if (round % 2 === index % 2) await rollOver(account)
    const second = await issue(account, `b${round}.c${index}.example`)
    if (round % 3 === index % 3) await revoke(second)
    if (round % 2 === index % 2) await deactivate(account)
  }
  const work = async (index: number): Promise<void> => {
    for (let round = 0; !stopping.signal.aborted; round++) {
      await live(index, round).catch((error: unknown) => {
        if (options.isForgetful !== true || !(error instanceof UnexpectedAnswer)) throw error
        if (error.answer.status >= 500) throw error
        forgotten.add()
      })
    }
  }
  const working = Promise.all(Array.from({ length: clients }, (_, index) => work(index)))
  const gaveUp = new Promise<never>((_, reject) => working.catch(reject))
  gaveUp.catch(() => undefined) // The caller of `beside` handles this failure.

  return {
    ledger,
    answers,
    failures,
    broken,
    refused,
    forgotten,
    oddities,
    issuances,
    beside: (one) => Promise.race([one, gaveUp]),
    finish: async () => {
      stopping.abort()
      await working
    },
    another: () => first.another(),
    close: () => {
      stopping.abort()
      http.close()
    }
  }
}
