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
  /** Where the service makes tls-alpn-01 handshakes. */
  readonly alpnPort: number
  /** Folder of the zone: `<name>/<value>` is a TXT record. */
  readonly zone: string
  /** The name server, for clients that look at the zone themselves. */
  readonly nameServer: string
  /** The certificate the service shows as a TLS server; trusted by the client. */
  readonly trust: string
}

/** A real ACME client, driven by its command line. */
export interface Client {
  readonly name: string
  readonly command: string
  readonly challenge: "http-01" | "dns-01" | "tls-alpn-01"
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

const certbotIssue = async (at: Workplace, ...words: ReadonlyArray<string>) => {
  const names = at.names.flatMap((name) => ["-d", name])
  await certbotWith(at, "certonly", ...words, ...names, "--agree-tos", "--no-eff-email", "-m", contact)
}

/** Writes a script for a client to call. */
const scriptIn = (at: Workplace, name: string, ...lines: ReadonlyArray<string>): string => {
  const path = join(at.home, name)
  writeFileSync(path, ["#!/bin/sh", ...lines, ""].join("\n"))
  chmodSync(path, 0o755)
  return path
}

/** Puts a TXT record into the zone, and takes it out again. */
const addTxt = (zone: string, name: string, value: string) =>
  `mkdir -p "${zone}/${name}" && : > "${zone}/${name}/${value}"`
const removeTxt = (zone: string, name: string, value: string) => `rm -f "${zone}/${name}/${value}"`

/** certbot with its own web server; an RSA account key. */
export const certbot: Client = {
  name: "certbot",
  command: "certbot",
  challenge: "http-01",
  issue: (at) => certbotIssue(at, "--standalone", "--http-01-address", "127.0.0.1", "--http-01-port", `${at.httpPort}`),
  renew: async (at) => {
    await certbotWith(at, "renew", "--force-renewal", "--no-random-sleep-on-renew")
  },
  deactivate: async (at) => {
    await certbotWith(at, "unregister")
  },
  chain: (at) => readFileSync(join(at.home, "config/live", at.names[0], "fullchain.pem"), "utf8")
}

/** certbot with hooks that write the zone. */
export const certbotDns: Client = {
  ...certbot,
  name: "certbot dns-01",
  challenge: "dns-01",
  issue: (at) => {
    const [name, value] = ["_acme-challenge.$CERTBOT_DOMAIN", "$CERTBOT_VALIDATION"]
    const auth = scriptIn(at, "auth.sh", addTxt(at.zone, name, value))
    const clean = scriptIn(at, "clean.sh", removeTxt(at.zone, name, value))
    const hooks = ["--manual-auth-hook", auth, "--manual-cleanup-hook", clean]
    return certbotIssue(at, "--manual", "--preferred-challenges", "dns", ...hooks)
  }
}

const legoWith = (at: Workplace, how: ReadonlyArray<string>, ...words: ReadonlyArray<string>) => {
  const account = ["--path", "lego", "--server", at.server.directoryUrl, "--accept-tos", "--email", contact]
  const names = at.names.flatMap((name) => ["--domains", name])
  // Between two names of one zone it would wait for a minute.
  const exec = { EXEC_PATH: join(at.home, "zone.sh"), EXEC_SEQUENCE_INTERVAL: "1", EXEC_POLLING_INTERVAL: "1" }
  const env = { HOME: at.home, LEGO_CA_CERTIFICATES: at.trust, ...exec }
  return runCommand("lego", [...account, ...names, ...how, ...words], { cwd: at.home, env })
}

const legoBy = (how: (at: Workplace) => ReadonlyArray<string>): Pick<Client, "issue" | "renew"> => ({
  issue: async (at) => {
    await legoWith(at, how(at), "run")
  },
  renew: async (at) => {
    await legoWith(at, how(at), "renew", "--days", "4000", "--no-random-sleep")
  }
})

/** lego with its own web server; a P-256 account key. */
export const lego: Client = {
  name: "lego",
  command: "lego",
  challenge: "http-01",
  ...legoBy((at) => ["--http", "--http.port", `127.0.0.1:${at.httpPort}`]),
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

/** lego with its own TLS server. */
export const legoAlpn: Client = {
  ...lego,
  name: "lego tls-alpn-01",
  challenge: "tls-alpn-01",
  ...legoBy((at) => ["--tls", "--tls.port", `127.0.0.1:${at.alpnPort}`])
}

/** lego with a script that writes the zone. */
export const legoDns: Client = {
  ...lego,
  name: "lego dns-01",
  challenge: "dns-01",
  ...legoBy((at) => {
    scriptIn(
      at,
      "zone.sh",
      `case "$1" in`,
      `present) ${addTxt(at.zone, "${2%.}", "$3")} ;;`,
      `cleanup) ${removeTxt(at.zone, "${2%.}", "$3")} ;;`,
      "esac"
    )
    return ["--dns", "exec", "--dns.disable-cp", "--dns.resolvers", at.nameServer]
  })
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

/** uacme calls its hook with what is to be done, the type, the name, the token and the text to show. */
const hookFor = (at: Workplace, challenge: Client["challenge"]): string => {
  const [show, hide] = challenge === "dns-01"
    ? [addTxt(at.zone, "_acme-challenge.$3", "$5"), removeTxt(at.zone, "_acme-challenge.$3", "$5")]
    : [`printf %s "$5" > "$CHALLENGES/$4"`, `rm -f "$CHALLENGES/$4"`]
  return scriptIn(
    at,
    "hook.sh",
    `case "$1/$2" in`,
    `begin/${challenge}) ${show} ;;`,
    `done/${challenge} | failed/${challenge}) ${hide} ;;`,
    "*) exit 1 ;;",
    "esac"
  )
}

const uacmeWith = async (at: Workplace, challenge: Client["challenge"], ...words: ReadonlyArray<string>) => {
  const challenges = join(at.home, "challenges")
  mkdirSync(challenges, { recursive: true })
  const script = hookFor(at, challenge)
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

const uacmeBy = (challenge: Client["challenge"]): Pick<Client, "challenge" | "issue" | "renew" | "deactivate"> => ({
  challenge,
  issue: async (at) => {
    await uacmeWith(at, challenge, "new", contact)
    await uacmeWith(at, challenge, "issue", ...at.names)
  },
  renew: (at) => uacmeWith(at, challenge, "-f", "issue", ...at.names),
  deactivate: (at) => uacmeWith(at, challenge, "deactivate")
})

/** uacme with a hook script and a web server beside it; a P-256 account key. */
export const uacme: Client = {
  name: "uacme",
  command: "uacme",
  ...uacmeBy("http-01"),
  chain: (at) => readFileSync(join(at.home, "uacme", at.names[0], "cert.pem"), "utf8")
}

/** uacme with a hook script that writes the zone. */
export const uacmeDns: Client = { ...uacme, name: "uacme dns-01", ...uacmeBy("dns-01") }
