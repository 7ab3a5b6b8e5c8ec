import { execFile, spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { Compared } from "../../tools/bench/Compare.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import { writePebbleFiles } from "../support/PebbleFiles.ts"
import { freePort } from "../support/Ports.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, runToEnd, startServer } from "../support/Server.ts"

/* Runs the comparison with a server that runs already, which here is another instance of the service. */

const program = resolve(import.meta.dirname, "../../tools/bench/main.ts")

/** Compares the service with the servers in a file, by very few issuances. */
const compare = (content: string) => {
  const file = join(freshDirectory(), "peers.toml")
  writeFileSync(file, content)
  const short = "--databases sqlite --concurrency 1 --issuances 2 --service-only --json".split(" ")
  return new Promise<{ readonly code: unknown; readonly stdout: string; readonly stderr: string }>((done) => {
    execFile(
      process.execPath,
      [program, "--peers", file, ...short],
      (error, stdout, stderr) => done({ code: error === null ? 0 : error.code, stdout, stderr })
    )
  })
}

describe("the comparison with a server that runs already", () => {
  let server: Server
  let peer: { readonly [key: string]: string | number }
  const ports = { dns: 0, http: 0 }

  /** Compares the service with the other instance, some of whose keys have these values instead. */
  const comparedWith = (other: typeof peer) =>
    compare([
      `dns_port = ${ports.dns}`,
      `http_01_port = ${ports.http}`,
      "[peers.other]",
      ...Object.entries({ ...peer, ...other }).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
    ].join("\n"))

  beforeAll(async () => {
    await builtServer()
    const tls = await writePebbleFiles(freshDirectory())
    ports.dns = await freePort()
    ports.http = await freePort()
    server = await startServer({
      tls: true,
      config: `${minimalConfig}[eab]\nenabled = true\n`,
      env: {
        ACME_SVC_SERVER__TLS__CERT_PATH: tls.certificate,
        ACME_SVC_SERVER__TLS__KEY_PATH: tls.privateKey,
        ACME_SVC_DNS__RESOLVER: `127.0.0.1:${ports.dns}`,
        ACME_SVC_CHALLENGE__HTTP_01__PORT: `${ports.http}`
      }
    })
    const words = ["eab", "create", "--label", "bench", "--json"]
    const made = await runToEnd(words, { directory: server.directory, config: null })
    const { hmacKey, kid } = JSON.parse(made.stdout) as { readonly hmacKey: string; readonly kid: string }
    peer = {
      directory_url: server.directoryUrl,
      pid: server.pid(),
      ca_path: tls.certificate,
      eab_kid: kid,
      eab_key: hmacKey
    }
  })
  afterAll(() => server.dispose())

  it("proves names to it, and registers by its credential", async () => {
    const { code, stderr, stdout } = await comparedWith({})
    assert.strictEqual(code, 0, stderr)
    const compared = JSON.parse(stdout) as ReadonlyArray<Compared>
    assert.deepStrictEqual(
      compared.map(({ burden: { act, isProved }, sides }) => [act, isProved, sides.map(({ name }) => name).join()]),
      [
        ["issue", false, "sqlite"],
        ["issue", true, "sqlite,other"],
        ["newAccount", false, "sqlite,other"],
        ["newNonce", false, "sqlite,other"],
        ["directory", false, "sqlite,other"]
      ]
    )
    const [turn] = compared[1]?.sides.find(({ name }) => name === "other")?.turns ?? []
    if (turn === undefined) return assert.fail(stdout)
    assert.deepStrictEqual([turn.issuances, turn.refused], [2, 0])
    assert.isAtLeast(turn.requests, 7)
    assert.isAbove(turn.cpu, 0)
    assert.isAbove(turn.durations?.p50 ?? 0, 0)
    assert.notInclude(stdout + stderr, String(peer["eab_key"]))
  })

  it("fails if the process is another one", async () => {
    const idle = spawn("sleep", ["600"])
    try {
      const { code, stderr } = await comparedWith({ pid: idle.pid ?? 0 })
      assert.strictEqual(code, 1)
      assert.include(stderr, "peers.other: its process used no CPU")
    } finally {
      idle.kill()
    }
  })

  it("fails if the server has another certificate", async () => {
    const { certificate } = await writePebbleFiles(freshDirectory())
    const { code, stderr } = await comparedWith({ ca_path: certificate })
    assert.strictEqual(code, 1)
    assert.match(stderr, /peers\.other: .*self-signed certificate/)
  })

  it("fails with the server's answer if every issuance is refused", async () => {
    const { code, stderr } = await comparedWith({ eab_key: "b3RoZXI" })
    assert.strictEqual(code, 1)
    assert.match(stderr, /peers\.other: everything was refused: newAccount: 40[01] .*urn:ietf:params:acme:error/s)
  })
})
