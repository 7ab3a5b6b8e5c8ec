import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Names, Workplace } from "../Client.ts"
import { contact } from "../Client.ts"
import { runCommand } from "../Command.ts"

const stateOf = (at: Workplace) => join(at.home, "acme")

/** Writes what `acmetool quickstart` asks for. JSON is also YAML, which the client reads. */
const configure = (at: Workplace) => {
  mkdirSync(join(stateOf(at), "conf"), { recursive: true })
  mkdirSync(join(at.home, "hooks"), { recursive: true })
  const challenge = {
    "http-ports": [String(at.httpPort)],
    // Otherwise the client would look up its own answer with the system's name servers, which do not know this zone.
    "http-self-test": false
  }
  const request = { provider: at.directoryUrl, challenge, key: { type: "ecdsa" } }
  writeFileSync(join(stateOf(at), "conf/target"), JSON.stringify({ request }))
  writeFileSync(join(at.home, "answers.json"), JSON.stringify({ "acme-enter-email": contact }))
}

/** Runs the client, which serves its http-01 answers itself. */
const want = async (at: Workplace, names: Names) => {
  configure(at)
  const places = ["--state", stateOf(at), "--hooks", join(at.home, "hooks")]
  const words = [...places, "--batch", "--response-file", join(at.home, "answers.json"), "want", ...names]
  await runCommand("acmetool", words, { cwd: at.home, env: { HOME: at.home, SSL_CERT_FILE: at.trust } })
}

/** acmetool, with its own web server. It has no command for an early renewal, but orders what is missing. */
export const acmetool: Client = {
  name: "acmetool",
  commands: ["acmetool"],
  challenges: ["http-01"],
  issue: want,
  renew: (at, names) => {
    for (const folder of ["certs", "live"]) rmSync(join(stateOf(at), folder), { recursive: true })
    return want(at, names)
  },
  chain: (at, _names, name) => readFileSync(join(stateOf(at), "live", name, "fullchain"), "utf8")
}
