import { readFileSync, renameSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { builtServer, freshDirectory, postgres } from "../support/Databases.ts"
import { isFull } from "../support/Full.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import type { HttpAnswer } from "../support/Http.ts"
import { makeHttpClient } from "../support/Http.ts"
import { onTerminal } from "../support/OnTerminal.ts"
import { readOpenMetrics } from "../support/OpenMetrics.ts"
import { verifyChain } from "../support/Openssl.ts"
import { freePort } from "../support/Ports.ts"
import type { Server } from "../support/Server.ts"
import { runtime, runToEnd, startServer, thisBuild } from "../support/Server.ts"

/* Tests a service that runs as several processes under a parent (docs/contribute/decisions/processes.md). */

type Record = ReturnType<Server["records"]>[number]

/** One request over a connection of its own. */
const ask = async (url: string): Promise<HttpAnswer> => {
  const http = makeHttpClient()
  try {
    return await http.send(url)
  } finally {
    http.close()
  }
}

const isAbout = (process: number) => ({ fields }: Record) => fields["process"] === process

/** The process id of a child that was started last. */
const pidOf = (server: Server, process: number): number =>
  Number(
    server.records().findLast(({ fields }) =>
      fields["event"] === "server_process_started" && fields["process"] === process
    )
      ?.fields["pid"]
  )

const ready = (server: Server, process: number) =>
  server.waitForEvent("server_process_ready", { where: isAbout(process) })

/** Clients that ask without a pause, each request over a connection of its own, until they are told to stop. */
const startLoad = (url: string, clients = 4) => {
  const state = { stopped: false, answered: 0 }
  const failures: Array<{ readonly begun: number; readonly why: string }> = []
  const client = async () => {
    while (!state.stopped) {
      const begun = performance.now()
      try {
        const { status } = await ask(url)
        if (status === 200) state.answered++
        else failures.push({ begun, why: `status ${status}` })
      } catch (error) {
        failures.push({ begun, why: String(error) })
      }
    }
  }
  const running = Promise.all(Array.from({ length: clients }, client))
  return {
    failures,
    /** Waits until so many more requests were answered. */
    more: async (count: number) => {
      const enough = state.answered + count
      while (state.answered < enough) await ask(url)
    },
    end: async () => {
      state.stopped = true
      await running
      assert.isAbove(state.answered, 0)
    }
  }
}

// The program is the same from its sources, which takes long to start.
describe.each(isFull ? ["dist", "source"] as const : ["dist"] as const)("several processes, run from %s", (from) => {
  let ground: Ground
  let server: Server
  let metricsPort: number

  const configure = (website: string, more = "") =>
    writeFileSync(
      join(server.directory, "config.toml"),
      `${more}\n[meta]\nwebsite = "https://${website}/"\n[profiles.default]\nenabled = true\n`
    )

  /** Returns the websites that the directory names to some new connections. */
  const websites = async (): Promise<ReadonlySet<string>> => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => ask(server.directoryUrl)))
    return new Set(answers.map(({ text }) => /"website":"([^"]*)"/.exec(text)?.[1] ?? ""))
  }

  const metrics = async () => (await ask(`http://127.0.0.1:${metricsPort}/metrics`)).text
  const readiness = (base = `http://127.0.0.1:${metricsPort}`) => ask(`${base}/ready`)

  /** Runs `act`, and waits until an event has been logged once more than before. */
  const after = async (event: string, act: () => void, where: (record: Record) => boolean = () => true) => {
    const before = server.records().filter((record) => record.fields["event"] === event && where(record)).length
    let seen = 0
    act()
    return server.waitForEvent(event, { where: (record) => where(record) && ++seen > before })
  }

  const reload = (outcome: string) => after(outcome, () => server.signal("SIGHUP"))

  beforeAll(async () => {
    await builtServer()
    metricsPort = await freePort()
    ground = await startGround({
      from,
      databaseUrl: await postgres.freshUrl(),
      env: {
        ACME_SVC_SERVER__PROCESSES: "2",
        ACME_SVC_METRICS__ENABLED: "true",
        ACME_SVC_METRICS__BIND_ADDRESS: `127.0.0.1:${metricsPort}`
      }
    })
    server = ground.server
    for (const process of [0, 1, 2]) await ready(server, process)
  })

  afterAll(async () => {
    await ground?.dispose()
  })

  it("serve clients together, and show their metrics on one socket", async () => {
    const session = await AcmeSession.open(server.directoryUrl)
    await session.register()
    const { chain } = await session.issue(["one.example"], ground.responder.tokens)
    await verifyChain(chain, server.caFile, "one.example")

    const served = (text: string, process: number) =>
      new RegExp(`^acme_svc_requests_total\\{.*process="${process}".*\\} [1-9]`, "m").test(text)
    let text = ""
    do {
      await websites()
      text = await metrics()
    } while (!served(text, 1) || !served(text, 2))
    const samples = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"))
    assert.isEmpty(samples.filter((sample) => !/process="[012]"/.test(sample)))
    assert.match(text, /^acme_svc_jobs\{.*process="0".*\}/m)
    assert.strictEqual(readOpenMetrics(text).get("acme_svc_requests"), "counter")
    const { json, status } = await readiness()
    assert.deepStrictEqual([status, json], [200, { ready: true, roles: ["acme", "admin", "worker"] }])
  })

  it("log once what they have in common", () => {
    for (const event of ["server_config_loaded", "tls_disabled", "filter_disabled", "profile_mounted"]) {
      assert.lengthOf(server.records().filter(({ fields }) => fields["event"] === event), 1, event)
    }
  })

  it("reload together without a failed request", async () => {
    const load = startLoad(server.directoryUrl)
    for (const website of ["one.example", "two.example", "three.example"]) {
      await load.more(20)
      configure(website)
      await reload("server_config_reloaded")
      assert.deepStrictEqual([...await websites()], [`https://${website}/`])
    }
    await load.end()
    assert.deepStrictEqual(load.failures.map(({ why }) => why), [])
  })

  it("all keep the old configuration if the file is bad, even a process that starts afterwards", async () => {
    const before = server.records().length
    writeFileSync(join(server.directory, "config.toml"), "[profiles.default]\nenabled = \"perhaps\"\n")
    const { fields } = await reload("server_config_reload_refused")
    assert.include(String(fields["error"]), "profiles.default.enabled: must be true or false")
    assert.deepStrictEqual([...await websites()], ["https://three.example/"])
    await after("server_process_ready", () => process.kill(pidOf(server, 1), "SIGKILL"), isAbout(1))
    assert.deepStrictEqual([...await websites()], ["https://three.example/"])
    const refusals = server.records().slice(before).filter(({ fields }) =>
      /refused|failed|fatal/.test(String(fields["event"]))
    )
    assert.lengthOf(refusals, 1)
  })

  it("all keep the old configuration if only one of them cannot serve the new one", async () => {
    // Only the process with the role worker reads this key.
    writeFileSync(join(server.directory, "other.key"), "no key")
    writeFileSync(join(server.directory, "other.pem"), readFileSync(server.caFile))
    configure(
      "four.example",
      "[profiles.other.signer.local_ca]\ncert_path = \"other.pem\"\nkey_path = \"other.key\"\ncrl_path = \"other.crl\"\n"
    )
    const { fields } = await reload("server_config_reload_refused")
    assert.include(String(fields["error"]), "other.key")
    assert.deepStrictEqual([...await websites()], ["https://three.example/"])
    assert.strictEqual((await ask(server.profileUrl("other"))).status, 404)
    configure("five.example")
    await reload("server_config_reloaded")
    assert.deepStrictEqual([...await websites()], ["https://five.example/"])
  })

  it("refuse an address that is in use until the address is free", async () => {
    const holder = createServer()
    await new Promise<void>((done) => holder.listen(0, "127.0.0.1", done))
    const address = holder.address()
    assert(typeof address === "object" && address !== null)
    const publish = `[publish]\nenabled = true\nbind_address = "127.0.0.1:${address.port}"\n`
    configure("five.example", publish)
    const { fields } = await reload("server_config_reload_failed")
    assert.include(String(fields["error"]), "publish.bind_address: Cannot listen on")
    await new Promise((done) => holder.close(done))
    await reload("server_config_reloaded")
    const url = `http://127.0.0.1:${address.port}/profile/default/ca.pem`
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(url)))
    assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))], [200])
    configure("five.example")
    await reload("server_config_reloaded")
  })

  it("are replaced one after the other without a failed request", async () => {
    const load = startLoad(server.directoryUrl)
    for (const number of [1, 2, 1, 2]) {
      await load.more(20)
      const ended = pidOf(server, number)
      await after("server_process_ready", () => process.kill(ended, "SIGTERM"), isAbout(number))
      assert.notStrictEqual(pidOf(server, number), ended)
    }
    await load.end()
    assert.deepStrictEqual(load.failures.map(({ why }) => why), [])
  })

  it("lose no requests except those that a killed process had accepted", async () => {
    const load = startLoad(server.directoryUrl)
    await load.more(20)
    const successor = after("server_process_ready", () => process.kill(pidOf(server, 2), "SIGKILL"), isAbout(2))
    await server.waitForEvent("server_process_ended", {
      where: ({ fields }) => fields["signal"] === "SIGKILL" && fields["process"] === 2
    })
    const gone = performance.now()
    await load.more(20)
    await successor
    await load.more(20)
    await load.end()
    assert.deepStrictEqual(load.failures.filter(({ begun }) => begun > gone), [])
    assert.isAtMost(load.failures.length, 4, "one request for each client")
  })

  it("replace a process that does not answer, and refuse the reload that finds it", async () => {
    const frozen = pidOf(server, 0)
    const isGone = after("server_process_ended", () => process.kill(frozen, "SIGSTOP"), isAbout(0))
    const successor = after("server_process_ready", () => undefined, isAbout(0))
    configure("six.example")
    const { fields } = await reload("server_config_reload_failed")
    assert.include(String(fields["error"]), "Process 0 does not answer")
    assert.strictEqual((await isGone).fields["signal"], "SIGKILL")
    const silent = await server.waitForEvent("server_process_silent")
    assert.deepInclude(silent.fields, { process: 0, pid: frozen })
    await successor
    assert.deepStrictEqual([...await websites()], ["https://five.example/"])
    await reload("server_config_reloaded")
    assert.deepStrictEqual([...await websites()], ["https://six.example/"])
  })

  it("are started again with growing waits if they cannot start", async () => {
    const anchor = server.caFile
    const aside = `${anchor}.aside`
    renameSync(anchor, aside)
    const waits: Array<unknown> = []
    const ended = () => after("server_process_ended", () => undefined, isAbout(1))
    process.kill(pidOf(server, 1), "SIGKILL")
    while (waits.length < 2) waits.push((await ended()).fields["wait_ms"])
    for (const [index, wait] of waits.entries()) {
      if (index > 0) assert.isAbove(Number(wait), Number(waits[index - 1]))
    }
    const unready = { status: 503, loops: ["process_1"] }
    const seen = async (base?: string) => {
      const { json, status } = await readiness(base)
      return { status, loops: typeof json === "object" && json !== null && "loops" in json ? json.loops : [] }
    }
    assert.deepStrictEqual(await seen(), unready)
    while ((await seen(server.baseUrl)).status !== 503) await readiness()
    assert.deepStrictEqual(await seen(server.baseUrl), unready)
    assert.deepStrictEqual([...await websites()], ["https://six.example/"], "the other process serves")
    await after("server_process_ready", () => renameSync(aside, anchor), isAbout(1))
    while ((await seen()).status !== 200) await readiness()
  })

  it("end in order when their parent is killed", async () => {
    const before = server.records().length
    // The output is closed when the last process has ended.
    await server.kill9()
    const ended = server.records().slice(before).filter(({ fields }) => fields["event"] === "server_shutdown_completed")
    assert.lengthOf(ended, 3)
    await server.restart()
    for (const number of [0, 1, 2]) await ready(server, number)
    assert.strictEqual((await ask(server.directoryUrl)).status, 200)
  })

  it("finish their requests and end on the stop signal", async () => {
    const children = [0, 1, 2].map((number) => pidOf(server, number))
    const before = server.records().length
    // The children ignore this signal, which a group of processes gets as a whole.
    for (const child of children) process.kill(child, "SIGHUP")
    assert.deepStrictEqual(await server.stop(), { code: 0, signal: null })
    for (const child of children) assert.throws(() => process.kill(child, 0), /ESRCH/)
    const ended = server.records().slice(before).filter(({ fields }) => fields["event"] === "server_shutdown_completed")
    assert.deepStrictEqual(ended.map(({ fields }) => fields["requests_cut"]), [0, 0, 0])
    const ignored = server.records().filter(({ fields }) => fields["event"] === "server_reload_supervisor_gone")
    assert.isEmpty(ignored)
  })
})

describe("the first start of several processes", () => {
  const count = availableParallelism() + 1
  const env = async (more: { readonly [name: string]: string }) => ({
    ACME_SVC_DATABASE__URL: await postgres.freshUrl(),
    ACME_SVC_SERVER__PROCESSES: String(count),
    ...more
  })

  it("ends with one error if the port is in use", async () => {
    const holder = createServer()
    await new Promise<void>((done) => holder.listen(0, "127.0.0.1", done))
    const address = holder.address()
    assert(typeof address === "object" && address !== null)
    const taken = `127.0.0.1:${address.port}`
    const { code, records, stderr } = await runToEnd(["serve"], {
      env: await env({ ACME_SVC_SERVER__BIND_ADDRESS: taken })
    })
    await new Promise((done) => holder.close(done))
    assert.strictEqual(code, 1)
    assert.strictEqual(stderr.split(`server.bind_address: Cannot listen on ${taken}`).length, 2, stderr)
    const of = (event: string) => records.filter(({ fields }) => fields["event"] === event).map(({ fields }) => fields)
    assert.lengthOf(of("server_fatal_error"), 1)
    const facts = { processes: count, connections: (count + 1) * 10 + 1 }
    assert.deepInclude(of("server_processes_supervised")[0], facts)
    assert.deepInclude(of("server_processes_exceed_cores")[0], { ...facts, cores: count - 1 })
  })

  it("ends with the code and the message of the first process that cannot start", async () => {
    const directory = freshDirectory()
    writeFileSync(join(directory, "ca.key"), "no key")
    const { code, records, stderr } = await runToEnd(["serve"], { directory, env: await env({}) })
    assert.strictEqual(code, 3)
    assert.lengthOf(stderr.trim().split("\n"), 1)
    assert.include(stderr, "ca.key")
    assert.lengthOf(records.filter(({ fields }) => fields["event"] === "server_fatal_error"), 1)
    assert.lengthOf(records.filter(({ fields }) => fields["event"] === "server_process_started"), 1)
  })

  it("says whether somebody can sign in to the panel, and prints a link only on a terminal", async () => {
    const directory = freshDirectory()
    const [port, adminPort] = [await freePort(), await freePort()]
    const here = {
      ...await env({ ACME_SVC_SERVER__PROCESSES: "2" }),
      ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
      ACME_SVC_SERVER__BASE_URL: `http://localhost:${port}`,
      ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${adminPort}`,
      ACME_SVC_ADMIN__BASE_URL: `http://localhost:${adminPort}`,
      ACME_SVC_LOGGING__JSON_FORMAT: undefined
    }
    assert.strictEqual((await runToEnd(["init"], { config: null, directory, env: here })).code, 0)
    const server = await startServer({ config: null, directory, port, env: here, startedBy: "server_process_started" })
    try {
      await server.waitForLine(/^ +\S+\/profile\/default\/$/)
      assert.match(server.stdout(), /^ {2}acme-svc admin user link admin$/m)
      assert.notInclude(server.stdout(), "/ui/link#")
    } finally {
      await server.stop()
    }
    const terminal = onTerminal(`exec '${runtime}' '${join(thisBuild, "dist/main.js")}' serve`, {
      directory,
      env: { PATH: process.env["PATH"], HOME: directory, USER: "newcomer", NO_COLOR: "1", ...here }
    })
    try {
      const [, origin = "", token = ""] = await terminal.shown(/^ {2}(http:\/\/localhost:\d+)\/ui\/link#([\w-]{43})$/m)
      const http = makeHttpClient()
      const opened = await http.send(`${origin}/ui/link`, {
        method: "POST",
        headers: { origin, "content-type": "application/x-www-form-urlencoded" },
        body: `token=${token}`
      })
      http.close()
      assert.strictEqual(opened.status, 200)
      assert.include(opened.text, "value=\"admin\"")
    } finally {
      assert.strictEqual(await terminal.interrupt(), 0)
    }
  })

  it("is refused to a process that has the variable of a child, but no parent", async () => {
    const { code, stderr } = await runToEnd(["serve"], { env: { SERVICE_CHILD_PROCESS: "1" } })
    assert.strictEqual(code, 1)
    assert.match(stderr, /^The variable SERVICE_CHILD_PROCESS is only for [^\n]*\n$/)
  })

  it("is refused on SQLite and for an invalid number of processes", async () => {
    for (const processes of ["0", "-1", "1.5", "many"]) {
      const { code, stderr } = await runToEnd(["serve"], { env: await env({ ACME_SVC_SERVER__PROCESSES: processes }) })
      assert.strictEqual(code, 3)
      assert.include(stderr, "server.processes: must be an integer, 1 to 256, or \"auto\"")
    }
    const { code, stderr } = await runToEnd(["serve"], { env: { ACME_SVC_SERVER__PROCESSES: "auto" } })
    assert.strictEqual(code, 3)
    assert.include(stderr, "server.processes: must be 1 while database.url is a SQLite file")
  })

  it("makes no process for roles that the service does not have", async () => {
    const port = await freePort()
    const databaseUrl = await postgres.freshUrl()
    const worker = await startServer({ databaseUrl, flags: ["--role", "worker"], startedBy: "job_runner_started" })
    const front = await startServer({
      databaseUrl,
      directory: worker.directory,
      flags: ["--role", "acme"],
      env: {
        ACME_SVC_SERVER__PROCESSES: "2",
        ACME_SVC_METRICS__ENABLED: "true",
        ACME_SVC_METRICS__BIND_ADDRESS: `127.0.0.1:${port}`
      }
    })
    try {
      for (const number of [1, 2]) await ready(front, number)
      const { text } = await ask(`http://127.0.0.1:${port}/metrics`)
      for (const number of [1, 2]) assert.include(text, `process="${number}"`)
      assert.notInclude(text, `process="0"`)
      assert.strictEqual((await ask(front.directoryUrl)).status, 200)
    } finally {
      await front.stop()
      await worker.dispose()
    }
  })
})
