import { spawnSync } from "node:child_process"
import { createPrivateKey, createPublicKey, generateKeyPairSync, X509Certificate } from "node:crypto"
import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { makeCa } from "../crypto/Ca.ts"
import type { AcmeKey, ProblemBody } from "../support/AcmeSession.ts"
import { AcmeSession, problemType } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import { runtime, runToEnd, startServer } from "../support/Server.ts"

/*
 * Tests what the service tells a client that has an ML-DSA key, and CAs with such keys. This depends on the runtime of
 * the service: Node.js 22 has no such keys. So the gate runs this file on Node.js 22 too.
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

/** A machine with a configuration, and the commands on it. */
const machine = (config: string | null = null) => {
  const directory = freshDirectory()
  const at = (name: string) => join(directory, name)
  writeFileSync(at("passphrase"), "correct horse battery staple\n", { mode: 0o600 })
  if (config !== null) writeFileSync(at("config.toml"), config)
  const run = (...words: ReadonlyArray<string>) => runToEnd(words, { config: null, directory })
  const succeed = async (...words: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await run(...words)
    assert.strictEqual(code, 0, `${words.join(" ")}: ${stderr}`)
    return stdout
  }
  return { at, directory, run, succeed }
}

const own = (keys: string) => `[challenge]\nbypass = true\n[profiles.default.signer.local_ca]\n${keys}\n`
const withPassphrase = ["--passphrase-file", "passphrase"]

describe("a CA with a key of ML-DSA", () => {
  it("is made by two machines and issues, or is refused with the key of the configuration", async () => {
    const service = machine(own("key_type = \"ml-dsa-65\"\nkey_passphrase_file = \"passphrase\""))
    const root = machine()
    const makesRoot = ["ca", "init", "--root", "r", "--root-only", "--root-name", "A Root", "--key-type", "ml-dsa-87"]
    if (!hasMlDsa) {
      const refused = await root.run(...makesRoot, ...withPassphrase)
      assert.strictEqual(refused.code, 3)
      assert.include(refused.stderr, "an ML-DSA-87 key, which this Node.js does not have")
      assert.isFalse(existsSync(root.at("r/root.key")))
      for (const words of [["serve"], ["config", "check"], ["ca", "csr"]]) {
        const { code, stderr, stdout } = await service.run(...words)
        assert.strictEqual(code, 3, words.join(" "))
        assert.include(stderr + stdout, "names ml-dsa-65, a kind of key that this Node.js does not have")
      }
      assert.isFalse(existsSync(service.at("ca.key")))
      return
    }
    await root.succeed(...makesRoot, ...withPassphrase)
    await service.succeed("ca", "csr", "--out", "issuing.csr")
    copyFileSync(service.at("issuing.csr"), root.at("issuing.csr"))
    const signed = await root.succeed("ca", "sign", "issuing.csr", "--root", "r", "--yes", ...withPassphrase)
    writeFileSync(service.at("answer.pem"), signed)
    await service.succeed("ca", "import", "answer.pem")
    await service.succeed("ca", "test-sign")
    const server = await startServer({ directory: service.directory, config: null })
    const client = await AcmeSession.open(server.directoryUrl)
    await client.register()
    const { chain } = await client.issue(["classical.example"], new Map())
    const list = await fetch(`${server.baseUrl}/profile/default/crl`)
    assert.strictEqual(list.status, 200)
    client.close()
    await server.stop()
    const [leaf, issuing] = (chain.match(/-----BEGIN[^]*?END CERTIFICATE-----/g) ?? []).map((one) =>
      new X509Certificate(one)
    )
    const anchor = new X509Certificate(readFileSync(root.at("r/root.pem")))
    assert.strictEqual(leaf?.publicKey.asymmetricKeyType, "ec")
    assert.strictEqual(issuing?.publicKey.asymmetricKeyType, "ml-dsa-65")
    assert.strictEqual(anchor.publicKey.asymmetricKeyType, "ml-dsa-87")
    assert.isTrue(leaf?.verify(issuing?.publicKey ?? assert.fail("no issuer")))
    assert.isTrue(issuing?.verify(anchor.publicKey))
  })

  it("that others made is taken, or refused with the kind of its key", async () => {
    const service = machine(own(""))
    // The runtime of the tests has ML-DSA in any case.
    const { certificatePem, privateKeyPem } = await makeCa("ml-dsa-65")
    writeFileSync(service.at("ca.key"), privateKeyPem, { mode: 0o600 })
    writeFileSync(service.at("ca.pem"), certificatePem)
    const checked = await service.run("config", "check")
    if (hasMlDsa) {
      assert.strictEqual(checked.code, 0, checked.stderr)
      return
    }
    assert.strictEqual(checked.code, 3, checked.stdout)
    assert.include(
      checked.stderr,
      "the CA key is an ML-DSA-65 key, which this Node.js does not have (Node.js 24 has it)"
    )
    assert.strictEqual((await service.run("serve")).code, 3)
  })
})
