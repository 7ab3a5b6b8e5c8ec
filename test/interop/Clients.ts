import { spawn } from "node:child_process"
import { createPrivateKey } from "node:crypto"
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { acmeKeyFrom, AcmeSession } from "../support/AcmeSession.ts"
import { startHttp01Responder } from "../support/Http01Responder.ts"
import type { Server } from "../support/Server.ts"

/** Where one client works: everything it needs to know and may write to. */
export interface Workplace {
  readonly server: Server
  /** A directory of the client's own, its home too. */
  readonly home: string
  /** The names to be certified; the first one names the files. */
  readonly names: readonly [string, ...ReadonlyArray<string>]
  /** Where the service fetches http-01 answers. */
  readonly httpPort: number
  /** The certificate the service shows as a TLS server; trusted by the client. */
  readonly trust: string
}

/** A real ACME client, driven by its command line. */
export interface Client {
  readonly name: string
  readonly command: string
  readonly issue: (at: Workplace) => Promise<void>
  readonly renew: (at: Workplace) => Promise<void>
  /** Ends the client's account at the service. */
  readonly deactivate: (at: Workplace) => Promise<void>
  /** The chain as the client keeps it, leaf first. */
  readonly chain: (at: Workplace) => string
}

/** A command that did not end with 0, or not in time. */
class CommandFailed extends Error {}

/** Runs a command to its end with nothing of our environment but PATH. */
export const runCommand = (
  command: string,
  words: ReadonlyArray<string>,
  options: {
    readonly env?: Readonly<Record<string, string>>
    readonly cwd?: string
    readonly timeoutMs?: number
  } = {}
): Promise<string> =>
  new Promise((resolve, reject) => {
    const { cwd, env, timeoutMs = 120_000 } = options
    const child = spawn(command, words, {
      ...cwd === undefined ? {} : { cwd },
      env: { PATH: process.env["PATH"], LC_ALL: "C.UTF-8", ...env },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let said = ""
    let late = false
    const timer = setTimeout(() => {
      late = true
      child.kill("SIGKILL")
    }, timeoutMs)
    child.stdout.on("data", (chunk: Buffer) => said += chunk.toString())
    child.stderr.on("data", (chunk: Buffer) => said += chunk.toString())
    child.once("error", (error) => {
      clearTimeout(timer)
      reject(error)
    })
    child.once("close", (code, signal) => {
      clearTimeout(timer)
      if (code === 0) resolve(said)
      else {
        const end = late ? `was killed after ${timeoutMs} ms` : `ended with ${code ?? signal}`
        reject(new CommandFailed(`${[command, ...words].join(" ")}\n${end}:\n${said.slice(-6000)}`))
      }
    })
  })

const contact = "ops@corp.example"

const certbotWith = (at: Workplace, ...words: ReadonlyArray<string>) => {
  const places = ["--config-dir", "config", "--work-dir", "work", "--logs-dir", "logs"]
  const all = [...words, ...places, "--server", at.server.directoryUrl, "--non-interactive"]
  return runCommand("certbot", all, { cwd: at.home, env: { HOME: at.home, REQUESTS_CA_BUNDLE: at.trust } })
}

/** certbot with its own web server; an RSA account key. */
export const certbot: Client = {
  name: "certbot",
  command: "certbot",
  issue: async (at) => {
    const http = ["--standalone", "--http-01-address", "127.0.0.1", "--http-01-port", `${at.httpPort}`]
    const names = at.names.flatMap((name) => ["-d", name])
    await certbotWith(at, "certonly", ...http, ...names, "--agree-tos", "--no-eff-email", "-m", contact)
  },
  renew: async (at) => {
    await certbotWith(at, "renew", "--force-renewal", "--no-random-sleep-on-renew")
  },
  deactivate: async (at) => {
    await certbotWith(at, "unregister")
  },
  chain: (at) => readFileSync(join(at.home, "config/live", at.names[0], "fullchain.pem"), "utf8")
}

const legoWith = (at: Workplace, ...words: ReadonlyArray<string>) => {
  const account = ["--path", "lego", "--server", at.server.directoryUrl, "--accept-tos", "--email", contact]
  const names = at.names.flatMap((name) => ["--domains", name])
  const all = [...account, ...names, "--http", "--http.port", `127.0.0.1:${at.httpPort}`, ...words]
  return runCommand("lego", all, { cwd: at.home, env: { HOME: at.home, LEGO_CA_CERTIFICATES: at.trust } })
}

/** lego with its own web server; a P-256 account key. */
export const lego: Client = {
  name: "lego",
  command: "lego",
  issue: async (at) => {
    await legoWith(at, "run")
  },
  renew: async (at) => {
    await legoWith(at, "renew", "--days", "4000", "--no-random-sleep")
  },
  // lego knows no command for it: its key file is used to say so in its place.
  deactivate: async (at) => {
    const accounts = join(at.home, "lego/accounts")
    const file = readdirSync(accounts, { recursive: true, encoding: "utf8" }).find((path) => path.endsWith(".key"))
    if (file === undefined) throw new Error("lego left no account key")
    const key = await acmeKeyFrom(createPrivateKey(readFileSync(join(accounts, file))))
    const session = await AcmeSession.open(at.server.directoryUrl, { key })
    try {
      await session.register({ onlyReturnExisting: true })
      await session.deactivate()
    } finally {
      session.close()
    }
  },
  chain: (at) => readFileSync(join(at.home, "lego/certificates", `${at.names[0]}.crt`), "utf8")
}

const systemBundle = "/etc/ssl/certs/ca-certificates.crt"

/** Puts a bundle of our own in the place of the system's for one command, in a mount namespace of that command. */
const trusting = (bundle: string, command: string, words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const user = process.getuid?.() === 0 ? [] : ["--map-root-user"]
  const script = "mount --bind \"$0\" \"$1\" && shift && exec \"$@\""
  return ["--mount", ...user, "sh", "-c", script, bundle, systemBundle, command, ...words]
}

/** Whether uacme, which knows no other bundle than the system's, can be given ours. */
export const canTrust = async (): Promise<boolean> => {
  try {
    if (!existsSync(systemBundle)) return false
    await runCommand("unshare", trusting(systemBundle, "true", []))
    return true
  } catch {
    return false
  }
}

const hook = `#!/bin/sh
case "$1/$2" in
  begin/http-01) printf %s "$5" > "$CHALLENGES/$4" ;;
  done/http-01 | failed/http-01) rm -f "$CHALLENGES/$4" ;;
  *) exit 1 ;;
esac
`

const uacmeWith = async (at: Workplace, ...words: ReadonlyArray<string>) => {
  const challenges = join(at.home, "challenges")
  mkdirSync(challenges, { recursive: true })
  const script = join(at.home, "hook.sh")
  writeFileSync(script, hook)
  chmodSync(script, 0o755)
  const all = [
    "-v",
    "-c",
    join(at.home, "uacme"),
    "-a",
    at.server.directoryUrl,
    "-y",
    "-t",
    "EC",
    "-h",
    script,
    ...words
  ]
  const options = { cwd: at.home, env: { HOME: at.home, CHALLENGES: challenges } }
  const responder = await startHttp01Responder({ directory: challenges, port: at.httpPort })
  try {
    if (at.server.baseUrl.startsWith("https:")) {
      await runCommand("unshare", trusting(at.trust, "uacme", all), options)
    } else await runCommand("uacme", all, options)
  } finally {
    await responder.stop()
  }
}

/** uacme with a hook script and a web server beside it; a P-256 account key. */
export const uacme: Client = {
  name: "uacme",
  command: "uacme",
  issue: async (at) => {
    await uacmeWith(at, "new", contact)
    await uacmeWith(at, "issue", ...at.names)
  },
  renew: (at) => uacmeWith(at, "-f", "issue", ...at.names),
  deactivate: (at) => uacmeWith(at, "deactivate"),
  chain: (at) => readFileSync(join(at.home, "uacme", at.names[0], "cert.pem"), "utf8")
}
