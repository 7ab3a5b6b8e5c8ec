import SqliteDatabase from "better-sqlite3"
import { Effect } from "effect"
import { spawn, spawnSync } from "node:child_process"
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Client } from "pg"
import { afterAll, assert, beforeAll, describe, it, vi } from "vitest"
import { AcmeSession } from "./support/AcmeSession.ts"
import type { Credential } from "./support/Binding.ts"
import { bindingOf } from "./support/Binding.ts"
import { commandLine } from "./support/CommandLine.ts"
import { builtServer, freshDirectory, freshPostgresUrl } from "./support/Databases.ts"
import { isFull } from "./support/Full.ts"
import { startHttp01Responder } from "./support/Http01Responder.ts"
import { mailServer } from "./support/MailServer.ts"
import { patienceMs } from "./support/Patience.ts"
import { freePort } from "./support/Ports.ts"
import { runToEnd, startServer } from "./support/Server.ts"
import { watch } from "./support/Watchdog.ts"

/*
 * Every command of the documents is run, here or by `.ci/run`: as it stands, but for ports, the database's URL and the
 * paths of an installation. In full a shell runs them all; else `acme-svc` runs in this process where a line is no more
 * than that, and `npm start` builds once.
 */

const repository = resolve(import.meta.dirname, "..")
const text = (file: string): string => readFileSync(join(repository, file), "utf8")

const documents = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "SECURITY.md",
  ...readdirSync(join(repository, "docs")).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`)
]

interface Block {
  readonly document: string
  readonly language: string
  readonly body: string
}

const blocksOf = (document: string): ReadonlyArray<Block> =>
  [...text(document).matchAll(/^( *)```(\w*)\n(.*?)^\1```$/gms)].map(([, indent = "", language = "", body = ""]) => ({
    document,
    language,
    body: body.replaceAll(new RegExp(`^${indent}`, "gm"), "")
  }))

const blocks = documents.flatMap(blocksOf)

const oneLine = (command: string): string => command.replaceAll(/\s+/g, " ").trim()

/** The commands of a document in their order; `a && b` is two, and a line that ends in a backslash goes on. */
const commandsOf = (document: string): ReadonlyArray<string> =>
  blocks.filter((block) => block.document === document && block.language === "sh")
    .flatMap(({ body }) => body.replaceAll(/\\\n/g, " ").split("\n"))
    .flatMap((line) => line.split(" && "))
    .map(oneLine)
    .filter((command) => command !== "" && !command.startsWith("#"))

const http = "http://localhost:3000/profile/default/directory"
const https = "https://localhost:3000/profile/default/directory"
const certbotUser = "certbot certonly --non-interactive --agree-tos --register-unsafely-without-email"
const certbotPort = "--standalone --http-01-port 5002"
const certbotWords = `${certbotUser} ${certbotPort}`
const certbotBound = `${certbotUser} --eab-kid KID --eab-hmac-key HMAC_KEY ${certbotPort}`
const certbotRevokes =
  "certbot revoke --non-interactive --no-delete-after-revoke --cert-path demo-certbot/live/demo.localhost/cert.pem"
const legoWords = "lego --accept-tos --email you@example.org --path"
const legoNames = "--http --http.port :5002 --domains demo.localhost run"

const lines = {
  start: "npm start",
  certbot:
    `${certbotWords} --config-dir demo-certbot --work-dir demo-certbot/work --logs-dir demo-certbot/logs --server ${http} -d demo.localhost`,
  lego: `${legoWords} demo-lego --server ${http} ${legoNames}`,
  verifyCertbot: "openssl verify -CAfile ca.pem demo-certbot/live/demo.localhost/cert.pem",
  verifyLego: "openssl verify -CAfile ca.pem demo-lego/certificates/demo.localhost.crt",
  startTls: "ACME_SVC_SERVER__TLS__ENABLED=true ACME_SVC_SERVER__BASE_URL=https://localhost:3000 npm start",
  certbotTls:
    `REQUESTS_CA_BUNDLE=server.pem ${certbotWords} --config-dir demo-certbot-tls --work-dir demo-certbot-tls/work --logs-dir demo-certbot-tls/logs --server ${https} -d demo.localhost`,
  legoTls: `LEGO_CA_CERTIFICATES=server.pem ${legoWords} demo-lego-tls --server ${https} ${legoNames}`,
  eabCreate: "acme-svc eab create --label \"web servers\"",
  eabCreateScoped: "acme-svc eab create --label printers --profile default",
  eabList: "acme-svc eab list",
  eabShow: "acme-svc eab show KID",
  certbotEab:
    `${certbotBound} --config-dir demo-certbot-eab --work-dir demo-certbot-eab/work --logs-dir demo-certbot-eab/logs --server ${http} -d demo.localhost`,
  legoEab: `${legoWords} demo-lego-eab --eab --kid KID --hmac HMAC_KEY --server ${http} ${legoNames}`,
  eabRevoke: "acme-svc eab revoke KID",
  eabDelete: "acme-svc eab delete KID --yes",
  eabDeactivateAccounts: "acme-svc eab delete KID --deactivate-accounts --yes",
  eabDeleteAccounts: "acme-svc eab delete KID --delete-accounts --yes",
  startPostgres: "ACME_SVC_DATABASE__URL=postgres://acme:secret@localhost/acme npm start",
  prune: "npm prune --omit=dev",
  relink: "npm rebuild --ignore-scripts",
  catalogues: "npm run catalogues",
  firstChange: "npm test -- kernel/telemetry operations/account catalogues",
  serveKept: "acme-svc serve --log-level debug | tee serve.log",
  grepRequest: "grep REQUEST_ID serve.log",
  grepJob: "grep JOB_ID serve.log",
  openInspector: "kill -USR1 PID",
  collectTraces: "node docs/recipes/traces.mjs 4318 | tee traces.log",
  serveTraced: "ACME_SVC_TRACING__ENDPOINT=http://127.0.0.1:4318/v1/traces acme-svc serve",
  cpuProfile: "node docs/recipes/cpu-profile.mjs 9229 10 server.cpuprofile",
  sqliteLocks: "grep \":$(stat --format %i sqlite.db-shm) \" /proc/locks",
  dev: "npm run dev",
  demo: "npm run demo",
  pictures: "npm run pictures",
  format: "npm run format",
  init: "acme-svc init",
  profiles: "acme-svc profile list",
  serve: "acme-svc serve",
  serveDebug: "acme-svc serve --log-level debug",
  health: "acme-svc health",
  healthWorker: "acme-svc health --role worker",
  migrateCheck: "acme-svc migrate --check",
  migrate: "acme-svc migrate",
  backup:
    "node_modules/.bin/node -e 'require(\"better-sqlite3\")(process.argv[1]).backup(process.argv[2])' /var/lib/acme-svc/sqlite.db /var/lib/acme-svc/backup.db",
  migrateTarget: "ACME_SVC_DATABASE__URL=postgres://acme@db.example/acme acme-svc migrate",
  transfer: "acme-svc transfer --to postgres://acme@db.example/acme --yes",
  completions: "acme-svc completions bash",
  profilesJson: "acme-svc profile list --json",
  ordersFailed: "acme-svc order list --status invalid",
  upstreamRegister: "acme-svc upstream register --profile web --eab-kid KID --eab-hmac-key-file HMAC_FILE",
  upstreamShow: "acme-svc upstream show --profile web",
  upstreamOrdersFailed: "acme-svc upstream order list --status invalid",
  upstreamOrder: "acme-svc upstream order show ORDER_ID",
  orderShow: "acme-svc order show ORDER_ID",
  jobsQueue: "acme-svc jobs queue",
  jobsFailed: "acme-svc jobs list --status failed",
  notifyTest: "acme-svc notify test",
  notifyTestChat: "acme-svc notify test chat --event certificate_issued",
  notifyTestReminder: "acme-svc notify test --event expiry_reminder",
  jobsDeliveries: "acme-svc jobs list --kind notify_deliver",
  jobsOfOrder: "acme-svc jobs list --order-id ORDER_ID",
  jobsShow: "acme-svc jobs show JOB_ID",
  jobsRunNow: "acme-svc jobs run-now JOB_ID",
  jobsCancel: "acme-svc jobs cancel JOB_ID --yes",
  workerList: "acme-svc worker list",
  ordersBelow: "acme-svc order list --identifier-suffix localhost",
  ordersEnding: "acme-svc order list --expiring-in 30 --hide-superseded",
  certbotRenew:
    "certbot renew --force-renewal --no-random-sleep-on-renew --config-dir demo-certbot --work-dir demo-certbot/work --logs-dir demo-certbot/logs",
  legoRenew:
    `${legoWords} demo-lego --server ${http} --http --http.port :5002 --domains demo.localhost renew --days 90 --no-random-sleep`,
  certbotRevoke:
    `${certbotRevokes} --reason superseded --config-dir demo-certbot --work-dir demo-certbot/work --logs-dir demo-certbot/logs --server ${http}`,
  certbotRevokeByKey:
    `${certbotRevokes} --key-path demo-certbot/live/demo.localhost/privkey.pem --reason keycompromise --config-dir demo-certbot --work-dir demo-certbot/work --logs-dir demo-certbot/logs --server ${http}`,
  legoRevoke: `${legoWords} demo-lego --server ${http} --domains demo.localhost revoke --keep --reason 4`,
  ordersNamed: "acme-svc order list --identifier demo.localhost",
  orderRevoke: "acme-svc order revoke ORDER_ID --reason 4 --wait 10",
  crlList: "acme-svc crl list",
  crlText: "openssl crl -in ca.crl -noout -text",
  verifyCrl: "openssl verify -crl_check -CAfile ca.pem -CRLfile ca.crl demo-certbot/live/demo.localhost/cert.pem",
  crlRaise: "acme-svc crl raise ISSUER --above 41 --yes",
  filterShow: "acme-svc filter show --profile default",
  filterCrl: "acme-svc filter explain --client-ip 203.0.113.9 --method GET --path /crl",
  filterOutside: "acme-svc filter explain --client-ip 203.0.113.9 --method GET --path /directory",
  curlToken: "curl -i http://www.example.org/.well-known/acme-challenge/unknown",
  filterInside: "acme-svc filter explain --client-ip 10.1.2.3 --identifier web1.example.org --json"
} as const

type Line = keyof typeof lines

/** Runs of the fault suite at full length, in whatever words: they are run with the least of one fault. */
const isFaultRun = (command: string): boolean =>
  /^npm run faults(?: -- |$)/.test(command) && !ofTheGate.includes(command)

/** Simulations, of however many seeds: they are run with a few, and with the first of the planted bugs. */
const isSimulation = (command: string): boolean =>
  /^npm run simulate(?: -- |$)/.test(command) && !ofTheGate.includes(command)

/** Benchmarks, in whatever words: they are run with a few issuances instead of a few minutes, and without the floor. */
const isBenchmark = (command: string): boolean => /^npm run bench(?: -- |$)/.test(command)
const needsPebble = (command: string): boolean => /--(?:pebble|relay)\b/.test(command)

const shortened = (command: string): string => {
  const [, words = ""] = command.split(" -- ")
  const kept = words.replaceAll(/--(?:seconds|issuances|concurrency|databases|part|attempts) \S+/g, "")
  const part = /--(?:grown|lists|pages|queue)/.test(words)
    ? "--part 0.0001"
    : /--sign-in/.test(words)
    ? "--attempts 1"
    : ""
  // Clients of a relay wait five seconds, as they are told to. Reads are beside clients for a time.
  const extent = /--(?:lists|pages)/.test(words) ? "--seconds 1" : `--issuances ${/--relay/.test(words) ? 1 : 5}`
  return `npm run bench -- ${kept} ${part} --databases sqlite --concurrency 1 ${extent} --service-only`
}

/** Commands that install, that are the test run itself or that need the network: steps of `.ci/run`. */
const ofTheGate = [
  "npm ci",
  "npm run check",
  "npm test",
  "npm run interop",
  "npm run simulate -- --seeds 100",
  "npm run faults -- --rounds 1 --share 0.05",
  "npm test -- docs.test.ts"
]

// Clients that may be absent.
const isInstalled = (client: "certbot" | "curl" | "lego" | "pebble"): boolean =>
  spawnSync("sh", ["-c", `command -v ${client}`], { stdio: "ignore" }).status === 0
const client = { certbot: isInstalled("certbot"), curl: isInstalled("curl"), lego: isInstalled("lego") }

/** A line of an absent client: the gate installs the client with its interop run, and runs this file once more. */
const gateComesBack = (): void =>
  assert.match(
    text(".ci/run"),
    /^steadied npm run interop$[^]*^if \[ "\$had_clients" = false \]; then step npm test -- docs\.test\.ts; fi$/m
  )

/** The arguments of a line that is `acme-svc` alone, parted as a shell does it; undefined for what takes a shell. */
const argumentsOf = (command: string): ReadonlyArray<string> | undefined => {
  const word = /"([^"$`\\]*)"|'([^']*)'|([\w./:=,@%+-]+)/
  if (!new RegExp(`^acme-svc(?: (?:${word.source}))*$`).test(command)) return undefined
  const words = [...command.matchAll(new RegExp(word, "g"))].map(([, quoted, raw, plain]) =>
    quoted ?? raw ?? plain ?? ""
  )
  return words.slice(1)
}

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface Serving {
  readonly said: () => string
  readonly stop: () => Promise<Ended>
}

const exercised = new Set<Line>()

/**
 * Puts texts in the place of words. What was put there stays as it is: ports and ids may happen to hold another of the
 * words.
 */
const replaced = (command: string, [first, ...others]: ReadonlyArray<readonly [string, string]>): string => {
  if (first === undefined) return command
  const [from, to] = first
  return command.split(from).map((part) => replaced(part, others)).join(to)
}

/** A directory to paste commands into, with ports of its own and `acme-svc` on its PATH. */
class Place {
  readonly directory = freshDirectory()
  readonly replacements: Array<readonly [string, string]> = []
  private readonly binaries = freshDirectory()
  private readonly home = freshDirectory()
  readonly port: number
  readonly httpPort: number

  private readonly env: Readonly<Record<string, string>>

  private constructor(port: number, httpPort: number, env: Readonly<Record<string, string>>) {
    this.env = env
    this.port = port
    this.httpPort = httpPort
    this.replacements.push(["localhost:3000", `localhost:${port}`], ["5002", `${httpPort}`])
    const main = join(repository, "dist/main.js")
    writeFileSync(join(this.binaries, "acme-svc"), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`, {
      mode: 0o755
    })
  }

  /** Names are this machine here: without `env`, it may be asked about them. */
  static async make(env = { ACME_SVC_CHALLENGE__ALLOW_LOOPBACK: "true" } as Readonly<Record<string, string>>) {
    return new Place(await freePort(), await freePort(), env)
  }

  /** Puts a text in place of a word of the documents, or of what stood there before. */
  stand(word: string, text: string): void {
    const others = this.replacements.filter(([from]) => from !== word)
    this.replacements.splice(0, this.replacements.length, ...others, [word, text])
  }

  /** The text of a line as it is run here. */
  rewritten(line: Line): string {
    return replaced(lines[line], this.replacements)
  }

  private get variables(): Readonly<Record<string, string>> {
    return {
      PATH: `${this.binaries}:${process.env["PATH"]}`,
      HOME: this.home,
      NO_COLOR: "1",
      npm_config_update_notifier: "false",
      ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${this.port}`,
      ACME_SVC_SERVER__BASE_URL: `http://localhost:${this.port}`,
      ACME_SVC_CHALLENGE__HTTP_01__PORT: `${this.httpPort}`,
      ...this.env
    }
  }

  private begin(command: string) {
    const child = spawn("sh", ["-c", command], {
      cwd: this.directory,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: this.variables
    })
    watch(child, "group")
    const out = { stdout: "", stderr: "" }
    child.stdout.on("data", (chunk: Buffer) => out.stdout += chunk.toString())
    child.stderr.on("data", (chunk: Buffer) => out.stderr += chunk.toString())
    const ended = new Promise<Ended>((done, fail) => {
      child.once("error", fail)
      child.once("close", (code) => done({ code, ...out }))
    })
    return { child, out, ended }
  }

  /** Runs a command to its end. */
  run(command: string): Promise<Ended> {
    // PostgreSQL's driver reads the variables of its process.
    const words = isFull || "PGPASSWORD" in this.env ? undefined : argumentsOf(command)
    if (words === undefined) return this.begin(command).ended
    const env = { ...this.variables, ACME_SVC_LOGGING__JSON_FORMAT: undefined }
    return commandLine(words, { config: null, directory: this.directory, env })
  }

  /** Runs a line to its end. */
  paste(line: Line): Promise<Ended> {
    exercised.add(line)
    return this.run(this.rewritten(line))
  }

  /** Runs a line that has to succeed; answers what it said. */
  async succeed(line: Line): Promise<string> {
    const { code, stderr, stdout } = await this.paste(line)
    assert.strictEqual(code, 0, `${this.rewritten(line)}\n${stdout}\n${stderr}`)
    return stdout
  }

  /** Runs a line that serves, up to the line that begins with `until`. */
  serve(line: Line, until: string): Promise<Serving> {
    exercised.add(line)
    const { child, ended, out } = this.begin(this.rewritten(line))
    const stop = async () => {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGTERM")
      return await ended
    }
    return new Promise((done, fail) => {
      const look = () => {
        if (out.stdout.includes(until)) done({ said: () => out.stdout, stop })
      }
      child.stdout.on("data", look)
      ended.then(
        ({ code }) => fail(new Error(`${lines[line]} ended with ${code}:\n${out.stdout}\n${out.stderr}`)),
        fail
      )
    })
  }

  at(path: string): string {
    return join(this.directory, path)
  }

  /** What a client that is not installed would have left: a certificate from this server, where `path` says. */
  async issueInItsPlace(directoryUrl: string, path: string, credential?: Credential): Promise<void> {
    const responder = await startHttp01Responder({ port: this.httpPort })
    const session = await AcmeSession.open(directoryUrl)
    try {
      const { directory: { newAccount }, key: { jwk } } = session
      await session.register({
        termsOfServiceAgreed: true,
        ...credential === undefined ? {} : { externalAccountBinding: bindingOf(credential, jwk, newAccount) }
      })
      const { chain } = await session.issue(["demo.localhost"], responder.tokens)
      mkdirSync(dirname(this.at(path)), { recursive: true })
      writeFileSync(this.at(path), chain)
    } finally {
      session.close()
      await responder.stop()
    }
  }
}

/** What `npm start` does behind the build. */
const startBuilt = "sh -c 'acme-svc init && exec acme-svc serve'"

/** The end of what the server prints at start. */
const settled = "--domains demo.localhost run\n"

/** A place where the service was set up and serves. */
const begun = async (): Promise<{ readonly place: Place; readonly serving: Serving }> => {
  await builtServer()
  const place = await Place.make()
  await place.succeed("init")
  return { place, serving: await place.serve("serve", settled) }
}

/** A clone: what is in the repository and is needed to build, run and format. */
const cloneInto = (place: Place): void => {
  const folders = ["src", "test", "bench", "migrations", "panel", "docs"]
  const files = ["package.json", "package-lock.json", "tsconfig.json", ".npmrc", ".dprint.json"]
  const atTop = documents.filter((document) => !document.includes("/"))
  for (const entry of [...folders, ...files, ...atTop]) {
    cpSync(join(repository, entry), place.at(entry), { recursive: true })
  }
  symlinkSync(join(repository, "node_modules"), place.at("node_modules"))
}

describe("the documents", () => {
  // `operators.docs.test.ts` runs those of the other documents.
  const all = documents.filter((document) => !["docs/admin.md", "docs/api.md"].includes(document)).flatMap((document) =>
    commandsOf(document).map((command) => ({ document, command }))
  )

  it("fence commands as sh, where this test finds them", () => {
    for (const { body, document, language } of blocks) {
      assert.include(["sh", "text", "toml", "json", "yaml", "diff", "jinja"], language, `${document}:\n${body}`)
      if (language === "text") assert.notMatch(body, /^\s*[$#] /m, document)
    }
  })

  it.each(all.filter(({ command }) => !isBenchmark(command) && !isFaultRun(command) && !isSimulation(command)))(
    "$document: $command",
    ({ command }) => {
      assert.include([...Object.values(lines), ...ofTheGate] as ReadonlyArray<string>, command)
    }
  )

  it("have every command that is run for them", () => {
    const written = all.map(({ command }) => command)
    for (const command of [...Object.values(lines), ...ofTheGate]) assert.include(written, command)
  })

  it.each(ofTheGate)(".ci/run runs %s", (command) => {
    assert.match(
      text(".ci/run"),
      new RegExp(`(?:^|then )(?:step|steadied) ${command.replaceAll(".", "\\.")}(?:$| \\|\\||; fi$)`, "m")
    )
  })

  it(".ci/run leaves nothing out", () => {
    assert.match(text(".ci/run"), /^export ACME_TEST_FULL=true\nsteadied npm test$/m)
  })

  it("link to files that exist", () => {
    for (const document of documents) {
      for (const [, target = ""] of text(document).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)) {
        if (!target.includes("://")) {
          assert.isTrue(existsSync(join(repository, dirname(document), target)), `${document}: ${target}`)
        }
      }
    }
  })
})

describe("README.md", () => {
  let place: Place
  beforeAll(async () => {
    // What `init` writes has to do.
    place = await Place.make({})
    cloneInto(place)
  })

  describe("a first certificate", () => {
    let serving: Serving
    beforeAll(async () => {
      serving = await place.serve("start", settled)
    })
    afterAll(() => serving.stop())

    it("prints the directory, the CA file and the lines to paste", () => {
      const said = serving.said()
      assert.include(said, "acme-svc is ready.")
      assert.include(said, `Directory       http://localhost:${place.port}/profile/default/directory`)
      assert.include(said, `CA certificate  ${place.at("ca.pem")}`)
      const printed = said.split("\n").map(oneLine)
      assert.include(printed, place.rewritten("certbot"))
      assert.include(printed, place.rewritten("lego"))
      assert.include(readFileSync(place.at("config.toml"), "utf8"), "port = 5002")
    })

    it("certbot gets one", async () => {
      if (client.certbot) await place.succeed("certbot")
      else {await place.issueInItsPlace(
          `http://localhost:${place.port}/profile/default/directory`,
          "demo-certbot/live/demo.localhost/cert.pem"
        )}
      assert.match(await place.succeed("verifyCertbot"), /cert\.pem: OK/)
    })

    it("lego gets one", async () => {
      if (client.lego) await place.succeed("lego")
      else {await place.issueInItsPlace(
          `http://localhost:${place.port}/profile/default/directory`,
          "demo-lego/certificates/demo.localhost.crt"
        )}
      assert.match(await place.succeed("verifyLego"), /demo\.localhost\.crt: OK/)
    })
  })

  describe("the same over TLS", () => {
    let serving: Serving
    beforeAll(async () => {
      if (!isFull) {
        await builtServer()
        place.stand("npm start", startBuilt)
      }
      serving = await place.serve("startTls", settled)
    })
    afterAll(() => serving.stop())

    it("prints what to trust", () => {
      assert.include(serving.said(), `Directory       https://localhost:${place.port}/profile/default/directory`)
      assert.include(serving.said(), place.at("server.pem"))
    })

    it("certbot gets a certificate", async () => {
      if (client.certbot) await place.succeed("certbotTls")
      else gateComesBack()
    })

    it("lego gets a certificate", async () => {
      if (client.lego) await place.succeed("legoTls")
      else gateComesBack()
    })
  })

  describe("with PostgreSQL", () => {
    it("serves all the same", async () => {
      const elsewhere = await Place.make()
      if (isFull) cloneInto(elsewhere)
      else {
        await builtServer()
        elsewhere.stand("npm start", startBuilt)
      }
      elsewhere.replacements.push(["postgres://acme:secret@localhost/acme", `'${await freshPostgresUrl()}'`])
      const serving = await elsewhere.serve("startPostgres", settled)
      await elsewhere.issueInItsPlace(`http://localhost:${elsewhere.port}/profile/default/directory`, "cert.pem")
      const { stdout } = await serving.stop()
      assert.include(stdout, "backend=postgres")
      assert.isFalse(existsSync(elsewhere.at("sqlite.db")))
    })
  })
})

describe("docs/operations.md", () => {
  let place: Place
  beforeAll(async () => {
    await builtServer()
    place = await Place.make()
  })

  it("begins with init", async () => {
    assert.include(await place.succeed("init"), "created configuration config.toml")
    assert.strictEqual(await place.succeed("init"), "Nothing to do: everything exists.\n")
    assert.include(await place.succeed("profiles"), `http://localhost:${place.port}/profile/default/directory`)
  })

  it("serves, and health knows", async () => {
    assert.strictEqual((await place.paste("health")).code, 1)
    const serving = await place.serve("serve", settled)
    assert.strictEqual(await place.succeed("health"), "")
    assert.strictEqual(await place.succeed("healthWorker"), "")
    assert.include((await serving.stop()).stdout, "server_shutdown_completed")
    assert.strictEqual((await place.paste("healthWorker")).code, 1)
  })

  it("shows more when asked to", async () => {
    const serving = await place.serve("serveDebug", settled)
    await place.succeed("health")
    assert.match((await serving.stop()).stdout, / DEBUG request_completed .*uri=\/health/)
  })

  it("migrates", async () => {
    const fresh = await Place.make()
    writeFileSync(fresh.at("config.toml"), "[profiles.default]\n")
    const behind = await fresh.paste("migrateCheck")
    assert.strictEqual(behind.code, 3, behind.stderr)
    assert.match(await fresh.succeed("migrate"), /^[1-9]\d* migration\(s\) applied\.$/m)
    assert.strictEqual(await fresh.succeed("migrateCheck"), "0 migration(s) pending.\n")
  })

  it("backs up while it runs", async () => {
    const serving = await place.serve("serve", settled)
    const installed = await Place.make()
    symlinkSync(join(repository, "node_modules"), installed.at("node_modules"))
    installed.replacements.push(["/var/lib/acme-svc", place.directory])
    await installed.succeed("backup")
    await serving.stop()
    const restored = await Place.make()
    cpSync(place.at("backup.db"), restored.at("sqlite.db"))
    writeFileSync(restored.at("config.toml"), "[profiles.default]\n")
    assert.strictEqual(await restored.succeed("migrateCheck"), "0 migration(s) pending.\n")
  })

  it("moves to another database", async () => {
    const target = new URL(await freshPostgresUrl())
    const moving = await Place.make({ PGPASSWORD: decodeURIComponent(target.password) })
    target.password = ""
    await moving.succeed("init")
    moving.stand("postgres://acme@db.example/acme", `'${target.href}'`)
    assert.match(await moving.succeed("migrateTarget"), /^[1-9]\d* migration\(s\) applied\.$/m)
    assert.match(await moving.succeed("transfer"), /^0 row\(s\) copied\. Set database\.url/m)
  })

  it("completes", async () => {
    const script = await place.succeed("completions")
    assert.strictEqual(spawnSync("bash", ["-n"], { input: script }).status, 0)
    assert.include(script, "complete ")
  })
})

describe("docs/policy.md", () => {
  const files = blocksOf("docs/policy.md").filter(({ language }) => language === "toml").map(({ body }) => body)
  const [example = "", ...others] = files
  let place: Place
  beforeAll(async () => {
    await builtServer()
    place = await Place.make()
    writeFileSync(place.at("names-for"), "#!/bin/sh\necho web1.example.org\n", { mode: 0o755 })
    writeFileSync(place.at("config.toml"), example.replace("/etc/acme-svc/names-for", place.at("names-for")))
  })

  it("shows the policy of its example", async () => {
    const shown = await place.succeed("filterShow")
    for (const words of ["printer-credential", "(printer-credential and printer-names)", "relying-parties"]) {
      assert.include(shown, words)
    }
    assert.notInclude(shown, "Warning")
  })

  it("does not hide the revocation list, and hides the rest", async () => {
    assert.include(await place.succeed("filterCrl"), "Profile default: allowed.")
    const { code, stderr, stdout } = await place.paste("filterOutside")
    assert.strictEqual(code, 3, stderr)
    assert.include(stdout, "connection: refused by filter.default")
    assert.include(stdout, "nothing was looked up")
  })

  it("asks the inventory for names, and says so", async () => {
    const said: unknown = JSON.parse(await place.succeed("filterInside"))
    assert.deepNestedInclude(said, { outcome: "allowed", "stages[1].rule": "own-names" })
    assert.deepNestedInclude(said, {
      ran: [
        { check: "printer-credential", type: "eab" },
        { check: "owned", type: "ipam" }
      ]
    })
    const { code, stdout } = await place.run(
      "acme-svc filter explain --client-ip 10.1.2.3 --identifier web2.example.org"
    )
    assert.strictEqual(code, 3, stdout)
    writeFileSync(place.at("names-for"), "#!/bin/sh\nexit 1\n")
    const lost = await place.run("acme-svc filter explain --client-ip 10.1.2.3 --identifier web1.example.org")
    assert.strictEqual(lost.code, 1, lost.stdout)
    assert.include(lost.stdout, "Profile default: undecided.")
  })

  it.each(others)("shows a file that loads: %#", async (file) => {
    const another = await Place.make()
    writeFileSync(another.at("config.toml"), file)
    assert.include(await another.succeed("filterShow"), "own-names")
  })
})

describe("docs/notifications.md", () => {
  it("sends samples, and says what was answered", async () => {
    const place = await Place.make()
    await place.succeed("init")
    const taken = "script_path = \"/bin/true\"\nevents = [\"certificate_issued\"]\n"
    appendFileSync(
      place.at("config.toml"),
      `\n[notify]\nenabled = ["custom"]\ncustom_enabled = ["chat"]\n[notify.custom.chat]\n${taken}`
    )
    for (const line of ["notifyTest", "notifyTestChat"] as const) {
      assert.match(await place.succeed(line), /custom chat +certificate_issued +ok +exit 0/)
    }
  })

  it("sends a sample of what contacts are written, to the recipients of the section", () =>
    Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      const mail = yield* mailServer()
      const place = yield* Effect.promise(() => Place.make())
      yield* Effect.promise(() => place.succeed("init"))
      const from = "smtp_host = \"127.0.0.1\"\nsmtp_security = \"none\"\nfrom = \"a@example.org\"\n"
      appendFileSync(
        place.at("config.toml"),
        `\n[notify]\nenabled = ["email"]\n[notify.email]\n${from}smtp_port = ${mail.port}\nto = ["pki@example.org"]\n`
          + "[notify.expiry]\nlead_days = 14\nto_contacts = true\n"
      )
      assert.match(yield* Effect.promise(() => place.succeed("notifyTestReminder")), /email +expiry_reminder +ok/)
      assert.deepStrictEqual(mail.taken.flatMap(({ recipients }) => recipients), ["pki@example.org"])
    }))))
})

describe("docs/eab.md", () => {
  let place: Place
  let serving: Serving
  beforeAll(async () => {
    await builtServer()
    place = await Place.make()
    await place.succeed("init")
    const [turnedOn] = blocks.filter(({ document, language }) => document === "docs/eab.md" && language === "toml")
    appendFileSync(place.at("config.toml"), `\n${turnedOn?.body ?? ""}`)
    serving = await place.serve("serve", settled)
  })
  afterAll(() => serving.stop())

  /** Makes a credential that stands for the document's from here on. */
  const created = async (line: Line = "eabCreate"): Promise<Credential> => {
    const said = await place.succeed(line)
    const [, kid = ""] = /^kid +(\S+)$/m.exec(said) ?? []
    const [, key = ""] = /^hmac key +(\S+)$/m.exec(said) ?? []
    place.stand("KID", kid)
    place.stand("HMAC_KEY", key)
    return { kid, secret: Buffer.from(key, "base64url") }
  }
  /** What the client gets, or what stands in its place when it is not installed. */
  const issued = async (which: "certbot" | "lego", line: Line, path: string, credential: Credential) => {
    if (client[which]) await place.succeed(line)
    else await place.issueInItsPlace(`http://localhost:${place.port}/profile/default/directory`, path, credential)
    assert.match(readFileSync(place.at(path), "utf8"), /BEGIN CERTIFICATE/)
  }

  it("turns it on, and a client without a credential is refused", async () => {
    const refused = await place.issueInItsPlace(`http://localhost:${place.port}/profile/default/directory`, "none.pem")
      .then(() => undefined, (error: unknown) => String(error))
    assert.include(refused, "externalAccountRequired")
  })

  it("certbot and lego register with a credential, which is listed and revoked", async () => {
    const credential = await created()
    await issued("certbot", "certbotEab", "demo-certbot-eab/live/demo.localhost/cert.pem", credential)
    await issued("lego", "legoEab", "demo-lego-eab/certificates/demo.localhost.crt", credential)
    assert.match(
      await place.succeed("eabList"),
      new RegExp(`^${credential.kid}  web servers  every    active .* 2$`, "m")
    )
    assert.match(await place.succeed("eabShow"), /^accounts +2$/m)
    assert.match(await place.succeed("eabRevoke"), /^status +revoked$/m)
  })

  it("deletes it: not with accounts that hold certificates, but with the accounts deactivated", async () => {
    const refused = await place.paste("eabDeleteAccounts")
    assert.deepStrictEqual([refused.code, refused.stdout], [3, ""])
    assert.include(await place.succeed("eabDeactivateAccounts"), "0 kept, 2 deactivated, 0 deleted")
  })

  it("deletes it alone, and with accounts that hold nothing", async () => {
    await created("eabCreateScoped")
    assert.match(await place.succeed("eabShow"), /^profile +default$/m)
    assert.include(await place.succeed("eabDelete"), "Deleted the credential")
    await created()
    assert.include(await place.succeed("eabDeleteAccounts"), "Deleted the credential")
    assert.strictEqual(await place.succeed("eabList"), "0 of 0 row(s).\n")
  })
})

describe("docs/profiles.md", () => {
  it("has an example that is taken, and lists what it makes", async () => {
    await builtServer()
    const place = await Place.make()
    const [example] = blocks.filter(({ document, language }) => document === "docs/profiles.md" && language === "toml")
    writeFileSync(place.at("config.toml"), example?.body ?? "")
    const shown = await place.succeed("profiles")
    assert.match(shown, /^lab .* bypassed/m)
    assert.match(shown, /^web .*\/profile\/web\/directory .* http-01/m)
    const { items } = JSON.parse(await place.succeed("profilesJson")) as { readonly items: ReadonlyArray<unknown> }
    assert.lengthOf(items, 2)
    await place.succeed("init")
    for (const file of ["ca.pem", "ca.key", "lab-ca.pem", "lab-ca.key"]) assert.isTrue(existsSync(place.at(file)), file)
  })
})

describe("docs/challenges.md", () => {
  it("has an example that is taken", async () => {
    await builtServer()
    const place = await Place.make()
    const [example] = blocks.filter(({ document, language }) =>
      document === "docs/challenges.md" && language === "toml"
    )
    writeFileSync(place.at("config.toml"), `${example?.body ?? ""}\n[profiles.default]\n`)
    assert.match(await place.succeed("profiles"), /^default .* http-01, dns-01, tls-alpn-01/m)
  })

  it("finds the order that failed, and why", async () => {
    const { place, serving } = await begun()
    const session = await AcmeSession.open(`http://localhost:${place.port}/profile/default/directory`)
    try {
      await session.register()
      const failure = await session.issue(["demo.localhost"], new Map()).then(
        () => "",
        (error: unknown) => String(error)
      )
      assert.notStrictEqual(failure, "")
      const [, id = ""] = /^([0-9a-f-]{36})  default  invalid/m.exec(await place.succeed("ordersFailed")) ?? []
      place.stand("ORDER_ID", id)
      const shown = await place.succeed("orderShow")
      assert.match(shown, /^The service could not reach the name on its validation port\.\n.*log/m)
    } finally {
      session.close()
      await serving.stop()
    }
  })
})

describe("docs/jobs.md", () => {
  it("finds the jobs of an order and the processes, and moves a sweep forward and away", async () => {
    const { place, serving } = await begun()
    const session = await AcmeSession.open(`http://localhost:${place.port}/profile/default/directory`)
    try {
      await session.register()
      const { url } = await session.newOrder(["demo.localhost"])
      place.stand("ORDER_ID", url.slice(url.lastIndexOf("/") + 1))
      assert.include(await place.succeed("jobsOfOrder"), "0 of 0 row(s).")
      assert.match(await place.succeed("jobsQueue"), /^order_sweep +1 +0 +0 +0 s$/m)
      assert.include(await place.succeed("jobsFailed"), "0 of 0 row(s).")
      assert.include(await place.succeed("jobsDeliveries"), "0 of 0 row(s).")
      assert.match(await place.succeed("workerList"), /  acme,admin,worker  /)
      const { stdout } = await place.run("acme-svc jobs list --kind order_sweep")
      place.stand("JOB_ID", /^([0-9a-f-]{36})  order_sweep  ready/m.exec(stdout)?.[1] ?? "")
      assert.match(await place.succeed("jobsShow"), /^kind +order_sweep$/m)
      assert.include(await place.succeed("jobsRunNow"), "The order_sweep job about all is due now.")
      // It may be running when it is cancelled, and then is due again tomorrow.
      await vi.waitFor(() => place.succeed("jobsCancel"), { timeout: patienceMs, interval: 100 })
    } finally {
      session.close()
      await serving.stop()
    }
  })
})

describe("docs/debugging.md", () => {
  let place: Place
  let serving: Serving
  let inspectorPort: number
  beforeAll(async () => {
    await builtServer()
    inspectorPort = await freePort()
    place = await Place.make({
      ACME_SVC_CHALLENGE__ALLOW_LOOPBACK: "true",
      NODE_OPTIONS: `--inspect-port=${inspectorPort}`
    })
    await place.succeed("init")
    serving = await place.serve("serveKept", settled)
  })
  afterAll(() => serving.stop())

  /** What a line finds in the log, once a record is there: an answer is heard before it is told of. */
  const found = (line: Line, record: RegExp): Promise<string> =>
    vi.waitFor(async () => {
      const { stdout } = await place.paste(line)
      assert.match(stdout, record)
      return stdout
    }, { timeout: patienceMs, interval: 50 })

  it("follows an order to its job, and from there to the request that made it", async () => {
    await place.issueInItsPlace(`http://localhost:${place.port}/profile/default/directory`, "cert.pem")
    const [, order = ""] = /^([0-9a-f-]{36})  default  valid /m.exec(
      await place.run("acme-svc order list").then(
        ({ stdout }) => stdout
      )
    ) ?? []
    place.stand("ORDER_ID", order)
    const [, job = ""] = /^([0-9a-f-]{36})  signer_issue /m.exec(await place.succeed("jobsOfOrder")) ?? []
    place.stand("JOB_ID", job)
    assert.match(await place.succeed("jobsShow"), /^kind +signer_issue$/m)
    const ofJob = await found("grepJob", / order_finalized /)
    const [, request = ""] = / job_enqueued .* request_id=(\S+)/.exec(ofJob) ?? []
    place.stand("REQUEST_ID", request)
    const ofRequest = await found("grepRequest", / request_completed .* uri=\S+\/finalize/)
    assert.include(ofRequest, `job_id=${job}`)
  })

  it("is told a request by the header of its answer", async () => {
    const answer = await fetch(`http://localhost:${place.port}/profile/default/directory`)
    const id = answer.headers.get("x-request-id") ?? "none"
    place.stand("REQUEST_ID", id)
    await found("grepRequest", / request_completed .* uri=\S+\/directory/)
  })

  it("profiles the process that worker list names", async () => {
    const [, pid = ""] = /^[^:\s]+:(\d+):/m.exec(await place.succeed("workerList")) ?? []
    place.stand("PID", pid)
    place.stand("9229", `${inspectorPort}`)
    place.stand(" 10 server", " 1 server")
    place.stand("docs/recipes", join(repository, "docs/recipes"))
    await place.succeed("openInspector")
    assert.match(await place.succeed("cpuProfile"), /^ *\d+\.\d %  \S/m)
    const profile: unknown = JSON.parse(readFileSync(place.at("server.cpuprofile"), "utf8"))
    assert.containsAllKeys(profile, ["nodes", "samples", "timeDeltas"])
  })

  it("prints what an issuance did, and for how long", async () => {
    const traced = await Place.make()
    traced.stand("4318", `${await freePort()}`)
    traced.stand("docs/recipes", join(repository, "docs/recipes"))
    const collecting = await traced.serve("collectTraces", "Ready for spans.")
    await traced.succeed("init")
    const served = await traced.serve("serveTraced", settled)
    await traced.issueInItsPlace(`http://localhost:${traced.port}/profile/default/directory`, "cert.pem")
    await served.stop()
    // What is printed is heard through a second program, which ends at the same signal as the first.
    await vi.waitFor(() => {
      const trees = collecting.said().split(/\n(?= *[\d.]+ ms {2}\S)/)
      const treeOf = (name: string) => trees.find((tree) => tree.includes(` ms  ${name}  `)) ?? ""
      assert.match(treeOf("POST /order/{id}/finalize"), / request_id=.*\n.* ms {4}authenticate\b/)
      assert.match(treeOf("signer_issue"), / job_id=\S+.*\n[^]* ms {4}transaction\b[^]* ms {6}order_issue\b/)
      assert.match(treeOf("challenge_validate"), / ms {4}validation GET .*status_code=200/)
    }, { timeout: patienceMs, interval: 50 })
    await collecting.stop()
  })

  it("names who has the database open, and who writes", async () => {
    assert.match(await place.succeed("sqliteLocks"), / READ .* 128 128$/m)
    // The service writes now and then, if only that it is alive.
    await vi.waitFor(async () => assert.notMatch(await place.succeed("sqliteLocks"), / WRITE .* 120 120$/m), {
      timeout: patienceMs,
      interval: 50
    })
    const database = new SqliteDatabase(place.at("sqlite.db"))
    database.exec("BEGIN IMMEDIATE")
    const held = await place.succeed("sqliteLocks")
    database.exec("ROLLBACK")
    database.close()
    assert.match(held, new RegExp(` WRITE ${process.pid} .* 120 120$`, "m"))
  })

  it("says who waits for whom on PostgreSQL", async () => {
    const url = new URL(await freshPostgresUrl())
    const open = async (name: string) => {
      url.searchParams.set("application_name", name)
      const client = new Client({ connectionString: url.href })
      await client.connect()
      return client
    }
    const [holds, waits, looks] = await Promise.all([open("holder"), open("waiter"), open("looker")])
    await holds.query("CREATE TABLE things (id INT)")
    await holds.query("BEGIN; LOCK TABLE things")
    const waited = waits.query("SELECT id FROM things")
    await vi.waitFor(async () => {
      const { rows } = await looks.query(text("docs/recipes/postgres-locks.sql"))
      assert.lengthOf(rows, 1)
      assert.include(rows[0], {
        statement: "SELECT id FROM things",
        holder: "holder",
        holder_state: "idle in transaction"
      })
    }, { timeout: patienceMs, interval: 50 })
    await holds.query("ROLLBACK")
    await waited
    assert.lengthOf((await looks.query(text("docs/recipes/postgres-locks.sql"))).rows, 0)
    await Promise.all([holds, waits, looks].map((client) => client.end()))
  })
})

describe("docs/renewal.md", () => {
  let place: Place
  let serving: Serving
  beforeAll(async () => {
    ;({ place, serving } = await begun())
  })
  afterAll(() => serving.stop())

  const issued = async (): Promise<number> =>
    Number(/of (\d+) row/.exec(await place.succeed("ordersBelow"))?.[1] ?? Number.NaN)

  it("certbot renews", async () => {
    if (!client.certbot) return gateComesBack()
    await place.succeed("certbot")
    const before = await issued()
    await place.succeed("certbotRenew")
    assert.strictEqual(await issued(), before + 1)
  })

  it("nothing of it ends within thirty days", async () => {
    assert.match(await place.succeed("ordersEnding"), /^0 of 0 row\(s\)\.$/m)
  })

  it("lego renews", async () => {
    if (!client.lego) return gateComesBack()
    await place.succeed("lego")
    const before = await issued()
    await place.succeed("legoRenew")
    assert.strictEqual(await issued(), before + 1)
  })

  it("shows what was issued", async () => {
    assert.isAtLeast(await issued(), 0)
  })
})

describe("docs/revocation.md", () => {
  const leaf = "demo-certbot/live/demo.localhost/cert.pem"
  let place: Place
  let serving: Serving
  beforeAll(async () => {
    ;({ place, serving } = await begun())
  })
  afterAll(() => serving.stop())

  /** Orders that are shown as revoked. */
  const revoked = async (): Promise<number> => (await place.succeed("ordersNamed")).match(/ {2}revoked /g)?.length ?? 0

  it("certbot revokes by its account and by the certificate's key", async () => {
    if (!client.certbot) return gateComesBack()
    await place.succeed("certbot")
    await place.succeed("certbotRevoke")
    assert.strictEqual(await revoked(), 1)
    await place.succeed("certbotRenew")
    await place.succeed("certbotRevokeByKey")
    assert.strictEqual(await revoked(), 2)
  })

  it("lego revokes by its account", async () => {
    if (!client.lego) return gateComesBack()
    const before = await revoked()
    await place.succeed("lego")
    await place.succeed("legoRevoke")
    assert.strictEqual(await revoked(), before + 1)
  })

  it("an operator revokes by the order, and openssl refuses what it passed before", async () => {
    await place.issueInItsPlace(`http://localhost:${place.port}/profile/default/directory`, leaf)
    assert.match(await place.succeed("verifyCrl"), /cert\.pem: OK/)
    const [, id = ""] = /^([0-9a-f-]{36})  default  valid /m.exec(await place.succeed("ordersNamed")) ?? []
    place.stand("ORDER_ID", id)
    assert.match(await place.succeed("orderRevoke"), /^The revocation list is signed\.$/m)
    assert.match(await place.succeed("orderShow"), /^status +valid, revoked$/m)
    const refused = await place.paste("verifyCrl")
    assert.notStrictEqual(refused.code, 0)
    assert.include(refused.stderr, "certificate revoked")
    assert.include(await place.succeed("crlText"), "Superseded")
  })

  it("raises the number after a restore", async () => {
    const [, issuer = ""] = /^([0-9a-f]{64})  default .* ok$/m.exec(await place.succeed("crlList")) ?? []
    place.stand("ISSUER", issuer)
    assert.include(await place.succeed("crlRaise"), "to 41; the next list has a higher number")
    assert.match(await place.succeed("crlList"), new RegExp(`^${issuer}  default +4[12] `, "m"))
  })

  it.each(blocksOf("docs/revocation.md").filter(({ language }) => language === "toml").map(({ body }) => body))(
    "shows a file that is taken: %#",
    async (body) => {
      const another = await Place.make()
      writeFileSync(another.at("config.toml"), body.includes("[profiles.") ? body : `${body}\n[profiles.default]\n`)
      await another.succeed("init")
      for (const [, file = ""] of body.matchAll(/^(?:cert|key)_path = "(.*)"$/gm)) {
        assert.isTrue(existsSync(another.at(file)), file)
      }
    }
  )
})

describe("docs/signers.md", () => {
  it.each(blocksOf("docs/signers.md").filter(({ language }) => language === "toml").map(({ body }) => body))(
    "has an example that is taken: %#",
    async (body) => {
      await builtServer()
      const place = await Place.make()
      writeFileSync(place.at("config.toml"), body)
      assert.match(await place.succeed("profiles"), /^web .*\/profile\/web\/directory /m)
    }
  )

  it("registers with a credential, relays, and shows the upstream's side of orders", async () => {
    await builtServer()
    const config = "[challenge]\nbypass = true\n[profiles.bound]\neab.enabled = true\n"
    const upstream = await startServer({ config })
    try {
      const made = await runToEnd(["eab", "create", "--label", "web", "--json"], {
        config: null,
        directory: upstream.directory
      })
      const { hmacKey, kid } = JSON.parse(made.stdout) as { readonly kid: string; readonly hmacKey: string }
      const place = await Place.make()
      const relay = { backend: "relay", relay: { directory_url: upstream.profileUrl("bound"), poll_interval_ms: 50 } }
      writeFileSync(
        place.at("config.toml"),
        [
          "[challenge]\nbypass = true\n[profiles.web.signer]",
          `backend = "${relay.backend}"`,
          ...Object.entries(relay.relay).map(([key, value]) => `relay.${key} = ${JSON.stringify(value)}`)
        ].join("\n")
      )
      writeFileSync(place.at("hmac"), hmacKey)
      place.stand("KID", kid)
      place.stand("HMAC_FILE", "hmac")
      assert.match(await place.succeed("upstreamRegister"), /^Registered: http/)
      assert.match(await place.succeed("upstreamShow"), /^registered +true$/m)
      const serving = await place.serve("serve", settled)
      const session = await AcmeSession.open(`http://localhost:${place.port}/profile/web/directory`)
      await session.register()
      const { order } = await session.issue(["relayed.example"], new Map())
      place.stand("ORDER_ID", order.url.slice(order.url.lastIndexOf("/") + 1))
      assert.match(await place.succeed("upstreamOrder"), /^status +valid$/m)
      assert.strictEqual(await place.succeed("upstreamOrdersFailed"), "0 of 0 row(s).\n")
      session.close()
      await serving.stop()
    } finally {
      await upstream.dispose()
    }
  })

  it("tells the service's answer to an unknown token from other ones", async () => {
    if (!client.curl) return gateComesBack()
    await builtServer()
    const upstream = await startServer()
    const place = await Place.make()
    place.stand("http://www.example.org/", `http://localhost:${place.port}/`)
    const asked = async (signer: string) => {
      writeFileSync(place.at("config.toml"), `[profiles.default]\n${signer}`)
      const serving = await place.serve("serve", settled)
      const said = await place.succeed("curlToken")
      await serving.stop()
      return said
    }
    try {
      const relay = [
        "signer.backend = \"relay\"",
        "signer.relay.challenge_strategy = \"http01\"",
        `signer.relay.directory_url = "${upstream.directoryUrl}"`
      ]
      assert.match(await asked(relay.join("\n")), /^HTTP\/1\.1 404 [^]*There is no such token\.$/m)
      assert.match(await asked(""), /^HTTP\/1\.1 404 (?![^]*There is no such token\.)/m)
    } finally {
      await upstream.dispose()
    }
  })
})

// Programs that take their time: a full run has them.
const tools = isFull ? ["programs that take their time"] : []

describe.each(tools)("%s", () => {
  const written = (chosen: (command: string) => boolean): ReadonlyArray<string> => [
    ...new Set(documents.flatMap(commandsOf).filter(chosen))
  ]

  it.each(written(isBenchmark))("%s", async (command) => {
    const place = await Place.make()
    cloneInto(place)
    const { code, stderr, stdout } = await place.run(shortened(command))
    if (needsPebble(command) && !isInstalled("pebble")) {
      assert.strictEqual(code, 1, `${stdout}\n${stderr}`)
      return assert.match(stderr, /pebble is not installed/)
    }
    assert.strictEqual(code, 0, `${stdout}\n${stderr}`)
    assert.match(stdout, /issuances|jobs\/s|sign-ins/)
  })

  it.each(written(isFaultRun))("%s", async (command) => {
    const place = await Place.make()
    cloneInto(place)
    const [, words = ""] = command.split(" -- ")
    const kept = words.replaceAll(/--(?:only|rounds|share) (?:"[^"]*"|\S+)/g, "")
    const { code, stderr, stdout } = await place.run(
      `npm run faults -- ${kept} --only "newNonce" --share 0.02 --clients 2`
    )
    assert.strictEqual(code, 0, `${stdout}\n${stderr}`)
    assert.match(stdout, /^2 passed, 0 failed$/m)
  })

  it.each(written(isSimulation))("%s", async (command) => {
    const place = await Place.make()
    cloneInto(place)
    const [, words = ""] = command.split(" -- ")
    const kept = words.replace(/--seeds \S+/, "")
    const few = words.includes("--planted") ? "--bug 1 --seeds 30" : words.includes("--seed ") ? "" : "--seeds 2"
    const { code, stderr, stdout } = await place.run(`npm run simulate -- ${kept} ${few}`)
    assert.strictEqual(code, 0, `${stdout}\n${stderr}`)
    assert.match(stdout, /^[12] passed, 0 failed$/m)
  })

  it("docs/operations.md installs what the service needs and no more", async () => {
    await builtServer()
    const installed = await Place.make()
    for (const entry of ["package.json", "package-lock.json", ".npmrc", "dist", "migrations"]) {
      cpSync(join(repository, entry), installed.at(entry), { recursive: true })
    }
    // Links where the file system has them; removing a link removes nothing of ours.
    const modules = join(repository, "node_modules")
    const copied = spawnSync("sh", [
      "-c",
      "cp -al \"$0\" \"$1\" || { rm -rf \"$1\"; cp -a \"$0\" \"$1\"; }",
      modules,
      installed.at("node_modules")
    ])
    assert.strictEqual(copied.status, 0, copied.stderr.toString())
    await installed.succeed("prune")
    await installed.succeed("relink")
    assert.isFalse(existsSync(installed.at("node_modules/vitest")))
    assert.isTrue(existsSync(join(modules, "vitest")))
    const started = spawnSync(installed.at("node_modules/.bin/node"), [installed.at("dist/main.js"), "init"], {
      cwd: freshDirectory(),
      encoding: "utf8"
    })
    assert.strictEqual(started.status, 0, started.stderr)
  })

  it("npm run dev serves from the sources, and again when one of them has changed", async () => {
    const place = await Place.make()
    cloneInto(place)
    const serving = await place.serve("dev", settled)
    assert.isTrue(existsSync(place.at("dev/config.toml")))
    appendFileSync(place.at("src/domain/Role.ts"), "\n// Changed.\n")
    await vi.waitFor(() => assert.lengthOf(serving.said().split(settled), 3), { timeout: patienceMs, interval: 100 })
    const { stdout } = await serving.stop()
    assert.include(stdout, "server_shutdown_completed")
  })

  it("npm run demo serves a panel with something on every page, and says who can sign in", async () => {
    const place = await Place.make()
    cloneInto(place)
    const serving = await place.serve("demo", "Ctrl-C ends it")
    assert.match(serving.said(), /ann {5}Amber kettle by the quay {3}admin/)
    const url = /The panel is at (\S+)/.exec(serving.said())?.[1] ?? ""
    assert.strictEqual((await fetch(url, { redirect: "manual" })).status, 303)
    await serving.stop()
  })

  it("npm run pictures takes every picture of docs/panel.md", async () => {
    const place = await Place.make()
    cloneInto(place)
    rmSync(place.at("docs/pictures"), { recursive: true })
    await place.succeed("pictures")
    const shown = [...text("docs/panel.md").matchAll(/\(pictures\/([\w-]+\.png)\)/g)].map(([, name = ""]) => name)
    assert.sameMembers(readdirSync(place.at("docs/pictures")), shown)
  })

  it("docs/cli.md, docs/errors.md and docs/log-events.md are written anew, from the code alone", async () => {
    const place = await Place.make()
    cloneInto(place)
    const written = ["docs/cli.md", "docs/errors.md", "docs/log-events.md"]
    for (const document of written) {
      const emptied = text(document).replace(/(?<=dprint-ignore-start -->).*(?=<!-- dprint-ignore-end)/s, "\n")
      assert.isBelow(emptied.length, text(document).length)
      writeFileSync(place.at(document), emptied)
    }
    await place.succeed("catalogues")
    for (const document of written) {
      assert.strictEqual(readFileSync(place.at(document), "utf8"), text(document), document)
    }
  })

  it("CONTRIBUTING.md has a first change that fits and passes", async () => {
    const place = await Place.make()
    cloneInto(place)
    const changes = blocks.filter(({ document, language }) => document === "CONTRIBUTING.md" && language === "diff")
    assert.lengthOf(changes, 3)
    for (const { body } of changes) {
      const applied = spawnSync("git", ["apply", "-"], {
        cwd: place.directory,
        input: body,
        encoding: "utf8"
      })
      assert.strictEqual(applied.status, 0, applied.stderr)
    }
    const specified = place.at("test/kernel/telemetry/specified.ts")
    writeFileSync(
      specified,
      readFileSync(specified, "utf8").replace("export const own = words(\n  \"", "$&account_terms_refused ")
    )
    await place.succeed("catalogues")
    assert.match(await place.succeed("firstChange"), /^\d+ passed, 0 failed$/m)
  })

  it("formats, and nothing is left to format", async () => {
    const place = await Place.make()
    cloneInto(place)
    await place.succeed("format")
    for (const document of documents) {
      assert.strictEqual(readFileSync(place.at(document), "utf8"), text(document), document)
    }
  })
})

describe("this test", () => {
  it("has run every line, or the gate will", () => {
    const lacking: ReadonlyArray<Line> = [
      ...isFull ? [] : ["prune", "relink", "dev", "demo", "pictures", "catalogues", "firstChange", "format"] as const,
      ...client.certbot
        ? []
        : ["certbot", "certbotTls", "certbotEab", "certbotRenew", "certbotRevoke", "certbotRevokeByKey"] as const,
      ...client.curl ? [] : ["curlToken"] as const,
      ...client.lego ? [] : ["lego", "legoTls", "legoEab", "legoRenew", "legoRevoke"] as const
    ]
    for (const line of Object.keys(lines) as ReadonlyArray<Line>) {
      if (!lacking.includes(line)) assert.isTrue(exercised.has(line), lines[line])
    }
    if (lacking.length > 0) gateComesBack()
  })
})
