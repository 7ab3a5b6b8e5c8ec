import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { ChallengeBody, OrderBody } from "../support/AcmeSession.ts"
import { AcmeSession } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import type { HttpAnswer, HttpClient } from "../support/Http.ts"
import { makeHttpClient } from "../support/Http.ts"
import { open } from "../support/RawClient.ts"

/*
 * The headers that every answer has: RFC 8555 section 6.5, docs/contribute/decisions/acme-surface.md, "Layers of a
 * request".
 */

let ground: Ground
let http: HttpClient
let session: AcmeSession

const linksOf = (answer: HttpAnswer): string => [answer.headers["link"] ?? []].flat().join(", ")

/** Sends a signed request with the nonce of the last answer, which proves that each nonce works. */
const post = async (url: string, payload?: object): Promise<HttpAnswer> => {
  const answer = await session.postOnce(url, payload)
  assert.match(String(answer.headers["replay-nonce"]), /^[\w-]{43}$/, url)
  assert.strictEqual(answer.headers["cache-control"], "no-store", url)
  assert.include(linksOf(answer), `<${session.directoryUrl}>;rel="index"`, url)
  assertHardened(answer)
  // An answer contains no members without a value.
  if (answer.headers["content-type"]?.endsWith("json") === true) assert.notMatch(answer.text, /:(?:null|\[\])/, url)
  return answer
}

const assertHardened = ({ headers }: HttpAnswer): void => {
  assert.isUndefined(headers["strict-transport-security"])
  assert.strictEqual(headers["x-content-type-options"], "nosniff")
  assert.strictEqual(headers["x-frame-options"], "DENY")
  assert.match(String(headers["x-request-id"]), /^\S+$/)
  assert.isUndefined(headers["server"])
  assert.isUndefined(headers["x-powered-by"])
}

beforeAll(async () => {
  await builtServer()
  ground = await startGround()
  http = makeHttpClient()
  session = await AcmeSession.open(ground.server.directoryUrl, { http })
})

afterAll(async () => {
  http?.close()
  await ground?.dispose()
})

describe("the headers of an answer", () => {
  it("are complete for every step of an issuance", async () => {
    const registered = await post(session.directory.newAccount, { termsOfServiceAgreed: true })
    assert.strictEqual(registered.status, 201)
    session.kid = String(registered.headers.location)
    assert.strictEqual((await post(session.kid)).headers.location, session.kid)

    const identifiers = [{ type: "dns", value: "Answers.Example." }]
    const created = await post(session.directory.newOrder, { identifiers })
    const url = String(created.headers.location)
    const order = created.json as OrderBody
    assert.strictEqual(created.status, 201)
    assert.strictEqual(created.headers["content-type"], "application/json")
    assert.deepStrictEqual(order.identifiers, [{ type: "dns", value: "answers.example" }])
    assert.strictEqual((await post(url)).headers.location, url)

    const [authorizationUrl = ""] = order.authorizations
    const pending = await post(authorizationUrl)
    assert.strictEqual(pending.headers["retry-after"], "1")
    const [challenge] = (pending.json as { readonly challenges: ReadonlyArray<ChallengeBody> }).challenges
    assert.isDefined(challenge)
    const { token = "", url: challengeUrl = "" } = challenge ?? {}
    ground.responder.tokens.set(token, session.keyAuthorization(token))
    for (const payload of [undefined, {}]) {
      const answer = await post(challengeUrl, payload)
      assert.include(linksOf(answer), `<${authorizationUrl}>;rel="up"`)
      assert.strictEqual(answer.headers["retry-after"], payload === undefined ? undefined : "0")
    }
    await session.awaitOrder(url, ["ready"])

    const early = await post(order.finalize.replace("/order/", "/certificate/").replace("/finalize", ""))
    assert.strictEqual(early.status, 404)
    const { csr } = makeCsr({ names: ["answers.example"] })
    const finalized = await post(order.finalize, { csr: csr.toString("base64url") })
    assert.strictEqual(finalized.status, 200)
    assert.strictEqual(finalized.headers.location, url)
    assert.strictEqual(finalized.headers["retry-after"], "0")
    const { certificate = "" } = await session.awaitOrder(url, ["valid"])
    const chain = await post(certificate)
    assert.strictEqual(chain.headers["content-type"], "application/pem-certificate-chain")
    assert.strictEqual(chain.text.match(/BEGIN CERTIFICATE/g)?.length, 2)
  })

  it("are complete for resources that need no signature", async () => {
    const { directory, directoryUrl } = session
    for (const [method, status] of [["GET", 204], ["HEAD", 200]] as const) {
      const answer = await http.send(directory.newNonce, { method })
      assert.strictEqual(answer.status, status)
      assert.match(String(answer.headers["replay-nonce"]), /^[\w-]{43}$/)
      assert.strictEqual(answer.headers["cache-control"], "no-store")
      assert.include(linksOf(answer), "rel=\"index\"")
      assertHardened(answer)
    }
    const read = await http.send(directoryUrl)
    assert.strictEqual(read.headers["content-type"], "application/json")
    assert.isUndefined(read.headers["replay-nonce"])
    const head = await http.send(directoryUrl, { method: "HEAD" })
    assert.strictEqual(head.status, 200)
    assert.strictEqual(head.text, "")
    const health = await http.send(`${ground.server.baseUrl}/health`)
    assert.deepEqual(health.json, { healthy: true })
    assertHardened(health)
    const root = await http.send(`${ground.server.baseUrl}/`)
    assert.strictEqual(root.status, 302)
    assert.strictEqual(root.headers.location, "/health")
  })

  it("do not depend on the host in the target of a request", async () => {
    const { host, port, pathname } = new URL(session.directory.newOrder)
    const asked = async (request: string) => await open(Number(port), request).ended
    const close = "Connection: close\r\n"
    const [head, body] = (await asked(
      `GET http://evil.example${new URL(session.directoryUrl).pathname} HTTP/1.1\r\nHost: ${host}\r\n${close}\r\n`
    )).split("\r\n\r\n")
    assert.match(head ?? "", /^HTTP\/1\.1 200 /)
    assert.deepEqual(JSON.parse(body ?? ""), session.directory)

    const jws = await session.sign(session.directory.newOrder, { identifiers: [] })
    const posted = await asked(
      `POST http://${host}${pathname} HTTP/1.1\r\nHost: evil.example\r\n${close}Content-Type: application/jose+json\r\n` +
        `Content-Length: ${Buffer.byteLength(jws)}\r\n\r\n${jws}`
    )
    // The signature and the signed URL are correct, so that only the order is refused.
    assert.match(posted, /^HTTP\/1\.1 400 [^]*An order names at least one identifier\./)
  })

  it("do not depend on a forged host, a forged method or an unusable request id", async () => {
    const forged = await http.send(session.directoryUrl, {
      headers: {
        "host": "evil.example",
        "x-forwarded-host": "evil.example",
        "x-forwarded-proto": "ftp",
        "forwarded": "host=evil.example",
        "x-http-method-override": "DELETE"
      }
    })
    assert.strictEqual(forged.status, 200)
    assert.deepEqual(forged.json, session.directory)
    const kept = await http.send(session.directoryUrl, { headers: { "x-request-id": "trace-7" } })
    assert.strictEqual(kept.headers["x-request-id"], "trace-7")
    for (const odd of ["x".repeat(10_000), "caf\u00e9", " "]) {
      const { headers } = await http.send(session.directoryUrl, { headers: { "x-request-id": odd } })
      assert.match(String(headers["x-request-id"]), /^[0-9a-f-]{36}$/)
    }
    const spoofed = await http.send(session.directoryUrl, {
      headers: { "x-forwarded-for": "203.0.113.9", "x-request-id": "whose" }
    })
    assert.strictEqual(spoofed.status, 200)
    const { span } = await ground.server.waitForEvent("request_completed", {
      where: (record) => record.span["request_id"] === "whose"
    })
    assert.strictEqual(span["client_ip"], "127.0.0.1")
  })
})
