import { spawnSync } from "node:child_process"
import { createPrivateKey, createPublicKey, generateKeyPairSync, X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { AcmeKey, ProblemBody } from "../support/AcmeSession.ts"
import { AcmeSession, problemType } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import { runtime } from "../support/Server.ts"

/*
 * Tests what the service tells a client that has an ML-DSA key. The answers depend on the runtime of the service:
 * Node.js 22 cannot verify with such a key. So the gate runs this file on Node.js 22 too.
 */

/** Whether the runtime of the service has ML-DSA. */
const hasMlDsa = spawnSync(runtime, ["-e", "crypto.generateKeyPairSync('ml-dsa-44')"]).status === 0

const sets = [["ml-dsa-44", "ML-DSA-44"], ["ml-dsa-65", "ML-DSA-65"], ["ml-dsa-87", "ML-DSA-87"]] as const

let ground: Ground
let session: AcmeSession

beforeAll(async () => {
  await builtServer()
  ground = await startGround({ config: "[challenge]\nbypass = true\n\n[profiles.default]\nenabled = true\n" })
  session = await AcmeSession.open(ground.server.directoryUrl)
  await session.register()
})

afterAll(async () => {
  session?.close()
  await ground?.dispose()
})

describe.each(sets)("a client with a key of %s", (type, alg) => {
  const privateKey = createPrivateKey(generateKeyPairSync(type).privateKey.export({ type: "pkcs8", format: "pem" }))
  const jwk = createPublicKey(privateKey).export({ format: "jwk" })
  const key: AcmeKey = { privateKey, jwk, alg, thumbprint: "" }

  it("is told that the key is refused for a certificate, and its order stays ready", async () => {
    const names = [`${type}.example`]
    const placed = await session.newOrder(names)
    await session.authorize(placed.body, ground.responder.tokens)
    const answer = await session.finalize(placed.body, makeCsr({ names, key: privateKey }).csr)
    assert.strictEqual(answer.status, 400, answer.text)
    assert.strictEqual(problemType(answer), "badCSR")
    const { detail = "" } = answer.json as ProblemBody
    const said = hasMlDsa
      ? `The key is ${type}, and the accepted keys are `
      : `cannot verify signatures of an ${alg} key`
    assert.include(detail, said)
    assert.strictEqual((await session.order(placed.url)).status, "ready")
  })

  it("gets no account", async () => {
    const other = await session.another(key)
    const answer = await other.postOnce(other.directory.newAccount, { termsOfServiceAgreed: true }, { identify: "jwk" })
    assert.strictEqual(answer.status, 400, answer.text)
    assert.strictEqual(problemType(answer), "badSignatureAlgorithm")
    assert.deepStrictEqual((answer.json as ProblemBody).algorithms, ["ES256", "RS256"])
    other.close()
  })

  it("has its signature of revokeCert verified if the runtime can do that, and is told the algorithms otherwise", async () => {
    const certificate = new X509Certificate(readFileSync(ground.server.caFile)).raw.toString("base64url")
    const url = session.directory.revokeCert ?? assert.fail("no revokeCert")
    const answer = await session.postOnce(url, { certificate }, { key, identify: "jwk" })
    const { algorithms, type: problem } = answer.json as ProblemBody
    if (hasMlDsa) {
      assert.strictEqual(answer.status, 404, answer.text)
      const forged = { ...key, privateKey: generateKeyPairSync(type).privateKey }
      const other = await session.postOnce(url, { certificate }, { key: forged, identify: "jwk" })
      assert.strictEqual(other.status, 401, other.text)
      return
    }
    assert.strictEqual(answer.status, 400, answer.text)
    assert.strictEqual(problem, "urn:ietf:params:acme:error:badSignatureAlgorithm")
    assert.deepStrictEqual(algorithms, ["ES256", "RS256", "ES384", "ES512", "EdDSA"])
  })
})
