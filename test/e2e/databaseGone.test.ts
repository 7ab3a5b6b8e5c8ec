import Sqlite from "better-sqlite3"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { ProblemBody } from "../support/AcmeSession.ts"
import { AcmeSession, problemType } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import type { HttpAnswer } from "../support/Http.ts"
import type { PostgresCluster } from "../support/Postgres.ts"
import { startPostgres } from "../support/Postgres.ts"

interface Taken {
  readonly ground: Ground
  /** Takes the database from under the running server. */
  readonly take: () => Promise<void> | void
  /** Gives it back. */
  readonly giveBack: () => Promise<void> | void
  readonly dispose: () => Promise<void>
}

const withPostgres = async (): Promise<Taken> => {
  const cluster: PostgresCluster = await startPostgres()
  const ground = await startGround({ databaseUrl: await cluster.createDatabase() })
  return {
    ground,
    take: cluster.halt,
    giveBack: cluster.resume,
    dispose: async () => {
      await ground.dispose()
      await cluster.stop()
    }
  }
}

/** A SQLite file is taken away by a writer that does not let go. */
const withSqlite = async (): Promise<Taken> => {
  const ground = await startGround({ env: { ACME_SVC_DATABASE__URL: "sqlite://acme.db" } })
  let writer: Sqlite.Database | undefined
  const giveBack = () => {
    writer?.exec("ROLLBACK")
    writer?.close()
    writer = undefined
  }
  return {
    ground,
    take: () => {
      writer = new Sqlite(join(ground.server.directory, "acme.db"))
      writer.exec("BEGIN IMMEDIATE")
    },
    giveBack,
    dispose: async () => {
      giveBack()
      await ground.dispose()
    }
  }
}

const assertInternal = (answer: HttpAnswer): void => {
  assert.strictEqual(answer.status, 500, answer.text)
  assert.strictEqual(problemType(answer), "serverInternal")
  assert.match(answer.headers["content-type"] ?? "", /^application\/problem\+json\b/)
  const { detail } = answer.json as ProblemBody
  assert.notMatch(detail ?? "", /sql|select|insert|postgres|sqlite|ECONN|busy|locked|\bat /i)
}

describe.each([
  { name: "PostgreSQL, stopped and started", open: withPostgres },
  { name: "SQLite, locked and released", open: withSqlite }
])("the database gone in mid-service: $name", ({ open }) => {
  let taken: Taken
  let session: AcmeSession

  beforeAll(async () => {
    await builtServer()
    taken = await open()
    session = await AcmeSession.open(taken.ground.server.directoryUrl)
    await session.register({ contact: ["mailto:ops@corp.example"] })
  })

  afterAll(async () => {
    session?.close()
    await taken?.dispose()
  })

  it("answers internal errors meanwhile, comes back by itself and loses nothing acknowledged", async () => {
    const { ground, giveBack, take } = taken
    const tokens = ground.responder.tokens
    const pid = ground.server.pid()
    const issued = await session.issue(["before.corp.example"], tokens)
    const pending = await session.newOrder(["pending.corp.example"])
    const ready = await session.newOrder(["ready.corp.example"])
    await session.authorize(ready.body, tokens)
    const nonces = [await session.nonce(), await session.nonce(), await session.nonce()] as const

    await take()
    const identifiers = [{ type: "dns", value: "during.corp.example" }]
    const during = await Promise.all([
      session.postOnce(session.directory.newOrder, { identifiers }, { nonce: nonces[0] }),
      session.postOnce(session.directory.newAccount, {}, { nonce: nonces[1], identify: "jwk" }),
      session.postOnce(pending.url, undefined, { nonce: nonces[2] })
    ])
    for (const answer of during) assertInternal(answer)
    // What was stored ahead is handed out; what cannot be stored is not.
    const isWithout = ({ headers }: HttpAnswer) => headers["replay-nonce"] === undefined
    const without = await session.poll(() => session.get(session.directory.newNonce), isWithout)
    assertInternal(without)
    const health = await session.get(`${ground.server.baseUrl}/health`)
    assert.strictEqual(health.status, 200, "liveness does not depend on the database")

    await giveBack()
    const patient = await AcmeSession.open(session.directoryUrl, { key: session.key, patienceMs: 20_000 })
    try {
      await patient.register({ onlyReturnExisting: true })
      assert.strictEqual(patient.kid, session.kid)
      assert.strictEqual((await patient.order(pending.url)).status, "pending")
      assert.strictEqual(await patient.download(issued.certificateUrl), issued.chain)
      const { csr } = makeCsr({ names: ["ready.corp.example"] })
      const finalized = await patient.finalize(ready.body, csr)
      assert.strictEqual(finalized.status, 200, finalized.text)
      assert.strictEqual((await patient.awaitOrder(ready.url, ["valid", "invalid"])).status, "valid")
      await patient.authorize(pending.body, tokens)
      await patient.issue(["after.corp.example"], tokens)
    } finally {
      patient.close()
    }
    assert.strictEqual(ground.server.pid(), pid)
    const { code } = await ground.server.stop()
    assert.strictEqual(code, 0)
  })
})
