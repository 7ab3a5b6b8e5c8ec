import Sqlite from "better-sqlite3"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { ProblemBody } from "../support/AcmeSession.ts"
import { AcmeSession, problemType } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import type { HttpAnswer } from "../support/Http.ts"
import { freePort } from "../support/Ports.ts"
import type { PostgresCluster } from "../support/Postgres.ts"
import { startPostgres } from "../support/Postgres.ts"
import { runToEnd } from "../support/Server.ts"

interface Taken {
  readonly ground: Ground
  readonly operators: Operators
  /** Removes the database from the running server. */
  readonly take: () => Promise<void> | void
  /** Gives the database back to the server. */
  readonly giveBack: () => Promise<void> | void
  readonly dispose: () => Promise<void>
}

/** The address of the operators' listener, and the environment with which commands use the same database. */
interface Operators {
  readonly origin: string
  /** The address at which the process reports about itself. */
  readonly metrics: string
  readonly env: Readonly<Record<string, string>>
}

const operatorsOn = async (databaseUrl: string): Promise<Operators> => {
  const [address, metrics] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
  return {
    origin: `http://${address}`,
    metrics: `http://${metrics}/metrics`,
    env: {
      ACME_SVC_METRICS__ENABLED: "true",
      ACME_SVC_METRICS__BIND_ADDRESS: metrics,
      ACME_SVC_DATABASE__URL: databaseUrl,
      ACME_SVC_ADMIN__ENABLED: "true",
      ACME_SVC_ADMIN__BIND_ADDRESS: address,
      ACME_SVC_ADMIN__BASE_URL: `http://${address}`
    }
  }
}

const withPostgres = async (): Promise<Taken> => {
  const cluster: PostgresCluster = await startPostgres()
  const databaseUrl = await cluster.createDatabase()
  const operators = await operatorsOn(databaseUrl)
  const ground = await startGround({ databaseUrl, env: operators.env })
  return {
    ground,
    operators,
    take: cluster.halt,
    giveBack: cluster.resume,
    dispose: async () => {
      await ground.dispose()
      await cluster.stop()
    }
  }
}

/** Makes the SQLite file unusable by a writer that does not release its lock. */
const withSqlite = async (): Promise<Taken> => {
  const operators = await operatorsOn("sqlite://acme.db")
  const ground = await startGround({ env: operators.env })
  let writer: Sqlite.Database | undefined
  const giveBack = () => {
    writer?.exec("ROLLBACK")
    writer?.close()
    writer = undefined
  }
  return {
    ground,
    operators,
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

/** Words about the internals. No answer may contain them. */
const inside = /sql|select|insert|postgres|sqlite|ECONN|locked|node:|\bat \w+ \(/i

const password = "Wrocław tramway, 4 stops"

/** Returns the answers of the API and the panel to an operator with a session, one request after another. */
const operatorOf = async ({ ground: { server }, operators: { env, origin } }: Taken) => {
  writeFileSync(join(server.directory, "password"), `${password}\n`, { mode: 0o600 })
  const words = ["admin", "user", "create", "ann", "--password-file", "password"]
  const { code, stderr } = await runToEnd(words, { config: null, directory: server.directory, env })
  assert.strictEqual(code, 0, stderr)
  const json = { "content-type": "application/json" }
  const body = JSON.stringify({ username: "ann", password })
  const signIn = () => fetch(`${origin}/api/session`, { method: "POST", headers: json, body })
  const cookie = (await signIn()).headers.getSetCookie()[0]?.split(";")[0] ?? ""
  const form = { method: "POST", body: new URLSearchParams({ username: "ann", password }) }
  return async () => {
    const asked = [
      fetch(`${origin}/api/orders`, { headers: { cookie } }),
      fetch(`${origin}/ui/orders`, { headers: { cookie }, redirect: "manual" }),
      signIn(),
      fetch(`${origin}/ui/login`, { ...form, redirect: "manual" })
    ]
    return Promise.all(asked.map(async (answer) => {
      const { headers, status } = await answer
      return { status, type: headers.get("content-type") ?? "", text: await (await answer).text() }
    }))
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
  { name: "PostgreSQL, stopped and started", open: withPostgres, answers: 0, cause: "away" },
  // While a process holds the lock of the file, other processes can still read it.
  { name: "SQLite, locked and released", open: withSqlite, answers: 1, cause: "locked" }
])("a service that loses its database, $name", ({ answers, cause, open }) => {
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

  it("asks operators to try again while the database is away, and serves them again later without a restart", async () => {
    const { giveBack, ground, take } = taken
    const ask = await operatorOf(taken)
    assert.deepStrictEqual((await ask()).map(({ status }) => status), [200, 200, 200, 303])
    await take()
    const during = await ask()
    for (const { status, text } of during) {
      assert.include([200, 500, 503], status, text)
      assert.notMatch(status === 200 ? "" : text, inside)
    }
    const [, , signIn, login] = during
    assert.deepInclude(signIn, { status: 503 })
    assert.strictEqual((JSON.parse(signIn?.text ?? "") as { readonly error: string }).error, "busy")
    assert.strictEqual(login?.status, 503)
    assert.match(login?.type ?? "", /^text\/html/)
    await giveBack()
    const isBack = async () => (await ask()).every(({ status }) => status < 400)
    let back = false
    for (let tries = 0; tries < 200 && !back; tries++) back = await isBack()
    assert.isTrue(back, ground.server.records().slice(-5).map((record) => JSON.stringify(record)).join("\n"))
  })

  it("recovers without a restart and loses nothing that was acknowledged", async () => {
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
    // Nonces that were stored before are handed out, but no nonce that cannot be stored.
    const isWithout = ({ headers }: HttpAnswer) => headers["replay-nonce"] === undefined
    const without = await session.poll(() => session.get(session.directory.newNonce), isWithout)
    assertInternal(without)
    const series = (name: string) => new RegExp(`^acme_svc_database_${name}[^}]*} (\\d+)$`, "m")
    const tells = async (name: string) =>
      Number(series(name).exec(await (await fetch(taken.operators.metrics)).text())?.[1])
    await session.poll(() => tells("up{"), (up) => up === answers)
    assert.isAbove(await tells(`failures_total{[^}]*cause="${cause}"`), 0)
    const health = await session.get(`${ground.server.baseUrl}/health`)
    assert.strictEqual(health.status, 200, "liveness does not depend on the database")

    await giveBack()
    await session.poll(() => tells("up{"), (up) => up === 1)
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
