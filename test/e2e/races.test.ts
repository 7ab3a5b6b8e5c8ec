import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { AcmeSession as Session, PlacedOrder } from "../support/AcmeSession.ts"
import { AcmeSession, problemType } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer, databases } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"

/*
 * The attacks of docs/contribute/attacks.md, "Orders and races", that need no second server. See twoServers.test.ts for
 * the others.
 */

describe.each(databases)("the service, with many requests at once, $name", ({ freshUrl }) => {
  let ground: Ground
  let session: Session
  /** While this is set, the web server delays its answers. */
  let gate: Promise<void> | undefined

  const held = (): () => void => {
    let open = () => {}
    gate = new Promise((resolve) => {
      open = resolve
    })
    return () => {
      gate = undefined
      open()
    }
  }

  const probesOf = (name: string): number =>
    ground.responder.requests.filter(({ host }) => host.split(":")[0] === name).length

  const challengeUrls = (order: PlacedOrder): Promise<ReadonlyArray<string>> =>
    Promise.all(order.body.authorizations.map(async (url) => {
      const { challenges: [challenge] } = await session.authorization(url)
      assert.isDefined(challenge)
      const { token = "", url: challengeUrl = "" } = challenge ?? {}
      ground.responder.tokens.set(token, session.keyAuthorization(token))
      return challengeUrl
    }))

  const times = <A>(count: number, make: () => Promise<A>): Promise<ReadonlyArray<A>> =>
    Promise.all(Array.from({ length: count }, make))

  beforeAll(async () => {
    await builtServer()
    ground = await startGround({ databaseUrl: await freshUrl() }, { before: () => gate ?? Promise.resolve() })
    session = await AcmeSession.open(ground.server.directoryUrl)
    await session.register()
  })

  afterAll(async () => {
    session?.close()
    await ground?.dispose()
  })

  it("answers each of 50 triggers of one challenge with 200 and makes one probe", async () => {
    const order = await session.newOrder(["triggers.example"])
    const [url = ""] = await challengeUrls(order)
    const answers = await times(50, () => session.postOnce(url, {}))
    assert.deepStrictEqual(answers.map(({ status }) => status), Array<number>(50).fill(200))
    await session.awaitOrder(order.url, ["ready", "invalid"])
    assert.strictEqual((await session.postOnce(url, {})).status, 200)
    assert.strictEqual(probesOf("triggers.example"), 1)
  })

  it("tells one of 33 triggers of an account to come back later if the limit is 32", async () => {
    const names = Array.from({ length: 33 }, (_, index) => `cap${index}.example`)
    const order = await session.newOrder(names)
    const urls = await challengeUrls(order)
    const open = held()
    const answers = await Promise.all(urls.map((url) => session.postOnce(url, {})))
    open()
    const refused = answers.filter(({ status }) => status === 429)
    assert.strictEqual(refused.length, 1)
    assert.strictEqual(answers.filter(({ status }) => status === 200).length, 32)
    for (const answer of refused) {
      assert.strictEqual(problemType(answer), "rateLimited")
      assert.strictEqual(answer.headers["retry-after"], "5")
    }
    // The refused challenge can be triggered again, and the order becomes ready.
    await session.poll(
      () => Promise.all(order.body.authorizations.map((url) => session.authorization(url))),
      (all) => all.filter(({ status }) => status === "valid").length === 32
    )
    const late = urls[answers.findIndex(({ status }) => status === 429)] ?? ""
    assert.strictEqual((await session.postOnce(late, {})).status, 200)
    assert.strictEqual((await session.awaitOrder(order.url, ["ready", "invalid"])).status, "ready")
  })

  it("makes exactly one probe for each of 20 names", async () => {
    const names = Array.from({ length: 20 }, (_, index) => `each${index}.example`)
    const { order } = await session.issue(names, ground.responder.tokens)
    assert.strictEqual(order.body.status, "valid")
    assert.deepStrictEqual(names.map(probesOf), Array<number>(20).fill(1))
  })

  it("accepts one of 50 finalizes and issues one certificate", async () => {
    const names = ["finalizes.example"]
    const order = await session.newOrder(names)
    await session.authorize(order.body, ground.responder.tokens)
    const answers = await times(50, () => session.finalize(order.body, makeCsr({ names }).csr))
    assert.strictEqual(answers.filter(({ status }) => status === 200).length, 1)
    assert.strictEqual(answers.filter((answer) => problemType(answer) === "orderNotReady").length, 49)
    assert.strictEqual((await session.awaitOrder(order.url, ["valid", "invalid"])).status, "valid")
    const id = order.url.slice(order.url.lastIndexOf("/") + 1)
    await ground.server.waitForEvent("order_finalized", { where: ({ fields }) => fields["order_id"] === id })
    for (const event of ["order_finalize_queued", "order_finalized", "local_ca_leaf_issued"]) {
      const about = ground.server.records().filter(({ fields }) =>
        fields["event"] === event && fields["order_id"] === id
      )
      assert.strictEqual(about.length, 1, event)
    }
  })

  it("answers a second trigger of a failed challenge with the error and starts no probe", async () => {
    const order = await session.newOrder(["failed.example"])
    const [url = ""] = await challengeUrls(order)
    ground.responder.tokens.clear()
    await session.postOnce(url, {})
    const settled = await session.awaitOrder(order.url, ["ready", "invalid"])
    assert.strictEqual(settled.status, "invalid")
    const probes = probesOf("failed.example")
    const again = await session.trigger(url)
    assert.strictEqual(again.status, "invalid")
    assert.match(again.error?.type ?? "", /:unauthorized$/)
    assert.include(again.error?.detail ?? "", "failed.example")
    assert.strictEqual(probesOf("failed.example"), probes)
  })

  it("lets either finalize or a simultaneous deactivation of the authorization win completely", async () => {
    for (let round = 0; round < 10; round++) {
      const names = [`given-up${round}.example`]
      const order = await session.newOrder(names)
      await session.authorize(order.body, ground.responder.tokens)
      const [authorization = ""] = order.body.authorizations
      const [finalized, deactivated] = await Promise.all([
        session.finalize(order.body, makeCsr({ names }).csr),
        session.postOnce(authorization, { status: "deactivated" })
      ])
      if (finalized.status !== 200) {
        assert.strictEqual(problemType(finalized), "orderNotReady")
        assert.strictEqual(deactivated.status, 200)
        continue
      }
      const ended = await session.awaitOrder(order.url, ["valid", "invalid"])
      if (ended.status === "valid") assert.strictEqual(problemType(deactivated), "malformed", deactivated.text)
      else assert.match(ended.error?.type ?? "", /:unauthorized$/)
    }
  })

  it("refuses an account that is deactivated while it finalizes an order", async () => {
    const leaving = await session.another()
    await leaving.register()
    const names = ["leaving.example"]
    const order = await leaving.newOrder(names)
    await leaving.authorize(order.body, ground.responder.tokens)
    const [finalized, gone] = await Promise.all([
      leaving.finalize(order.body, makeCsr({ names }).csr),
      leaving.deactivate()
    ])
    assert.strictEqual(gone.status, 200)
    const outcomes = [finalized.status, finalized.status === 200 ? undefined : problemType(finalized)]
    assert.include([[200, undefined], [401, "unauthorized"], [403, "orderNotReady"]].map(String), String(outcomes))
    for (const url of [order.url, leaving.kid ?? ""]) {
      const after = await leaving.postOnce(url)
      assert.strictEqual(after.status, 401, after.text)
      assert.strictEqual(problemType(after), "unauthorized")
    }
    const back = await leaving.postOnce(leaving.directory.newAccount, {}, { identify: "jwk" })
    assert.strictEqual(back.status, 401, back.text)
  })

  it("has no error in its log afterwards", () => {
    assert.deepStrictEqual(ground.server.records().filter(({ level }) => level === "error"), [])
  })
})
