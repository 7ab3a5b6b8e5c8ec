import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { X509Certificate } from "node:crypto"
import { once } from "node:events"
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { createServer } from "node:net"
import { join, resolve } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { whole } from "../src/app/Commands.ts"
import { spellingOf } from "../src/app/commands/ActParameters.ts"
import { everyRole } from "../src/domain/Role.ts"
import { leavesOf } from "../src/surfaces/cli/CommandTree.ts"
import { nouns } from "../src/surfaces/operator/Nouns.ts"
import { builtServer, freshDirectory } from "./support/Databases.ts"
import { freePort } from "./support/Ports.ts"
import type { ProcessOptions, Server } from "./support/Server.ts"
import { minimalConfig, runToEnd, startServer } from "./support/Server.ts"

/* The service behaves as the units in deploy/systemd require. The interop run tests the units with systemd itself. */

const repository = resolve(import.meta.dirname, "..")
const text = (file: string): string => readFileSync(join(repository, file), "utf8")

/** The values by `Section.Key`. Only files of variables occur several times, and their values are joined. */
type Unit = ReadonlyMap<string, string>

const unitOf = (file: string): Unit => {
  const unit = new Map<string, string>()
  let section = ""
  for (const line of text(file).split("\n")) {
    if (/^(?:#.*)?$/.test(line)) continue
    const [, opened] = /^\[(\w+)\]$/.exec(line) ?? []
    if (opened !== undefined) section = opened
    else {
      const [, key = "", value = ""] = /^(\w+)=(.*)$/.exec(line) ?? assert.fail(`${file}: ${line}`)
      const before = unit.get(`${section}.${key}`)
      assert.isTrue(before === undefined || key === "EnvironmentFile", `${file} says ${key} twice`)
      unit.set(`${section}.${key}`, before === undefined ? value : `${before} ${value}`)
    }
  }
  return unit
}

const unit = unitOf("deploy/systemd/acme-svc.service")
const template = unitOf("deploy/systemd/acme-svc@.service")

const shared = unitOf("deploy/systemd/acme-svc-acme@.service")

const of = (key: string): string => unit.get(`Service.${key}`) ?? assert.fail(`the unit has no ${key}`)
const wordsOf = (key: string): ReadonlyArray<string> => of(key).split(" ").filter((word) => word !== "")

/**
 * Requests a reload with the line of the unit and the variables of systemd, and waits for it. A process that has
 * reloaded ends normally.
 */
const reload = async (server: Server): Promise<void> => {
  const { status } = spawnSync("/bin/sh", ["-c", of("ExecReload")], { env: { MAINPID: `${server.pid()}` } })
  assert.strictEqual(status, 0)
  await server.waitForEvent("server_config_reloaded")
}

/** An installation like that of the units and the document, in a different place. */
class Host {
  readonly etc = freshDirectory()
  readonly state = freshDirectory()

  /** Returns a text in which the paths of an installation are replaced by those of this host. */
  here(said: string): string {
    return [
      ["/etc/acme-svc", this.etc],
      ["/var/lib/acme-svc", this.state],
      ["/opt/acme-svc/node_modules/.bin/node", process.execPath],
      ["/opt/acme-svc", repository]
    ].reduce<string>((before, [from = "", to = ""]) => before.replaceAll(from, to), said)
  }

  /** Returns the options of the process that a unit starts. */
  process(unit: Unit, instance = ""): ProcessOptions & { readonly directory: string } {
    const start = (unit.get("Service.ExecStart") ?? "").replaceAll("%i", instance).split(" ").map((word) =>
      this.here(word)
    )
    const [node, main, verb, ...flags] = start
    assert.deepStrictEqual([node, main, verb], [process.execPath, join(repository, "dist/main.js"), "serve"])
    const files = (unit.get("Service.EnvironmentFile") ?? "").split(" ").map((said) =>
      this.here(said.replace(/^-/, "").replaceAll("%i", instance))
    )
    const inFiles = files.filter((file) => existsSync(file)).flatMap((file) =>
      readFileSync(file, "utf8").split("\n").flatMap((line) => {
        const [, name = "", value = ""] = /^(\w+)=(.*)$/.exec(line) ?? []
        return name === "" ? [] : [[name, value] as const]
      })
    )
    const variables = (unit.get("Service.Environment") ?? "").split(" ").map((said) => {
      const [, name = "", value = ""] = /^(\w+)=(\S+)$/.exec(said) ?? assert.fail(said)
      return [name, this.here(value.replaceAll("%i", instance))]
    })
    return {
      config: null,
      directory: this.here(unit.get("Service.WorkingDirectory") ?? ""),
      flags,
      env: Object.fromEntries([...variables, ...inFiles])
    }
  }
}

describe("acme-svc.service", () => {
  let host: Host
  let server: Server
  let umask: number
  beforeAll(async () => {
    await builtServer()
    umask = process.umask(Number.parseInt(of("UMask"), 8))
    host = new Host()
    writeFileSync(join(host.etc, "config.toml"), minimalConfig)
    server = await startServer(host.process(unit))
  })
  afterAll(async () => {
    await server.dispose()
    process.umask(umask)
  })

  it("restricts the process as far as its runtime permits", () => {
    const on = ["NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "ProtectKernelTunables"]
    const more = [
      "ProtectKernelModules",
      "ProtectKernelLogs",
      "ProtectControlGroups",
      "ProtectClock",
      "LockPersonality"
    ]
    for (const key of [...on, ...more, "RestrictNamespaces", "RestrictSUIDSGID"]) {
      assert.strictEqual(of(key), "yes", key)
    }
    assert.strictEqual(of("ProtectSystem"), "strict")
    assert.deepStrictEqual([of("CapabilityBoundingSet"), of("AmbientCapabilities")], ["", ""])
    // The JavaScript compiler writes code, and requests memory protection keys first.
    assert.isFalse(unit.has("Service.MemoryDenyWriteExecute"))
    assert.deepStrictEqual(wordsOf("SystemCallFilter"), ["@system-service", "@pkey"])
  })

  it("sends the signal to end only to the process itself", () => {
    assert.deepStrictEqual([of("Type"), of("KillMode")], ["exec", "mixed"])
    assert.isFalse(unit.has("Service.KillSignal"), "SIGTERM")
  })

  it("starts the process with the configuration and in the directory that it names", async () => {
    const { fields } = await server.waitForEvent("server_config_loaded")
    assert.deepInclude(fields, { path: join(host.etc, "config.toml"), file_present: true })
    const opened = await server.waitForEvent("db_opened")
    assert.deepInclude(opened.fields, { backend: "sqlite", database_url: "sqlite://sqlite.db" })
    assert.strictEqual(of("WorkingDirectory"), `/var/lib/${of("StateDirectory")}`)
    const modes = readdirSync(host.state).map((name) => [name, statSync(join(host.state, name)).mode & 0o777])
    assert.deepStrictEqual(Object.fromEntries(modes), {
      "ca.crl": 0o644,
      "ca.crl.issued": 0o644,
      "ca.key": 0o600,
      "ca.pem": 0o644,
      "sqlite.db": 0o600,
      "sqlite.db-shm": 0o600,
      "sqlite.db-wal": 0o600
    })
  })

  it("reloads the process", () => reload(server))

  it("allows the process more time and more files than it needs", () => {
    const [, timeout] = /^#? ?request_timeout_ms = (\d+)$/m.exec(text("config.toml.example")) ?? []
    assert.isAbove(Number(of("TimeoutStopSec")), Number(timeout) / 1000 + 10)
    const connections = 4096 + 512 + 16
    assert.isAtLeast(Number(of("LimitNOFILE")), 2 * connections)
  })

  it("ends the process without a failure", async () => {
    assert.deepStrictEqual(await server.stop("SIGTERM"), { code: 0, signal: null })
  })

  it("starts the process again unless a restart would be useless", async () => {
    assert.deepStrictEqual([of("Restart"), unit.get("Unit.StartLimitIntervalSec")], ["on-failure", "0"])
    const taken = createServer().listen(0, "127.0.0.1")
    await once(taken, "listening")
    const { port } = taken.address() as AddressInfo
    const options = host.process(unit)
    const address = { ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}` }
    const ends = {
      host: await runToEnd(["serve"], { ...options, env: { ...options.env, ...address } }),
      commandLine: await runToEnd(["serve", "--role", "janitor"], options),
      configuration: await runToEnd(["serve"], { ...options, env: { ACME_SVC_CONFIG: join(host.etc, "none.toml") } })
    }
    taken.close()
    const prevented = wordsOf("RestartPreventExitStatus").map(Number)
    assert.notInclude([0, ...prevented], ends.host.code ?? 0)
    assert.deepStrictEqual([ends.commandLine.code, ends.configuration.code], [2, 3])
    assert.deepStrictEqual(prevented, [2, 3])
  })
})

describe("acme-svc@.service", () => {
  it("equals the other unit except for the role", () => {
    const differences = [...template].filter(([key, value]) => unit.get(key) !== value)
    assert.deepStrictEqual(Object.fromEntries(differences), {
      "Unit.Description": "ACME certificate service (%i)",
      "Service.ExecStart": `${of("ExecStart")} --role %i`,
      "Service.EnvironmentFile": `${of("EnvironmentFile")} -/etc/acme-svc/env.%i`
    })
    assert.deepStrictEqual([...template.keys()], [...unit.keys()])
  })

  it("starts every role, all in one directory", async () => {
    await builtServer()
    const host = new Host()
    writeFileSync(join(host.etc, "config.toml"), minimalConfig)
    const [port, servers] = [await freePort(), new Array<Server>()]
    const started = { worker: "job_runner_started", acme: "server_listening", admin: "worker_registered" }
    assert.sameMembers(Object.keys(started), [...everyRole])
    try {
      for (const [role, startedBy] of Object.entries(started)) {
        const server = await startServer({ ...host.process(template, role), port, startedBy })
        servers.push(server)
        assert.strictEqual((await server.waitForEvent("worker_registered")).fields["roles"], role)
        await reload(server)
      }
    } finally {
      for (const server of servers.toReversed()) assert.strictEqual((await server.stop()).code, 0)
    }
  })

  it("gives each role the database URL of its own file", () => {
    const host = new Host()
    const urls = { worker: "acme_worker", acme: "acme_front", admin: "acme_admin" }
    for (const [role, user] of Object.entries(urls)) {
      writeFileSync(join(host.etc, `env.${role}`), `ACME_SVC_DATABASE__URL=postgres://${user}@db.example/acme\n`)
    }
    writeFileSync(join(host.etc, "env.commands"), "ACME_SVC_DATABASE__URL=postgres://acme@db.example/acme\n")
    const urlOf = (from: Unit, instance: string) => host.process(from, instance).env?.["ACME_SVC_DATABASE__URL"]
    for (const [role, user] of Object.entries(urls)) {
      assert.strictEqual(urlOf(template, role), `postgres://${user}@db.example/acme`)
    }
    assert.strictEqual(urlOf(shared, "1"), "postgres://acme_front@db.example/acme")
    assert.isUndefined(urlOf(unit, ""))
  })

  it("gives the key of the CA only to the worker", async () => {
    const host = new Host()
    writeFileSync(join(host.etc, "config.toml"), minimalConfig)
    const worker = await startServer({ ...host.process(template, "worker"), startedBy: "job_runner_started" })
    // InaccessiblePaths= puts such a file, which only root can open, instead of the key.
    writeFileSync(join(host.state, "ca.key"), "")
    chmodSync(join(host.state, "ca.key"), 0)
    const acme = await startServer(host.process(template, "acme"))
    await reload(acme)
    assert.notInclude(acme.records().map(({ level }) => level), "error")
    assert.strictEqual((await acme.stop()).code, 0)
    assert.strictEqual((await worker.stop()).code, 0)
  })
})

describe("acme-svc-acme@.service", () => {
  it("equals the other units except for the shared address and the address for metrics", () => {
    const differences = [...shared].filter(([key, value]) => unit.get(key) !== value)
    const environment = "ACME_SVC_SERVER__REUSE_PORT=true ACME_SVC_METRICS__BIND_ADDRESS=127.0.0.1:910%i"
    assert.deepStrictEqual(Object.fromEntries(differences), {
      "Unit.Description": "ACME certificate service (acme, process %i)",
      "Service.ExecStart": `${of("ExecStart")} --role acme`,
      "Service.Environment": `${of("Environment")} ${environment}`,
      "Service.EnvironmentFile": `${of("EnvironmentFile")} -/etc/acme-svc/env.acme`
    })
    assert.deepStrictEqual([...shared.keys()], [...unit.keys()])
  })

  it("starts several processes on one address", async () => {
    await builtServer()
    const host = new Host()
    writeFileSync(join(host.etc, "config.toml"), `${minimalConfig}\n[metrics]\nenabled = true\n`)
    const [port, servers] = [await freePort(), new Array<Server>()]
    const start = async (from: Unit, instance: string, startedBy: string): Promise<Server> => {
      const { env, ...process } = host.process(from, instance)
      // Other tests may use the numbered ports of the units here.
      const metrics = { ACME_SVC_METRICS__BIND_ADDRESS: `127.0.0.1:${await freePort()}` }
      const server = await startServer({ ...process, port, startedBy, env: { ...env, ...metrics } })
      servers.push(server)
      return server
    }
    try {
      await start(template, "worker", "job_runner_started")
      const [one, two] = [await start(shared, "1", "server_listening"), await start(shared, "2", "server_listening")]
      for (const server of [one, two]) await reload(server)
      assert.strictEqual((await one.stop("SIGTERM")).code, 0)
      assert.strictEqual((await fetch(two.directoryUrl)).status, 200)
    } finally {
      for (const server of servers.toReversed()) assert.strictEqual((await server.stop()).code, 0)
    }
  })
})

describe("acme-svc, the command for root", () => {
  /**
   * Returns a function that runs the host's command `acme-svc` in a directory. The command differs from the real one
   * only in that it does not change to the user of the service, which a test has no right to do.
   */
  const commandOn = (host: Host, cwd: string) => {
    const bin = join(host.etc, "bin")
    mkdirSync(bin)
    const become = `become='setpriv --reuid=${of("User")} --regid=${of("Group")} --init-groups --'`
    const script = text("deploy/systemd/acme-svc")
    assert.include(script, become)
    // Nor may a test rely on the user to own files.
    const owned = script.replace(become, "become=").replaceAll(/^( *(?:theirs|ours)=).*$/gm, "$1")
    writeFileSync(join(bin, "acme-svc"), host.here(owned), { mode: 0o755 })
    return (...words: ReadonlyArray<string>) =>
      spawnSync(join(bin, "acme-svc"), words, { encoding: "utf8", cwd, env: { PATH: process.env["PATH"] } })
  }

  it("runs with the variables of the units", async () => {
    await builtServer()
    const host = new Host()
    const run = commandOn(host, "/")
    writeFileSync(join(host.etc, "config.toml"), minimalConfig)
    assert.strictEqual(run("migrate", "--check").status, 3)
    writeFileSync(
      join(host.etc, "env"),
      "# not this\n\nACME_SVC_SERVER__BASE_URL=https://all.example\nACME_SVC_SIGNER__LOCAL_CA__SUBJECT__COMMON_NAME=A CA=1 $HOME"
    )
    // Variables for commands take precedence over those for everything.
    writeFileSync(join(host.etc, "env.commands"), "ACME_SVC_SERVER__BASE_URL=https://acme.example\n")
    const init = run("init")
    assert.deepStrictEqual([init.status, init.stderr], [0, ""])
    const { subject } = new X509Certificate(readFileSync(join(host.state, "ca.pem")))
    assert.match(subject, /^CN=A CA=1 \$HOME$/m)
    assert.strictEqual(statSync(join(host.state, "sqlite.db")).mode & 0o777, 0o600)
    assert.include(run("profile", "list").stdout, "https://acme.example/profile/default/directory")
  })

  it("reads quotes around a value as systemd does, and refuses what it reads otherwise", async () => {
    await builtServer()
    const host = new Host()
    const run = commandOn(host, "/")
    const file = join(host.etc, "env")
    writeFileSync(join(host.etc, "config.toml"), minimalConfig)
    const shown = (value: string) => {
      writeFileSync(
        file,
        `ACME_SVC_SERVER__BASE_URL=https://acme.example\nACME_SVC_SIGNER__LOCAL_CA__SUBJECT__COMMON_NAME=${value}\n`
      )
      return run("config", "show", "--profile", "default", "--json")
    }
    for (const value of ["It's \"ours\"", "\"The CA's\"", "'A CA'"]) {
      const { status, stderr, stdout } = shown(value)
      assert.strictEqual(status, 0, stderr)
      assert.include(stdout, JSON.stringify(value.replace(/^(["'])(.*)\1$/, "$2")))
    }
    for (const value of ["\"", "'a", "\"a\" b", "\"a\"b\"", "a\\b", "a\\"]) {
      const { status, stderr } = shown(value)
      assert.strictEqual(status, 2, value)
      assert.include(
        stderr,
        `${file}: systemd would read another value of ACME_SVC_SIGNER__LOCAL_CA__SUBJECT__COMMON_NAME`
      )
    }
  })

  it("opens the file of every flag that takes a file", async () => {
    const flags = leavesOf(await Effect.runPromise(whole)).flatMap((leaf) => leaf.flags.map(({ name }) => name))
    const ofFiles = [...new Set(flags.filter((name) => name.endsWith("-file") || name === "--answers"))].sort()
    const cases = text("deploy/systemd/acme-svc").split("\n").filter((line) => /^ *--.*\)$/.test(line)).map((line) =>
      line.trim().slice(0, -1).split(" | ").sort()
    )
    assert.deepStrictEqual(cases, [ofFiles.map((name) => `${name}=?*`), ofFiles])
    const others = nouns.flatMap(({ acts }) =>
      acts.flatMap(({ cli, input }) =>
        cli === undefined ? [] : Object.entries(input).flatMap(([member, { isFile }]) => {
          const flag = spellingOf(cli, cli.args ?? [], member)
          return isFile === true && flag.startsWith("--") && !flag.endsWith("-file") ? [flag] : []
        })
      )
    )
    assert.deepStrictEqual(others, [], "the program would look for the file in its own directory")
  })

  it("reads a file in the caller's directory as the caller", async () => {
    await builtServer()
    const [host, here] = [new Host(), freshDirectory()]
    const run = commandOn(host, here)
    writeFileSync(join(host.etc, "config.toml"), minimalConfig)
    assert.strictEqual(run("migrate").status, 0)
    writeFileSync(join(here, "a password.txt"), "correct horse battery staple\n", { mode: 0o600 })
    writeFileSync(join(here, "open"), "correct horse battery staple\n")
    chmodSync(join(here, "open"), 0o644)
    const create = (name: string, ...words: ReadonlyArray<string>) => {
      const { status, stderr, stdout } = run("admin", "user", "create", name, ...words)
      return { status, stderr, isMade: stdout.startsWith(`Operator ${name} was created`) }
    }
    const made = { status: 0, stderr: "", isMade: true }
    assert.deepStrictEqual(create("ann", "--password-file", "a password.txt", "--role", "admin"), made)
    assert.deepStrictEqual(create("ben", "--password-file=a password.txt"), made)
    assert.deepStrictEqual(create("cid", "--password-file", join(here, "a password.txt")), made)
    const warned = { ...made, stderr: "Warning: others may read open.\n" }
    assert.deepStrictEqual(create("dan", "--role", "viewer", "--password-file", "open"), warned)
    for (const file of ["absent", "."]) {
      const stderr = `acme-svc: ${file} is not a file that can be read here\n`
      assert.deepStrictEqual(create("eve", "--password-file", file), { status: 3, stderr, isMade: false })
    }
    for (const words of [["--password-file"], ["--password-file", "--role", "viewer"], ["--password-file="]]) {
      const { isMade, status, stderr } = create("eve", ...words)
      assert.deepStrictEqual([status, isMade], [2, false], stderr)
    }
    writeFileSync(join(here, "url"), "postgres://acme:secret@127.0.0.1:1/acme\n", { mode: 0o600 })
    assert.match(
      run("transfer", "--to-file", "url").stderr,
      /^--to-file: postgres:\/\/acme:\*\*\*@127\.0\.0\.1:1\/acme cannot be opened/
    )
    assert.strictEqual(run("order", "list", "--identifier", "a  b*").status, 0, "other words are handed on as they are")
  })
})

describe.runIf(process.getuid?.() === 0)("acme-svc setup, for root", () => {
  const install = (host: Host) => {
    const lib = freshDirectory()
    writeFileSync(join(lib, "config.toml"), "# as installed\n")
    const bin = join(host.etc, "bin")
    mkdirSync(bin)
    const script = text("deploy/systemd/acme-svc").replace(/become='setpriv.*'/, "become=")
      .replaceAll(/^( *(?:theirs|ours)=).*$/gm, "$1")
      .replaceAll("/opt/acme-svc/config.toml", join(lib, "config.toml"))
    writeFileSync(join(bin, "acme-svc"), host.here(script), { mode: 0o755 })
    const here = freshDirectory()
    writeFileSync(join(here, "answers"), "panel = false\n", { mode: 0o600 })
    return {
      here,
      config: join(host.etc, "config.toml"),
      run: (...words: ReadonlyArray<string>) =>
        spawnSync(join(bin, "acme-svc"), words, { encoding: "utf8", cwd: here, env: { PATH: process.env["PATH"] } })
    }
  }

  it("writes the configuration of the units, with which they start", async () => {
    await builtServer()
    const host = new Host()
    const { config, run } = install(host)
    const done = run("setup", "--answers", "answers", "--yes")
    assert.strictEqual(done.status, 0, done.stderr)
    assert.match(done.stdout, /^ {2}1\. systemctl enable --now acme-svc$/m)
    assert.include(done.stderr, `acme-svc: the configuration is now ${config}.\n`)
    assert.strictEqual(statSync(config).mode & 0o777, 0o640)
    assert.sameMembers(readdirSync(host.etc), ["bin", "config.toml"])
    assert.includeMembers(readdirSync(host.state), ["ca.key", "ca.pem", "sqlite.db"])
    const server = await startServer(host.process(unit))
    assert.strictEqual((await server.stop()).code, 0)
    const again = run("setup", "--answers", "answers", "--yes")
    assert.strictEqual(again.status, 3)
    assert.include(again.stderr, `${config} exists, and setup never changes a configuration.`)
  })

  it("replaces the configuration of the package only while nobody has changed it", async () => {
    await builtServer()
    const host = new Host()
    const { config, here, run } = install(host)
    writeFileSync(config, "# as installed\n")
    writeFileSync(join(here, "wrong"), "tls = \"maybe\"\n", { mode: 0o600 })
    const refused = run("setup", "--answers=wrong", "--yes")
    assert.deepStrictEqual([refused.status, readFileSync(config, "utf8")], [2, "# as installed\n"], refused.stderr)
    assert.sameMembers(readdirSync(host.etc), ["bin", "config.toml"])
    const unanswered = run("setup", "--answers", "answers")
    assert.deepStrictEqual([unanswered.status, readFileSync(config, "utf8")], [2, "# as installed\n"])
    assert.strictEqual(run("setup", "--answers", "answers", "--yes").status, 0)
    assert.include(readFileSync(config, "utf8"), "[profiles.default]")
    writeFileSync(config, "# mine\n")
    assert.strictEqual(run("setup", "--answers", "answers", "--yes").status, 3)
    assert.strictEqual(readFileSync(config, "utf8"), "# mine\n")
  })
})

describe("docs/operate/service.md", () => {
  // The line ends have no meaning and are removed.
  const document = text("docs/operate/service.md").replaceAll(/\s+/g, " ")

  it("lists every file of the installation", () => {
    for (const file of readdirSync(join(repository, "deploy/systemd"))) {
      assert.include(document, `[${file}](../../deploy/systemd/${file})`)
    }
  })

  it("has the same numbers as the unit", () => {
    assert.include(
      document,
      `The unit sets ${of("TimeoutStopSec")} seconds, which is enough for a \`server.request_timeout_ms\` below ${
        Number(of("TimeoutStopSec")) * 1000 - 10_000
      }.`
    )
    assert.include(document, "starts it again after two seconds")
    assert.strictEqual(of("RestartSec"), "2")
  })
})

describe("nix/module.nix", () => {
  const module = text("nix/module.nix")
  /** The keys whose values the module writes differently. */
  const apart = [
    "ExecStart",
    "ExecReload",
    "Environment",
    "EnvironmentFile",
    "CapabilityBoundingSet",
    "AmbientCapabilities"
  ]
  const shared = [...unit].filter(([key]) =>
    key.startsWith("Service.") && !apart.includes(key.slice("Service.".length))
  )

  it("accepts any set of roles", () => {
    const [, every = ""] = /^ +every = \[([^\]]*)\];$/m.exec(module) ?? []
    assert.deepStrictEqual([...every.matchAll(/"(\w+)"/g)].map(([, role]) => role), [...everyRole])
    assert.include(module, "type = lib.types.nonEmptyListOf (lib.types.enum every);")
    assert.notInclude(module, "assertion", "no set of roles is refused")
    const [, verb, flag, list] =
      /^ +serve = \[ "(\w+)" \] \+\+ lib\.optionals \(roles != every\) \[ "(--\w+)" (.*) \];$/m.exec(module) ?? []
    const role = template.get("Service.ExecStart")?.replace(of("ExecStart"), "").trim()
    assert.deepStrictEqual([verb, `${flag} %i`], [of("ExecStart").split(" ").at(-1), role])
    assert.strictEqual(list, "(lib.concatStringsSep \",\" roles)")
    assert.include(module, "ExecStart = \"${lib.getExe cfg.package} ${lib.concatStringsSep \" \" serve}\";")
  })

  it("has the same keys as the unit", () => {
    const [, service = ""] = /serviceConfig = \{\n([^]*?)\n {6}\};/.exec(module) ?? []
    const said = [...service.matchAll(/^ {8}(\w+) = /gm)].map(([, key]) => key)
    const known = [...unit.keys()].flatMap((key) => key.startsWith("Service.") ? [key.slice("Service.".length)] : [])
    assert.sameMembers(said, known.filter((key) => key !== "Environment"), "the environment is an option of its own")
  })

  it.each(shared)("has %s=%s as the unit does", (key, value) => {
    const [, said = ""] = new RegExp(`^ +${key.slice("Service.".length)} = (.*);$`, "m").exec(module) ?? []
    assert.strictEqual(said.replace(/^"(.*)"$/, "$1").replace(/^true$/, "yes"), value)
  })
})
