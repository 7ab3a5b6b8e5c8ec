import { mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Workplace } from "../Client.ts"
import { bindingOf } from "../Client.ts"
import { runCommand } from "../Command.ts"
import { responding, tokensOf } from "../Responders.ts"

const script = join(import.meta.dirname, "python-acme.py")

const run = (at: Workplace, ...words: ReadonlyArray<string>) => {
  mkdirSync(tokensOf(at), { recursive: true })
  const all = [script, at.home, at.directoryUrl, tokensOf(at), ...words]
  const env = { HOME: at.home, REQUESTS_CA_BUNDLE: at.trust, ...bindingOf(at) }
  // Debian's Python has the library, whatever other python3 there is.
  return runCommand("/usr/bin/python3", all, { cwd: at.home, env })
}

const order: Client["issue"] = (at, names) => responding(at, () => run(at, "issue", ...names))

/** The library of certbot, used as in its own example. The account key is RSA. */
export const pythonAcme: Client = {
  name: "python-acme",
  commands: ["python3-acme"],
  challenges: ["http-01"],
  issue: order,
  renew: order,
  chain: (at, [name]) => readFileSync(join(at.home, `${name}.pem`), "utf8"),
  binds: true,
  updateContact: (at) => run(at, "contact"),
  revoke: (at, [name]) => run(at, "revoke", name),
  deactivate: (at) => run(at, "deactivate")
}
