import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Workplace } from "../Client.ts"
import { runCommand } from "../Command.ts"
import { responding, tokensOf } from "../Responders.ts"

const script = join(import.meta.dirname, "ruby-acme-client.rb")

const run = (at: Workplace, ...words: ReadonlyArray<string>) =>
  runCommand("ruby", [script, at.home, at.directoryUrl, at.trust, ...words], { cwd: at.home, env: { HOME: at.home } })

const order: Client["issue"] = (at, names) => {
  const place = at.challenge === "http-01" ? tokensOf(at) : at.nameServer.script
  return responding(at, () => run(at, "issue", at.challenge, place, ...names))
}

/**
 * Ruby's acme-client, used as in its README. The account key is P-256, and CSRs have the wrong version 2 and a common
 * name.
 */
export const rubyAcmeClient: Client = {
  name: "ruby-acme-client",
  commands: ["ruby", "ruby-acme-client"],
  challenges: ["http-01", "dns-01"],
  issue: order,
  renew: order,
  chain: (at, [name]) => readFileSync(join(at.home, `${name}.pem`), "utf8"),
  updateContact: (at) => run(at, "contact"),
  rollover: (at) => run(at, "rollover"),
  revoke: (at, [name]) => run(at, "revoke", name),
  deactivate: (at) => run(at, "deactivate")
}
