import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { AcmeSession } from "../support/AcmeSession.ts"
import { freePort } from "../support/Ports.ts"
import { runCommand, startForeground } from "./Command.ts"
import type { Outcome } from "./Table.ts"

/*
 * Checks the units of deploy/systemd by systemd's own programs and by the kernel. systemd does not have to be running,
 * so no unit is started by it.
 */

const repository = resolve(import.meta.dirname, "../..")
const units = join(repository, "deploy/systemd")
const isUnit = (file: string): boolean => file.endsWith(".service")

/** Tenths of the value that `systemd-analyze security` calls exposure. A service without any restriction has 100. */
const exposed = 20

/** What must be installed for {@link playUnits}. */
export const unitCommands: ReadonlyArray<string> = ["systemd-analyze", "strace"]

const check = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(what)
}

/** Runs `use` with a directory that is removed afterwards. */
const inDirectory = async <A>(use: (directory: string) => Promise<A>): Promise<A> => {
  const directory = mkdtempSync(join(tmpdir(), "acme-units-"))
  try {
    return await use(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Returns the unit, unchanged except for the runtime's path, and a template as one of its instances. */
const copied = (unit: string, directory: string): string => {
  const file = join(directory, unit.replace("@.", "@worker."))
  writeFileSync(
    file,
    readFileSync(join(units, unit), "utf8").replaceAll("/opt/acme-svc/node_modules/.bin/node", process.execPath)
  )
  return file
}

const verifies = (unit: string) => () =>
  inDirectory(async (directory) => {
    const said = await runCommand("systemd-analyze", ["verify", "--man=no", copied(unit, directory)])
    check(!said.includes(unit.replace(/@?\.service$/, "")), said)
  })

const confines = (unit: string) => () =>
  inDirectory(async (directory) => {
    await runCommand("systemd-analyze", [
      "security",
      "--offline=true",
      "--no-pager",
      `--threshold=${exposed}`,
      copied(unit, directory)
    ])
  })

const valuesOf = (unit: string, key: string): ReadonlyArray<string> =>
  new RegExp(`^${key}=(.*)$`, "m").exec(readFileSync(join(units, unit), "utf8"))?.[1]?.split(" ") ?? []

/** Returns the system calls of a group, including those of the groups in it. */
const callsOf = async (group: string): Promise<ReadonlyArray<string>> => {
  const [, ...lines] = (await runCommand("systemd-analyze", ["syscall-filter", "--no-pager", group])).split("\n")
  const entries = lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"))
  return (await Promise.all(entries.map((one) => one.startsWith("@") ? callsOf(one) : [one]))).flat()
}

const configuration = (directory: string): string =>
  [
    "[challenge]",
    "bypass = true",
    "[profiles.default]",
    "[profiles.script.signer]",
    "backend = \"custom\"",
    "[profiles.script.signer.custom]",
    `script_path = "${join(repository, "docs/recipes/sign-with-openssl.sh")}"`,
    `args = ["${directory}"]`,
    "timeout_ms = 20000",
    ""
  ].join("\n")

/**
 * Returns every system call that the service makes while it starts, signs in both ways, reloads and ends, with its
 * arguments.
 */
const traced = (): Promise<ReadonlyArray<string>> =>
  inDirectory(async (directory) => {
    const [port, trace] = [await freePort(), join(directory, "trace")]
    writeFileSync(join(directory, "config.toml"), configuration(directory))
    // With -D, the service is the child that strace observes.
    const words = [
      "-D",
      "-f",
      "-qq",
      "--signal=none",
      "-o",
      trace,
      process.execPath,
      join(repository, "dist/main.js"),
      "serve"
    ]
    const serving = await startForeground("strace", words, {
      cwd: directory,
      env: {
        ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
        ACME_SVC_SERVER__BASE_URL: `http://127.0.0.1:${port}`
      },
      ready: /acme-svc is ready/
    })
    try {
      for (const profile of ["default", "script"]) {
        const session = await AcmeSession.open(`http://127.0.0.1:${port}/profile/${profile}/directory`)
        await session.register()
        await session.issue([`${profile}.example`], new Map())
        session.close()
      }
      serving.signal("SIGHUP")
      await serving.waitFor(/server_config_reloaded/)
    } finally {
      await serving.stop()
    }
    return readFileSync(trace, "utf8").split("\n")
  })

/** Returns whether a process may be traced here. */
const canTrace = (): Promise<boolean> => runCommand("strace", ["-o", "/dev/null", "true"]).then(() => true, () => false)

const lets = async (): Promise<void> => {
  const calls = await traced()
  const [unit = ""] = readdirSync(units).filter(isUnit)
  const allowed = new Set((await Promise.all(valuesOf(unit, "SystemCallFilter").map(callsOf))).flat())
  const made = new Set(calls.flatMap((line) => /^\d+ +(\w+)\(/.exec(line)?.[1] ?? []))
  check(made.has("execve") && made.has("epoll_ctl"), `nothing was traced: ${[...made].join(", ")}`)
  const refused = [...made].filter((call) => !allowed.has(call))
  check(refused.length === 0, `the unit forbids what the service calls: ${refused.join(", ")}`)
  const families = new Set(valuesOf(unit, "RestrictAddressFamilies"))
  const opened = new Set(calls.flatMap((line) => / socket\((AF_\w+),/.exec(line)?.[1] ?? []))
  const strange = [...opened].filter((family) => !families.has(family))
  check(opened.has("AF_INET") && strange.length === 0, `it opens sockets of ${[...opened].join(", ")}`)
}

/** Lets systemd check the units, and compares them with the system calls of the service. */
export const playUnits = async (say: (text: string) => void): Promise<ReadonlyArray<Outcome>> => {
  const plays = readdirSync(units).filter(isUnit).flatMap((unit) => [
    { name: `${unit} is sound`, play: verifies(unit) },
    { name: `${unit} confines`, play: confines(unit) }
  ])
  if (await canTrace()) plays.push({ name: "the service is let do what it does", play: lets })
  else say("what the service asks of the kernel is not held against the units: it may not be traced here")
  const outcomes: Array<Outcome> = []
  for (const { name: scenario, play } of plays) {
    const begun = performance.now()
    const error = await play().then(() => undefined, (cause: unknown) => String(cause))
    const outcome = {
      database: "SQLite",
      client: "systemd",
      challenge: "",
      scenario,
      milliseconds: performance.now() - begun
    }
    outcomes.push(error === undefined ? outcome : { ...outcome, error })
    if (error !== undefined) say(`--- ${scenario}\n${error}\n---`)
  }
  return outcomes
}
