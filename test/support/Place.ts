import { spawn } from "node:child_process"
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "./AcmeSession.ts"
import type { Credential } from "./Binding.ts"
import { bindingOf } from "./Binding.ts"
import { commandLine } from "./CommandLine.ts"
import { builtServer, freshDirectory } from "./Databases.ts"
import type { Home, Line } from "./DocumentLines.ts"
import { lines, linesOf } from "./DocumentLines.ts"
import { documents, repository } from "./Documents.ts"
import { isFull } from "./Full.ts"
import { startHttp01Responder } from "./Http01Responder.ts"
import { client, gateComesBack, gateComesBackForTokens, gateHasPostgres, postgresPrograms } from "./Installed.ts"
import { hasBao } from "./OpenBao.ts"
import { freePort } from "./Ports.ts"
import { watch } from "./Watchdog.ts"

/*
 * Every command of the documents is run, in `test/docs` or by `.ci/run`. The commands are run unchanged except for
 * ports, the database's URL and the paths of an installation. In a full run, a shell runs all of them. Otherwise this
 * process runs the lines that only call `acme-svc`, and `npm start` builds only once.
 */

/**
 * Returns the arguments of a line that only calls `acme-svc`, split as by a shell, or undefined if the line needs a
 * shell.
 */
const argumentsOf = (command: string): ReadonlyArray<string> | undefined => {
  const word = /"([^"$`\\]*)"|'([^']*)'|([\w./:=,@%+-]+)/
  if (!new RegExp(`^acme-svc(?: (?:${word.source}))*$`).test(command)) return undefined
  const words = [...command.matchAll(new RegExp(word, "g"))].map(([, quoted, raw, plain]) =>
    quoted ?? raw ?? plain ?? ""
  )
  return words.slice(1)
}

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Serving {
  readonly said: () => string
  readonly stop: () => Promise<Ended>
}

const exercised = new Set<Line>()

/**
 * Replaces words by texts. Texts that were inserted are not replaced again, because ports and ids may happen to contain
 * another of the words.
 */
const replaced = (command: string, [first, ...others]: ReadonlyArray<readonly [string, string]>): string => {
  if (first === undefined) return command
  const [from, to] = first
  return command.split(from).map((part) => replaced(part, others)).join(to)
}

/** A directory in which commands can be pasted, with ports of its own, and with `acme-svc` on the PATH. */
export class Place {
  readonly directory = freshDirectory()
  readonly replacements: Array<readonly [string, string]> = []
  private readonly binaries = freshDirectory()
  private readonly home = freshDirectory()
  readonly port: number
  readonly httpPort: number
  readonly adminPort: number

  private readonly env: Readonly<Record<string, string>>

  private constructor(
    [port, httpPort, adminPort]: readonly [number, number, number],
    env: Readonly<Record<string, string>>
  ) {
    this.env = env
    this.port = port
    this.httpPort = httpPort
    this.adminPort = adminPort
    this.replacements.push(["localhost:3000", `localhost:${port}`], ["5002", `${httpPort}`])
    const main = join(repository, "dist/main.js")
    writeFileSync(join(this.binaries, "acme-svc"), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`, {
      mode: 0o755
    })
  }

  /** Makes a place in which all names resolve to this machine. By default, `env` lets validations connect to it. */
  static async make(env = { ACME_SVC_CHALLENGE__ALLOW_LOOPBACK: "true" } as Readonly<Record<string, string>>) {
    return new Place([await freePort(), await freePort(), await freePort()], env)
  }

  /** Replaces a word of the documents, or its earlier replacement, by a text. */
  stand(word: string, text: string): void {
    const others = this.replacements.filter(([from]) => from !== word)
    this.replacements.splice(0, this.replacements.length, ...others, [word, text])
  }

  /** Returns the text of a line as it is run here. */
  rewritten(line: Line): string {
    return replaced(lines[line], this.replacements)
  }

  private get variables(): Readonly<Record<string, string>> {
    return {
      HOME: this.home,
      // The plugins that dprint has compiled.
      DPRINT_CACHE_DIR: join(homedir(), ".cache/dprint"),
      NO_COLOR: "1",
      npm_config_update_notifier: "false",
      ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${this.port}`,
      ACME_SVC_SERVER__BASE_URL: `http://localhost:${this.port}`,
      ACME_SVC_CHALLENGE__HTTP_01__PORT: `${this.httpPort}`,
      ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${this.adminPort}`,
      ACME_SVC_ADMIN__BASE_URL: `http://localhost:${this.adminPort}`,
      ...this.env,
      PATH: `${this.binaries}:${this.env["PATH"] ?? process.env["PATH"]}`
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

  /** Runs a line to its end, with these assignments of variables before it. */
  paste(line: Line, variables = ""): Promise<Ended> {
    exercised.add(line)
    return this.run(`${variables} ${this.rewritten(line)}`.trim())
  }

  /** Runs a line that must succeed, and returns the output. */
  async succeed(line: Line): Promise<string> {
    const { code, stderr, stdout } = await this.paste(line)
    assert.strictEqual(code, 0, `${this.rewritten(line)}\n${stdout}\n${stderr}`)
    return stdout
  }

  /** Runs a line that serves, and waits for an output line that begins with `until`. */
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

  /**
   * Does the work of a client that is not installed: gets a certificate from this server and writes it to `path`.
   */
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

/** The command of `npm start` after the build. */
export const startBuilt = "sh -c 'acme-svc init && exec acme-svc serve'"

/** A line at the end of the output with which the server starts. */
export const settled = "what to paste for each client:\n"

/** Makes a place where the service is set up, and starts the service there. */
export const begun = async (): Promise<{ readonly place: Place; readonly serving: Serving }> => {
  await builtServer()
  const place = await Place.make()
  await place.succeed("init")
  return { place, serving: await place.serve("serve", settled) }
}

/** Copies everything in the repository that is needed to build, to run and to format. */
export const cloneInto = (place: Place): void => {
  const folders = ["src", "test", "tools", "runtime", "migrations", "panel", "docs", "deploy"]
  const files = [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    ".npmrc",
    ".dprint.json",
    // The documents link to these.
    "config.toml.example",
    "LICENSE"
  ]
  const atTop = documents.filter((document) => !document.includes("/"))
  for (const entry of [...folders, ...files, ...atTop]) {
    cpSync(join(repository, entry), place.at(entry), { recursive: true })
  }
  symlinkSync(join(repository, "node_modules"), place.at("node_modules"))
}

/** The slow lines, which only a full run runs. */
const inFull: ReadonlyArray<Line> = Object.keys(linesOf.development) as ReadonlyArray<Line>

/** Returns whether a line needs a client that is absent. */
const isOfAbsent = (line: Line): boolean => {
  const [, name] = /^(?:\w+=\S+ )*(bao|certbot|curl|lego) /.exec(lines[line]) ?? []
  if (name === "bao" && !hasBao()) {
    gateComesBackForTokens()
    return true
  }
  return (name === "certbot" || name === "curl" || name === "lego") && !client[name]
}

/** Declares at the end of a test file a test that every line of the file has been run. */
export const hasRunLinesOf = (home: Home): void => {
  // Several files share a process and this module.
  beforeAll(() => exercised.clear())
  describe("the test file", () => {
    it("has run every line that the gate does not run separately", () => {
      const own = Object.keys(linesOf[home]) as ReadonlyArray<Line>
      if (home === "databases" && postgresPrograms === undefined) return gateHasPostgres()
      const lacking = own.filter((line) => isOfAbsent(line) || !isFull && inFull.includes(line))
      for (const line of own) if (!lacking.includes(line)) assert.isTrue(exercised.has(line), lines[line])
      if (lacking.length > 0) gateComesBack()
    })
  })
}
