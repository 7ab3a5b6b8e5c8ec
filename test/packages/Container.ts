import { randomBytes } from "node:crypto"
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync
} from "node:fs"
import { join, relative, resolve } from "node:path"
import { runCommand, startForeground } from "../interop/Command.ts"
import { startWorld } from "../support/Ground.ts"
import { freePort } from "../support/Ports.ts"
import { minimalConfig } from "../support/Server.ts"
import { certify } from "./Certified.ts"
import type { ImageConfig } from "./Image.ts"
import { buildImage, imageCommands, inspectImage, makeBase, openStore, unpackImage } from "./Image.ts"
import type { Installation, Site } from "./Installation.ts"
import { check } from "./Installation.ts"
import { listsLibraries, listsRuntime, readBom } from "./Sbom.ts"

/*
 * Builds the image, inspects it, and runs it as docs/start/containers.md says. No registry is needed, and no container
 * engine either, since kernels may lack the controllers that engines need. The image runs in a mount namespace.
 */

const repository = resolve(import.meta.dirname, "../..")

/** The id of the user as whom the service runs. */
const nobody = 65_532

/**
 * Runs a container with the restrictions that engines apply to a read-only container without capabilities and with
 * `no-new-privileges`. The process id on this machine is recorded for signals.
 */
const confine = `
root=$1 volume=$2 data=$3 settings=$4; shift 4
read -r pid _ < /proc/self/stat
echo "$pid" > "$settings.pid"
mount --bind "$root" "$root"
mount --bind "$data" "$root$volume"
mount --bind "$settings" "$root/etc/acme-svc"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -o remount,bind,ro "$root"
exec setpriv --clear-groups --no-new-privs --bounding-set=-all,+dac_read_search,+setgid,+setuid,+sys_chroot \\
  unshare --root="$root" --wd="$volume" --setgid="${nobody}" --setuid="${nobody}" "$@"
`

/** A container, with its image and what is mounted into it. */
interface Container {
  readonly root: string
  readonly config: ImageConfig
  readonly data: string
  readonly settings: string
}

const confined = (
  { config, data, root, settings }: Container,
  words: ReadonlyArray<string>,
  variables: Readonly<Record<string, string>> = {},
  first: ReadonlyArray<string> = []
) => {
  const own = Object.fromEntries(config.Env.map((line) => [line.split("=", 1)[0], line.slice(line.indexOf("=") + 1)]))
  return {
    words: [...first, "--mount", "sh", "-euc", confine, "sh", root, config.WorkingDir, data, settings, ...words],
    env: { ...own, ...variables }
  }
}

const run = (container: Container, line: ReadonlyArray<string>, variables?: Readonly<Record<string, string>>) => {
  const { env, words } = confined(container, line, variables)
  return runCommand("unshare", words, { env })
}

/** Makes the folders on which container engines mount file systems, and a volume with the owner that the image gives it. */
const containerOf = (root: string, config: ImageConfig, directory: string): Container => {
  const [data, settings] = [join(directory, "data"), join(directory, "settings")]
  for (const folder of [join(root, "proc"), join(root, "dev"), data, settings]) mkdirSync(folder)
  const { gid, mode, uid } = statSync(join(root, config.WorkingDir))
  chownSync(data, uid, gid)
  chmodSync(data, mode)
  writeFileSync(join(settings, "config.toml"), minimalConfig)
  return { root, config, data, settings }
}

const looksRight = (config: ImageConfig, version: string): void => {
  const { Cmd, Entrypoint, ExposedPorts, Healthcheck, Labels, StopSignal, User, Volumes, WorkingDir } = config
  const said = JSON.stringify({
    User,
    StopSignal,
    run: [...Entrypoint, ...Cmd],
    health: Healthcheck.Test,
    ports: Object.keys(ExposedPorts).sort(),
    volumes: Object.keys(Volumes),
    WorkingDir,
    labels: ["title", "version", "licenses"].map((label) => Labels[`org.opencontainers.image.${label}`])
  })
  const expected = JSON.stringify({
    User: `${nobody}:${nobody}`,
    StopSignal: "SIGTERM",
    run: ["/usr/local/bin/acme-svc", "serve"],
    health: ["CMD", "/usr/local/bin/acme-svc", "health"],
    ports: ["3000/tcp", "3001/tcp", "3002/tcp"],
    volumes: ["/var/lib/acme-svc"],
    WorkingDir: "/var/lib/acme-svc",
    labels: ["acme-svc", version, "MIT"]
  })
  check(said === expected, `the image says ${said}, and not ${expected}`)
}

/** What an image may contain in addition to the service itself. */
const belongs = new RegExp(
  `^(?:${
    [
      "etc/(?:group|passwd|nsswitch\\.conf|os-release)",
      "usr/local/bin/(?:node|acme-svc)",
      "(?:usr/)?lib(?:64)?/.*\\.so\\.\\d+",
      "var/lib/dpkg/status\\.d/lib[^/]+",
      "usr/share/doc/lib[^/]+/copyright",
      "usr/local/share/doc/node/LICENSE"
    ].join("|")
  })$`
)

const service = "opt/acme-svc/"

const filesOf = (root: string): ReadonlyArray<string> =>
  readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map(({ name, parentPath }) => relative(root, join(parentPath, name)))

const holdsNothingElse = (root: string): void => {
  const files = filesOf(root)
  const strange = files.filter((file) => !file.startsWith(service) && !belongs.test(file))
  check(strange.length === 0, `the image holds ${strange.join(", ")}`)
  const libraries = files.filter((file) => file.includes(".so."))
  check(files.includes(`${service}dist/site/index.html`), "the image does not hold the documents")
  check(libraries.length === 7, `the image holds the libraries ${libraries.join(", ")}`)
  const drivers = files.filter((file) => file.endsWith(".node"))
  check(drivers.length === 2, `the image holds the drivers ${drivers.join(", ")}`)
  const above = files.filter((file) => file.startsWith(service)).map((file) => file.slice(service.length).split("/")[0])
  const parts = [...new Set(above)].sort().join(" ")
  check(!/\b(?:src|test|tsconfig\.json|\.npmrc)\b/.test(parts), `the service's folder holds ${parts}`)
  const compiled = files.filter((file) => file.startsWith(`${service}dist/compiled/`))
  const readable = compiled.filter((file) => (statSync(join(root, file)).mode & 0o004) !== 0)
  check(readable.length === 1, `anybody can read the compiled code ${readable.join(", ")} of ${compiled.join(", ")}`)
}

/**
 * Checks that the image's list contains everything that can run: the service's packages, the runtime, and each library.
 */
const listsEverything = async (root: string): Promise<void> => {
  const bom = await readBom(join(root, service, "dist/sbom.cdx.json"))
  listsRuntime(bom, process.arch)
  listsLibraries(bom, root, filesOf(root).filter((file) => file.includes(".so.")))
}

const leavesNoTrace = async (root: string, recorded: string, secret: string): Promise<void> => {
  check(!recorded.includes(secret), "the records of the image have what npm was told in secret")
  const found = await runCommand("sh", [
    "-c",
    "grep --recursive --files-with-matches -e \"$1\" \"$0\" || test $? = 1",
    root,
    secret
  ])
  check(found === "", `what npm was told in secret stands in ${found}`)
}

/** Makes the started program the first process of a container. */
const asFirst = ["--pid", "--fork", "--kill-child"]

/** What a process of the container may do, as reported by the container's own runtime. */
const probe = `
const { readFileSync, writeFileSync } = require("node:fs")
const status = readFileSync("/proc/self/status", "utf8")
const line = (name) => status.match(new RegExp("^" + name + ":(.*)$", "m"))[1].trim()
const writes = (file) => { try { writeFileSync(file, ""); return "written" } catch ({ code }) { return code } }
process.stdout.write([process.getuid(), line("Groups"), line("CapEff"), line("NoNewPrivs"),
  ...["/tmp/x", "/opt/acme-svc/x", "/var/lib/acme-svc/x"].map(writes)].join(" "))
`

const isConfined = async (container: Container): Promise<void> => {
  const said = await run(container, ["/usr/local/bin/node", "--eval", probe])
  const expected = `${nobody}  0000000000000000 1 EROFS EROFS written`
  check(said === expected, `a process of the container says ${said}, and not ${expected}`)
}

const serves = async (container: Container, { directory, step }: Site): Promise<void> => {
  const { config, data, settings } = container
  const world = await startWorld()
  try {
    const port = await freePort()
    const variables = {
      ...world.env,
      ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
      ACME_SVC_SERVER__BASE_URL: `http://127.0.0.1:${port}`,
      ACME_SVC_CHALLENGE__ALLOW_LOOPBACK: "true"
    }
    const [, ...health] = config.Healthcheck.Test
    const { env, words } = confined(container, [...config.Entrypoint, ...config.Cmd], variables, asFirst)
    const serving = await step("serves", () => startForeground("unshare", words, { env, ready: /acme-svc is ready/ }))
    // The commands of later steps record their own process ids.
    const pid = Number(readFileSync(`${settings}.pid`, "utf8"))
    try {
      await step("is the first process of its container", async () => {
        const status = readFileSync(`/proc/${pid}/status`, "utf8")
        check(/^NSpid:\t\d+\t1$/m.test(status) && /^Uid:\t65532\t/m.test(status), status)
      })
      await step(
        "issues a certificate",
        () => certify(`http://127.0.0.1:${port}`, world, directory, "www.corp.example")
      )
      await step("is healthy by its own check", () => run(container, health, variables))
      await step("drains on SIGTERM", async () => {
        process.kill(pid, config.StopSignal === "SIGTERM" ? "SIGTERM" : "SIGKILL")
        const end = await serving.ended()
        check(end === "ended with 0", end)
        check(serving.count(/server_shutdown_completed/) === 1, "it did not say that it has shut down")
        check(existsSync(join(data, "sqlite.db")), "its database is not on the volume")
      })
    } finally {
      await serving.stop()
    }
  } finally {
    await world.stop()
  }
}

const play = async (site: Site): Promise<void> => {
  const { directory, say, step } = site
  const { version }: { readonly version: string } = JSON.parse(readFileSync(join(repository, "package.json"), "utf8"))
  const secret = randomBytes(16).toString("hex")
  const store = openStore(directory)
  await step("has what it is built on", () => makeBase(store, directory))
  const name = await step("builds", () => buildImage(store, directory, { secret, version }))
  const { config, text } = await inspectImage(store, name)
  await step("says how it is run", async () => looksRight(config, version))
  const root = await unpackImage(store, name)
  const [size = ""] = (await runCommand("du", ["--summarize", "--block-size=1M", root])).split("\t")
  say(`container image: ${size} MiB`)
  await step("holds the service, its runtime and its libraries", async () => holdsNothingElse(root))
  await step("lists its runtime and its libraries", () => listsEverything(root))
  await step("tells nothing of the registry", () => leavesNoTrace(root, text, secret))
  const container = containerOf(root, config, directory)
  await step("runs as nobody on a read-only root", () => isConfined(container))
  await serves(container, site)
}

/** `deploy/container/Containerfile`. */
export const container: Installation = { name: "container image", commands: [...imageCommands, "openssl"], play }
