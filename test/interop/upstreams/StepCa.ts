import { randomBytes } from "node:crypto"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "../../support/Ports.ts"
import { runCommand, startForeground } from "../Command.ts"
import { buildInto, keptAt } from "./Kept.ts"
import type { Upstream } from "./Upstream.ts"

const version = "v0.30.2"
/** The newest suitable version of the program that writes the configuration by `step ca init`. */
const cliVersion = "v0.30.6"
const folder = keptAt("step", version)
const [server, cli] = [join(folder, "step-ca"), join(folder, "step")]

/** Smallstep's step-ca, with its provisioner for ACME. */
export const stepCa: Upstream = {
  name: "step-ca",
  version,
  isOfGate: false,
  isReference: false,
  strategy: "dns01",
  takesReasons: true,
  lists: "harmful",
  installer: "go",
  isThere: () => existsSync(server) && existsSync(cli),
  install: () =>
    buildInto(
      folder,
      `github.com/smallstep/certificates/cmd/step-ca@${version}`,
      `github.com/smallstep/cli/cmd/step@${cliVersion}`
    ),
  start: async (resolver) => {
    const directory = mkdtempSync(join(tmpdir(), "acme-step-"))
    const port = await freePort()
    const password = join(directory, "password")
    writeFileSync(password, randomBytes(24).toString("hex"))
    const env = { STEPPATH: directory, HOME: directory }
    const address = `127.0.0.1:${port}`
    const naming = ["--name", "Upstream", "--dns", "localhost", "--address", address, "--provisioner", "admin"]
    const init = ["ca", "init", "--deployment-type", "standalone", "--acme", "--password-file", password, ...naming]
    await runCommand(cli, init, { cwd: directory, env })
    const words = [join(directory, "config", "ca.json"), "--password-file", password, "--resolver", resolver]
    const running = await startForeground(server, words, { cwd: directory, env, ready: /Serving HTTPS on/ })
    return {
      host: "127.0.0.1",
      port,
      directoryFor: () => Promise.resolve("/acme/acme/directory"),
      stop: async () => {
        await running.stop()
        rmSync(directory, { recursive: true, force: true })
      }
    }
  }
}
