import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Client } from "../Client.ts"
import { runCommand } from "../Command.ts"
import { responding, tokensOf } from "../Responders.ts"

const script = join(import.meta.dirname, "root-acme.mjs")

const order: Client["issue"] = (at, names) =>
  responding(at, () =>
    runCommand(process.execPath, [script, at.home, at.directoryUrl, tokensOf(at), ...names], {
      cwd: at.home,
      env: { HOME: at.home, NODE_EXTRA_CA_CERTS: at.trust }
    }))

/**
 * The library of Greenlock. While an order is `processing`, the library sends finalize again and fails, and so it needs
 * an answer that waits for the certificate.
 */
export const rootAcme: Client = {
  name: "root-acme",
  commands: [],
  challenges: ["http-01"],
  needsWaits: true,
  issue: order,
  renew: order,
  chain: (at, [name]) => readFileSync(join(at.home, `${name}.pem`), "utf8")
}
