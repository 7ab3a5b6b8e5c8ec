import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Workplace } from "../Client.ts"
import { contact, newContact, scriptIn } from "../Client.ts"
import { runCommand } from "../Command.ts"
import { pythonCommands, pythonPackageVersion, pythonPrograms } from "./PythonPackages.ts"

const run = async (program: Program, at: Workplace, ...words: ReadonlyArray<string>) => {
  const [command, ...first] = typeof program === "function" ? await program() : program
  const places = ["--config-dir", "config", "--work-dir", "work", "--logs-dir", "logs"]
  const all = [...first, ...words, ...places, "--server", at.directoryUrl, "--non-interactive"]
  return runCommand(command, all, { cwd: at.home, env: { HOME: at.home, REQUESTS_CA_BUNDLE: at.trust } })
}

/** A program and its fixed arguments. */
type Started = readonly [program: string, ...words: ReadonlyArray<string>]

/** The program, or how to find the program once it is installed. */
type Program = Started | (() => Promise<Started>)

const how = (at: Workplace): ReadonlyArray<string> => {
  if (at.challenge === "http-01") {
    return ["--standalone", "--http-01-address", "127.0.0.1", "--http-01-port", `${at.httpPort}`]
  }
  const record = "\"_acme-challenge.$CERTBOT_DOMAIN\" \"$CERTBOT_VALIDATION\""
  const auth = scriptIn(at.home, "auth.sh", `${at.nameServer.script} add ${record}`)
  const clean = scriptIn(at.home, "clean.sh", `${at.nameServer.script} delete ${record}`)
  return ["--manual", "--preferred-challenges", "dns", "--manual-auth-hook", auth, "--manual-cleanup-hook", clean]
}

const live = (at: Workplace, name: string, file: string) => join(at.home, "config/live", name, file)

/**
 * Returns a client that is certbot, started by `program`. Its own web server, or hooks that update the zone, answer the
 * challenges. The account key is RSA.
 */
export const certbotOf = (name: string, program: Program): Client => ({
  name,
  commands: ["certbot"],
  challenges: ["http-01", "dns-01"],
  issue: (at, names) => {
    const domains = names.flatMap((name) => ["-d", name])
    const { credential, kind, preferredChain } = at
    const chosen = preferredChain === undefined ? [] : ["--preferred-chain", preferredChain]
    const profile = kind === undefined ? [] : ["--required-profile", kind]
    const bound = credential === undefined ? [] : ["--eab-kid", credential.kid, "--eab-hmac-key", credential.hmacKey]
    return run(
      program,
      at,
      "certonly",
      ...how(at),
      ...domains,
      ...bound,
      ...profile,
      ...chosen,
      "--agree-tos",
      "--no-eff-email",
      "-m",
      contact
    )
  },
  renew: (at, [name]) =>
    run(program, at, "renew", "--cert-name", name, "--force-renewal", "--no-random-sleep-on-renew"),
  chain: (at, [name]) => readFileSync(live(at, name, "fullchain.pem"), "utf8"),
  binds: true,
  updateContact: (at) => run(program, at, "update_account", "-m", newContact, "--no-eff-email"),
  revoke: (at, [name]) =>
    run(program, at, "revoke", "--cert-path", live(at, name, "cert.pem"), "--no-delete-after-revoke"),
  revokeByItsKey: (at, [name]) => {
    const files = ["--cert-path", live(at, name, "cert.pem"), "--key-path", live(at, name, "privkey.pem")]
    return run(program, at, "revoke", ...files, "--no-delete-after-revoke", "--reason", "keycompromise")
  },
  deactivate: (at) => run(program, at, "unregister")
})

/** certbot in Debian's version. */
export const certbot = certbotOf("certbot", ["certbot"])

/** The same version, with requests in the form of certbot 1. Debian no longer has a package of certbot 1. */
export const certbot1: Client = {
  ...certbotOf("certbot 1", ["/usr/bin/python3", join(import.meta.dirname, "certbot-1.py")]),
  challenges: ["http-01"]
}

const ownStart = "import sys; from certbot.main import main; sys.exit(main())"

const programOfPypi = async (): Promise<Started> => [join(await pythonPrograms(), "python"), "-c", ownStart]

/** certbot in PyPI's version, which requests renewal information at each renewal. */
export const certbot5: Client = {
  ...certbotOf("certbot 5", programOfPypi),
  commands: pythonCommands,
  pinned: { package: "certbot of PyPI", version: pythonPackageVersion("certbot") },
  renewWhenTold: (at, [name]) => run(programOfPypi, at, "renew", "--cert-name", name, "--no-random-sleep-on-renew")
}
