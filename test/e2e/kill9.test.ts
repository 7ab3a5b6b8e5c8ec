import { Effect, Random } from "effect"
import { randomInt } from "node:crypto"
import { setTimeout as delay } from "node:timers/promises"
import { assert, beforeAll, describe, it } from "vitest"
import type { AuthorizationBody, OrderBody } from "../support/AcmeSession.ts"
import { AcmeSession, problemType, UnexpectedAnswer } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer, databases } from "../support/Databases.ts"
import { isFull } from "../support/Full.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import type { HttpClient } from "../support/Http.ts"
import { makeHttpClient } from "../support/Http.ts"
import { leafOf } from "../support/Openssl.ts"

/** The number of kills. */
const rounds = Number(process.env["KILL9_ROUNDS"] ?? (isFull ? "5" : "2"))
/** The seed, which is printed with the result so that a run can be repeated. */
const seed = process.env["KILL9_SEED"] ?? `${randomInt(1_000_000)}`
const clients = isFull ? 100 : 40

/**
 * How long the last interrupted job may take until it is done. The next process takes the job at once, but retries must
 * wait.
 */
const settleMs = 120_000

/** The facts that a client knows about one of its orders. All of them come from answers of the server. */
interface Ledger {
  readonly name: string
  readonly session: AcmeSession
  /** The URL of the order, which newOrder has answered with 201. From then on the order must not be lost. */
  readonly url: string
  readonly body: OrderBody
  /** Whether finalize was answered with 200. */
  acknowledged: boolean
  /** The chain, if it was downloaded while the server was being killed. */
  chain: string | undefined
}

/** Every order of the run, in the order of the 201 answers, and the number of all answers. */
interface Book {
  readonly orders: Array<Ledger>
  answers: number
  stopping: boolean
}

const counting = (http: HttpClient, book: Book): HttpClient => ({
  ...http,
  send: async (url, request) => {
    const answer = await http.send(url, request)
    book.answers++
    return answer
  }
})

/** Returns whether an order that ended `invalid` says why, either itself or in an authorization. */
const isReasoned = async (session: AcmeSession, order: OrderBody): Promise<boolean> => {
  if (order.error?.type !== undefined) return true
  const authorizations: Array<AuthorizationBody> = []
  for (const url of order.authorizations) authorizations.push(await session.authorization(url))
  return authorizations.some(({ challenges, status }) =>
    status === "invalid" && challenges.some(({ error }) => error?.type !== undefined)
  )
}

/**
 * Issues one certificate as a real client does: repeats every request until an answer comes, and then trusts the
 * answer.
 */
const issueOne = async (session: AcmeSession, name: string, book: Book, tokens: Map<string, string>): Promise<void> => {
  const placed = await session.newOrder([name])
  const ledger: Ledger = { name, session, url: placed.url, body: placed.body, acknowledged: false, chain: undefined }
  book.orders.push(ledger)

  for (const url of placed.body.authorizations) {
    const challenge = (await session.authorization(url)).challenges.find(({ type }) => type === "http-01")
    assert.isDefined(challenge)
    if (challenge === undefined) return
    tokens.set(challenge.token, session.keyAuthorization(challenge.token))
    await session.trigger(challenge.url)
  }
  const ready = await session.awaitOrder(placed.url, ["ready", "valid", "invalid"], settleMs)
  if (ready.status === "invalid") return

  const { csr } = makeCsr({ names: [name] })
  const finalized = await session.finalize(placed.body, csr)
  // If the answer to finalize was lost, the order is no longer `ready`, and the repeated request is answered with
  // orderNotReady.
  if (finalized.status !== 200 && problemType(finalized) !== "orderNotReady") {
    throw new UnexpectedAnswer("finalize", finalized)
  }
  ledger.acknowledged = true
  const done = await session.awaitOrder(placed.url, ["valid", "invalid"], settleMs)
  if (done.certificate !== undefined) ledger.chain = await session.download(done.certificate)
}

/**
 * Kills and restarts the server at times drawn from the seed. The times are counted in answers, so that the server is
 * at work then.
 */
const killer = async (ground: Ground, book: Book): Promise<void> => {
  const moments = Effect.runSync(
    Random.withSeed(
      Effect.replicateEffect(Effect.all([Random.nextIntBetween(40, 299), Random.nextIntBetween(0, 24)]), rounds),
      seed
    )
  )
  for (const [more, pause] of moments) {
    const target = book.answers + more
    while (book.answers < target) await delay(1)
    await delay(pause)
    await ground.server.kill9()
    await ground.server.restart()
  }
}

const run = async (ground: Ground): Promise<void> => {
  const book: Book = { orders: [], answers: 0, stopping: false }
  const base = makeHttpClient()
  const first = await AcmeSession.open(ground.server.directoryUrl, {
    http: counting(base, book),
    patienceMs: settleMs,
    pollMs: 500
  })
  const work = async (index: number): Promise<void> => {
    const session = await first.another()
    await session.register()
    for (let round = 0; round === 0 || !book.stopping; round++) {
      await issueOne(session, `r${round}.c${index}.example`, book, ground.responder.tokens)
    }
  }
  try {
    const working = Promise.all(Array.from({ length: clients }, (_, index) => work(index)))
    // The failure is awaited below. If the killer fails first, no code waits for this promise any more.
    working.catch(() => undefined)
    // A client that fails ends the run at once, without waiting for the killer.
    await Promise.race([killer(ground, book), working.then(() => undefined)])
    book.stopping = true
    await working

    // After one more restart, every acknowledged fact must still be there: it is in the database and not only in the
    // process.
    await ground.server.restart()
    await check(ground, book)
  } finally {
    book.stopping = true
    base.close()
  }
}

const check = async (ground: Ground, book: Book): Promise<void> => {
  const serials = new Map<string, string>()
  const statuses = { valid: 0, invalid: 0 }
  for (const { acknowledged, chain, name, session, url } of book.orders) {
    const order = await session.awaitOrder(url, ["valid", "invalid"], settleMs)
    statuses[order.status === "valid" ? "valid" : "invalid"]++
    if (order.status === "invalid") {
      assert.isUndefined(chain, `${url} was downloaded and is invalid now`)
      assert.isTrue(await isReasoned(session, order), `${url} is invalid without a reason`)
      continue
    }
    assert.isTrue(acknowledged, `${url} is valid though nobody finalized it`)
    assert.isDefined(order.certificate, `${url} is valid without a certificate`)
    const now = await session.download(order.certificate ?? "")
    const leaf = leafOf(now)
    assert.strictEqual(leaf.subjectAltName, `DNS:${name}`)
    if (chain !== undefined) assert.strictEqual(now, chain, `${url} has another certificate now`)
    assert.isUndefined(serials.get(leaf.serialNumber), `${url} shares its serial`)
    serials.set(leaf.serialNumber, url)
  }
  const finalized = new Map<unknown, Set<unknown>>()
  for (const { fields } of ground.server.records()) {
    if (fields["event"] !== "order_finalized") continue
    const seen = finalized.get(fields["order_id"]) ?? new Set()
    finalized.set(fields["order_id"], seen.add(fields["cert_serial"]))
  }
  for (const [order, seen] of finalized) assert.strictEqual(seen.size, 1, `order ${String(order)} was finalized twice`)
  assert.isAbove(statuses.valid, 0)
  process.stdout.write(
    `kill -9: seed ${seed}, ${rounds} kills, ${book.orders.length} orders answered, ` +
      `${statuses.valid} valid, ${statuses.invalid} invalid with a reason\n`
  )
}

describe.concurrent.each(databases)("kill -9 during concurrent issuances, $name", ({ freshUrl }) => {
  beforeAll(builtServer)

  it("keeps every order that was acknowledged", async () => {
    const ground = await startGround({ databaseUrl: await freshUrl() })
    try {
      await run(ground)
    } finally {
      await ground.dispose()
    }
  })
})
