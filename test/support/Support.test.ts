import { flattenedVerify, importJWK } from "jose"
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "pg"
import { assert, describe, inject, it } from "vitest"
import { makeAcmeKey, signJws } from "./AcmeSession.ts"
import { makeCsr } from "./Csr.ts"
import { bothDatabases, freshPostgresUrl } from "./Databases.ts"
import { makeHttpClient } from "./Http.ts"
import { startHttp01Responder } from "./Http01Responder.ts"
import { longest } from "./LongestFirst.ts"
import { leafOf, makeCa, verifyChain } from "./Openssl.ts"
import { startPostgres } from "./Postgres.ts"

const one = async (url: string, statement: string): Promise<unknown> => {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query({ text: statement, rowMode: "array" })
    return (rows as ReadonlyArray<ReadonlyArray<unknown>>)[0]?.[0]
  } finally {
    await client.end()
  }
}

describe("the order of test files", () => {
  it("begins with files that exist", () => {
    for (const file of longest) assert.isTrue(existsSync(join(import.meta.dirname, "..", file)), file)
  })
})

describe("a database for tests", () => {
  it("has a fresh URL for each dialect", async () => {
    for (const { dialect, freshUrl } of bothDatabases) {
      const [first, second] = [await freshUrl(), await freshUrl()]
      assert.match(first, new RegExp(`^${dialect}://`))
      assert.notStrictEqual(first, second)
    }
  })

  it("is empty if it is on PostgreSQL", async () => {
    const url = await freshPostgresUrl()
    const tables = "SELECT count(*)::int FROM pg_tables WHERE schemaname = 'public'"
    assert.strictEqual(await one(url, tables), 0)
  })
})

describe("the services of a test run", () => {
  it("close a connection after its answer, because a test may have no turn of its event loop for a while", async () => {
    const http = makeHttpClient()
    const { headers } = await http.send(`${inject("runServices")}/none`, { method: "POST" })
    http.close()
    assert.strictEqual(headers["connection"], "close")
  })
})

describe("a cluster that a test starts", () => {
  it("can be stopped and started again with its data", async () => {
    const cluster = await startPostgres()
    try {
      const url = await cluster.createDatabase("kept")
      await one(url, "CREATE TABLE t AS SELECT 7 AS n")
      await cluster.halt()
      assert.match(String(await one(url, "SELECT 1").catch((error: unknown) => error)), /ECONNREFUSED/)
      await cluster.resume()
      assert.strictEqual(await one(url, "SELECT n FROM t"), 7)
    } finally {
      await cluster.stop()
    }
  })
})

describe("signed requests of the tests", () => {
  it.each(["ec", "rsa"] as const)("are verified by an independent implementation (%s)", async (type) => {
    const key = await makeAcmeKey(type)
    const jws = signJws(key, JSON.stringify({ alg: key.alg, nonce: "n" }), JSON.stringify({ a: 1 }))
    const { payload, protectedHeader } = await flattenedVerify(jws, await importJWK(key.jwk, key.alg))
    assert.deepStrictEqual(JSON.parse(new TextDecoder().decode(payload)), { a: 1 })
    assert.strictEqual(protectedHeader?.alg, key.alg)
  })
})

describe("certificate requests of the tests", () => {
  it("are valid according to OpenSSL and have these names", () => {
    const { csr } = makeCsr({ names: ["a.example", "*.b.example"], commonNames: ["a.example"] })
    const text = execFileSync("openssl", ["req", "-inform", "DER", "-verify", "-noout", "-text"], {
      input: csr,
      encoding: "utf8",
      stdio: ["pipe", "pipe", "ignore"]
    })
    assert.match(text, /DNS:a\.example, DNS:\*\.b\.example/)
    assert.match(text, /CN = a\.example/)
  })
})

describe("the verification by OpenSSL", () => {
  it("accepts a CA of the tests with the CA itself as the anchor and with no other", async () => {
    const directory = mkdtempSync(join(tmpdir(), "acme-test-"))
    try {
      const [cert, key, other] = ["ca.pem", "ca.key", "other.pem"].map((name) => join(directory, name)) as [
        string,
        string,
        string
      ]
      makeCa(cert, key, "One")
      makeCa(other, key, "Other")
      const leaf = execFileSync("openssl", [
        "req",
        "-x509",
        "-CA",
        other,
        "-CAkey",
        key,
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-keyout",
        join(directory, "leaf.key"),
        "-subj",
        "/CN=x",
        "-addext",
        "subjectAltName=DNS:a.example",
        "-addext",
        "basicConstraints=critical,CA:FALSE"
      ], { encoding: "utf8", stdio: "pipe" })
      writeFileSync(join(directory, "leaf.pem"), leaf)
      assert.strictEqual(leafOf(leaf).subjectAltName, "DNS:a.example")
      await verifyChain(leaf, other, "a.example")
      const refusal = await verifyChain(leaf, cert, "a.example").catch((error: unknown) => String(error))
      assert.match(String(refusal), /verification failed/)
      const otherHost = await verifyChain(leaf, other, "b.example").catch((error: unknown) => String(error))
      assert.match(String(otherHost), /hostname mismatch/i)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })
})

describe("the http-01 responder", () => {
  it("serves the configured content and nothing else", async () => {
    const responder = await startHttp01Responder()
    const http = makeHttpClient()
    try {
      responder.tokens.set("tok", "tok.thumb")
      const base = `http://127.0.0.1:${responder.port}/.well-known/acme-challenge/`
      assert.strictEqual((await http.send(`${base}tok`)).text, "tok.thumb")
      assert.strictEqual((await http.send(`${base}other`)).status, 404)
      assert.strictEqual(responder.requests.length, 2)
    } finally {
      http.close()
      await responder.stop()
    }
  })
})
