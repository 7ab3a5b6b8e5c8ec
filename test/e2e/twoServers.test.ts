import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { AcmeSession, makeAcmeKey, problemType } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer, databases } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startBeside, startGround } from "../support/Ground.ts"
import type { HttpClient } from "../support/Http.ts"
import { makeHttpClient } from "../support/Http.ts"
import { leafOf, verifyChain } from "../support/Openssl.ts"
import type { Server } from "../support/Server.ts"

/** Makes a client that sends requests for the first server to the two servers alternately, as a load balancer does. */
const balancer = (servers: readonly [Server, Server]): HttpClient => {
  const http = makeHttpClient()
  let turn = 0
  return {
    close: http.close,
    send: (url, request) => {
      const { port } = servers[turn++ % 2 === 0 ? 0 : 1]
      return http.send(url.replace(servers[0].baseUrl, `http://127.0.0.1:${port}`), request)
    }
  }
}

describe.each(databases)("two servers on one database, $name", ({ freshUrl }) => {
  let ground: Ground
  let servers: readonly [Server, Server]
  let http: HttpClient
  let session: AcmeSession

  /** Returns how often both servers together logged an event with this value. */
  const count = (event: string, field: string, value: unknown): number =>
    servers.flatMap((server) => server.records())
      .filter(({ fields }) => fields["event"] === event && fields[field] === value).length

  /** Waits until one of the servers has logged an event, because clients see a commit before it is logged. */
  const told = (event: string, field: string, value: unknown) =>
    Promise.any(servers.map((server) => server.waitForEvent(event, { where: ({ fields }) => fields[field] === value })))

  const idOf = (url: string): string => url.slice(url.lastIndexOf("/") + 1)

  beforeAll(async () => {
    await builtServer()
    const databaseUrl = await freshUrl()
    ground = await startGround({ databaseUrl })
    const second = await startBeside(ground, databaseUrl)
    servers = [ground.server, second]
    http = balancer(servers)
    session = await AcmeSession.open(ground.server.directoryUrl, { http })
    await session.register()
  })

  afterAll(async () => {
    http?.close()
    await servers?.[1].dispose()
    await ground?.dispose()
  })

  it("issue together, although each request of a client goes to a different server from the previous one", async () => {
    const issue = async (index: number): Promise<string> => {
      const client = await session.another()
      await client.register()
      const name = `c${index}.example`
      const { chain, order } = await client.issue([name], ground.responder.tokens)
      await verifyChain(chain, ground.server.caFile, name)
      await told("order_finalized", "order_id", idOf(order.url))
      assert.strictEqual(count("order_finalized", "order_id", idOf(order.url)), 1)
      return leafOf(chain).serialNumber
    }
    const serials = await Promise.all(Array.from({ length: 20 }, (_, index) => issue(index)))
    assert.strictEqual(new Set(serials).size, serials.length)
    for (const server of servers) {
      for (const event of ["request_completed", "order_created", "order_finalize_queued"]) {
        assert.isTrue(server.records().some(({ fields }) => fields["event"] === event), `${event} at both`)
      }
      assert.deepStrictEqual(server.records().filter(({ level }) => level === "error"), [])
    }
  })

  it("accept one of 50 finalizes at once, and issue one certificate", async () => {
    const names = ["many.example"]
    const placed = await session.newOrder(names)
    await session.authorize(placed.body, ground.responder.tokens)
    const csrs = Array.from({ length: 50 }, () => makeCsr({ names }).csr)
    const answers = await Promise.all(csrs.map((csr) => session.finalize(placed.body, csr)))
    const outcomes = answers.map((answer) => answer.status === 200 ? "taken" : problemType(answer))
    assert.strictEqual(outcomes.filter((outcome) => outcome === "taken").length, 1)
    assert.strictEqual(outcomes.filter((outcome) => outcome === "orderNotReady").length, 49)
    const order = await session.awaitOrder(placed.url, ["valid", "invalid"])
    assert.strictEqual(order.status, "valid")
    const chains = await Promise.all(Array.from({ length: 4 }, () => session.download(order.certificate ?? "")))
    assert.strictEqual(new Set(chains).size, 1)
    await told("order_finalized", "order_id", idOf(placed.url))
    assert.strictEqual(count("order_finalize_queued", "order_id", idOf(placed.url)), 1)
    assert.strictEqual(count("order_finalized", "order_id", idOf(placed.url)), 1)
  })

  it("answer 50 simultaneous triggers of one challenge with 200 and make one probe", async () => {
    const placed = await session.newOrder(["triggered.example"])
    const { challenges: [challenge] } = await session.authorization(placed.body.authorizations[0] ?? "")
    const { token = "", url = "" } = challenge ?? {}
    ground.responder.tokens.set(token, session.keyAuthorization(token))
    const answers = await Promise.all(Array.from({ length: 50 }, () => session.postOnce(url, {})))
    assert.deepStrictEqual(answers.map(({ status }) => status), Array<number>(50).fill(200))
    assert.strictEqual((await session.awaitOrder(placed.url, ["ready", "invalid"])).status, "ready")
    const probes = ground.responder.requests.filter(({ host }) => host.split(":")[0] === "triggered.example")
    assert.strictEqual(probes.length, 1)
    await told("challenge_validated", "challenge_id", idOf(url))
    assert.strictEqual(count("challenge_validation_requested", "challenge_id", idOf(url)), 1)
    assert.strictEqual(count("challenge_validated", "challenge_id", idOf(url)), 1)
  })

  it("accept one of 50 requests with one nonce", async () => {
    const nonce = await session.nonce()
    const uses = Array.from({ length: 50 }, () => session.postOnce(session.kid ?? "", undefined, { nonce }))
    const types = (await Promise.all(uses)).map((answer) => answer.status === 200 ? "ok" : problemType(answer))
    assert.strictEqual(types.filter((type) => type === "ok").length, 1)
    assert.strictEqual(types.filter((type) => type === "badNonce").length, 49)
  })

  it("make one account from 10 registrations of one key", async () => {
    const client = await session.another(await makeAcmeKey())
    const nonces = await Promise.all(Array.from({ length: 10 }, () => client.nonce()))
    const answers = await Promise.all(
      nonces.map((nonce) => client.postOnce(client.directory.newAccount, {}, { nonce, identify: "jwk" }))
    )
    assert.deepStrictEqual(answers.map(({ status }) => status).toSorted(), [...Array<number>(9).fill(200), 201])
    assert.strictEqual(new Set(answers.map(({ headers }) => headers.location)).size, 1)
  })

  it("do not depend on each other, so that one works after the other has stopped", async () => {
    assert.strictEqual((await servers[1].stop()).code, 0)
    const alone = await AcmeSession.open(ground.server.directoryUrl, { key: session.key })
    try {
      await alone.register({ onlyReturnExisting: true })
      assert.strictEqual(alone.kid, session.kid)
      const { chain } = await alone.issue(["alone.example"], ground.responder.tokens)
      await verifyChain(chain, ground.server.caFile, "alone.example")
    } finally {
      alone.close()
    }
  })
})
