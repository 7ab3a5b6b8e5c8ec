import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Names, Workplace } from "../Client.ts"
import { contact } from "../Client.ts"
import { runCommand } from "../Command.ts"
import { isKept, kept, once, registryEnvironment } from "../Kept.ts"
import { lacksCompiled } from "../Toolchains.ts"

const version = "0.30.6"

/** The version of Go that the module of step CLI needs. */
const goVersion = "1.25.8"

const module = `github.com/smallstep/cli/cmd/step@v${version}`

const build = once(async () => {
  const folder = await kept("step", [module], (folder) => {
    // Go compares the module and its dependencies with the digests in its checksum database.
    const env = { ...registryEnvironment(), CGO_ENABLED: "0", GOBIN: folder }
    return runCommand("go", ["install", module], { env, timeoutMs: 1_800_000 })
  })
  return join(folder, "step")
})

const file = (at: Workplace, [name]: Names, kind: string) => join(at.home, `${name}.${kind}`)

const run = async (at: Workplace, names: Names) => {
  const files = [file(at, names, "crt"), file(at, names, "key")]
  const sans = names.flatMap((name) => ["--san", name])
  const how = ["--standalone", "--http-listen", `127.0.0.1:${at.httpPort}`, "--contact", `mailto:${contact}`, "--force"]
  const words = [
    "ca",
    "certificate",
    names[0],
    ...files,
    ...sans,
    "--acme",
    at.directoryUrl,
    "--root",
    at.trust,
    ...how
  ]
  return runCommand(await build(), words, { cwd: at.home, env: { HOME: at.home, STEPPATH: join(at.home, "step") } })
}

/**
 * The client of step-ca, used with another service. It makes an account for each certificate, and renews by another
 * order.
 */
export const step: Client = {
  name: "step CLI",
  commands: [],
  challenges: ["http-01"],
  pinned: { package: "github.com/smallstep/cli", version },
  lacks: () => lacksCompiled(isKept("step", [module]), "go", goVersion),
  issue: run,
  renew: run,
  chain: (at, names) => readFileSync(file(at, names, "crt"), "utf8")
}
