import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Workplace } from "../Client.ts"
import { contact, newContact, scriptIn } from "../Client.ts"
import { runCommand, runTrusting, startForeground } from "../Command.ts"
import { responding, tokensOf } from "../Responders.ts"

const socketOf = (at: Workplace) => join(at.home, "ualpn.sock")

/** Writes the hook, which uacme calls with the action, the type, the name, the token and the text to publish. */
const hookFor = (at: Workplace): string => {
  const tell = (words: string) => `printf '%s\\n' "${words}" | ualpn -s ${socketOf(at)} | grep -q '^OK'`
  const [show, hide] = {
    "http-01": [`printf %s "$5" > ${tokensOf(at)}/"$4"`, `rm -f ${tokensOf(at)}/"$4"`],
    "dns-01": ["add", "delete"].map((verb) => `${at.nameServer.script} ${verb} "_acme-challenge.$3" "$5"`),
    "tls-alpn-01": [tell("auth $3 $5"), tell("unauth $3")]
  }[at.challenge]
  return scriptIn(
    at.home,
    "hook.sh",
    `case "$1/$2" in`,
    `begin/${at.challenge}) ${show} ;;`,
    `done/${at.challenge} | failed/${at.challenge}) ${hide} ;;`,
    "*) exit 1 ;;",
    "esac"
  )
}

const run = (at: Workplace, ...words: ReadonlyArray<string>) => {
  const all = ["-v", "-c", join(at.home, "uacme"), "-a", at.directoryUrl, "-y", "-t", "EC", "-h", hookFor(at), ...words]
  const options = { cwd: at.home, env: { HOME: at.home } }
  return at.server.baseUrl.startsWith("https:")
    ? runTrusting(at.trust, "uacme", all, options)
    : runCommand("uacme", all, options)
}

/**
 * Runs the responder of uacme. It must be told a server for connections that are not validations. In these scenarios
 * there are none.
 */
const withUalpn = async (at: Workplace, use: () => Promise<unknown>) => {
  const places = ["-s", socketOf(at), "-p", join(at.home, "ualpn.pid")]
  const ports = ["-b", `127.0.0.1@${at.alpnPort}`, "-c", `127.0.0.1@${at.server.port}`]
  const ualpn = await startForeground("ualpn", ["-v", "-v", "-n", "1", ...places, ...ports], {
    ready: /new worker starting/
  })
  try {
    await use()
  } finally {
    await ualpn.stop()
  }
}

const order = (at: Workplace, ...words: ReadonlyArray<string>) =>
  at.challenge === "tls-alpn-01" ? withUalpn(at, () => run(at, ...words)) : responding(at, () => run(at, ...words))

const keyFile = (at: Workplace) => join(at.home, "uacme/private/key.pem")

const certificate = (at: Workplace, name: string) => join(at.home, "uacme", name, "cert.pem")

/**
 * uacme. A hook answers the challenges, except tls-alpn-01, which its own responder ualpn answers. The account key is
 * P-256.
 */
export const uacme: Client = {
  name: "uacme",
  commands: ["uacme", "ualpn"],
  challenges: ["http-01", "dns-01", "tls-alpn-01"],
  issue: async (at, names) => {
    const { credential } = at
    const bound = credential === undefined ? [] : ["-e", `${credential.kid}:${credential.hmacKey}`]
    if (!existsSync(keyFile(at))) await run(at, ...bound, "new", contact)
    await order(at, "issue", ...names)
  },
  renew: (at, names) => order(at, "-f", "issue", ...names),
  chain: (at, [name]) => readFileSync(certificate(at, name), "utf8"),
  binds: true,
  updateContact: (at) => run(at, "update", newContact),
  revoke: (at, [name]) => run(at, "-r", "4", "revoke", certificate(at, name)),
  revokeByItsKey: (at, [name]) =>
    run(at, "-r", "1", "revoke", certificate(at, name), join(at.home, "uacme/private", name, "key.pem")),
  rollover: (at) => run(at, "newkey"),
  deactivate: (at) => run(at, "deactivate")
}
