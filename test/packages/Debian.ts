import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { join, resolve } from "node:path"
import { runCommand } from "../interop/Command.ts"
import { buildEarlier, NoEarlierBuild } from "../support/EarlierBuild.ts"
import { playLife } from "./DebianLife.ts"
import { playRoles } from "./DebianRoles.ts"
import type { Installation, Site } from "./Installation.ts"
import { check } from "./Installation.ts"
import { debianLines } from "./Lines.ts"
import type { Machine } from "./Machine.ts"
import { bootMachine } from "./Machine.ts"
import { mebibytes } from "./Measure.ts"
import { listsRuntime, readBom } from "./Sbom.ts"

/*
 * Builds the Debian package, checks it with lintian, and installs, upgrades, removes and purges it in a minimal Debian
 * that systemd has booted. `DebianLife.ts` tests what happens to a service that runs there.
 */

const repository = resolve(import.meta.dirname, "../..")

/** Debian's name of the architecture of this machine. */
export const native = process.arch === "arm64" ? "arm64" : "amd64"

/** The other architecture, and the ELF number of each. */
const foreign = native === "arm64" ? "amd64" : "arm64"
const machines = { amd64: 0x3e, arm64: 0xb7 } as const

interface Made {
  readonly architecture: string
  readonly revision: number
  /** The folder of the built sources, by default this clone. */
  readonly of?: string
  readonly surroundings?: string
}

/** Makes a package with the program of `npm run deb`, quickly and in different surroundings, and returns the file. */
export const buildPackage = async (
  out: string,
  { architecture, of = repository, revision, surroundings = "umask 022; export TZ=UTC" }: Made
): Promise<string> => {
  const words = `--built --arch ${architecture} --revision ${revision} --compression gzip --out ${out}`
  const env = Object.fromEntries(Object.entries(process.env).map(([name, value]) => [name, value ?? ""]))
  const line = `${surroundings}; exec "$0" tools/packaging/deb.ts ${words}`
  await runCommand("sh", ["-c", line, process.execPath], { cwd: of, env })
  const [file, ...others] = readdirSync(out).filter((name) => name.includes(`-${revision}_${architecture}`))
  if (file === undefined || others.length > 0) throw new Error(`made ${readdirSync(out).join(" ")}`)
  return join(out, file)
}

/**
 * Makes an older package from the last commit that lacks a migration, with the present program. If the history is
 * too short for that, makes the package from these sources, and then an upgrade migrates nothing.
 */
const buildOlder = async (out: string, say: Site["say"]): Promise<string> => {
  const made = { architecture: native, revision: 0, surroundings: "export SOURCE_DATE_EPOCH=0" }
  try {
    const { commit, folder, lacks } = await buildEarlier()
    for (const part of ["tools", "deploy", "docs/operate/service.md", "src/surfaces/cli/ManPage.ts"]) {
      cpSync(join(repository, part), join(folder, part), { recursive: true })
    }
    // That commit has the table of commands in Cli.ts, but the present packaging needs a separate file for the table.
    const table = join(folder, "src/app/Commands.ts")
    if (!existsSync(table)) writeFileSync(table, `export { sections, whole } from "./Cli.ts"\n`)
    appendFileSync(join(folder, "dist/LICENSES"), "")
    copyFileSync(join(repository, "dist/sbom.cdx.json"), join(folder, "dist/sbom.cdx.json"))
    say(`deb: upgraded from ${commit.slice(0, 7)}, which lacks ${lacks.join(" and ")}`)
    return await buildPackage(out, { ...made, of: folder })
  } catch (error) {
    if (!(error instanceof NoEarlierBuild)) throw error
    say(`deb: upgraded from the same sources, because ${error.message}`)
    return buildPackage(out, made)
  }
}

const elfMachineOf = (file: string): number => readFileSync(file).readUInt16LE(18)

const units = ["acme-svc.service", "acme-svc@worker.service", "acme-svc-acme@1.service"]

/** Tenths of the value that `systemd-analyze security` calls exposure. A service without any restriction has 100. */
const exposed = 20

/** Installs the package on a Debian system that never had the package. */
const playFirst = async ({ shell }: Machine, step: Site["step"]): Promise<void> => {
  await step("installs", async () => {
    const said = await shell(debianLines.install.replace("amd64", native))
    check(!said.includes("warning"), said)
    for (const line of [debianLines.setup, debianLines.start, debianLines.health]) {
      check(said.includes(line), `the next step ${line} is not told: ${said}`)
    }
  })
  await step("enables and starts nothing", async () => {
    const files = await shell("systemctl list-unit-files --no-legend 'acme-svc*' | awk '{ print $1, $2 }'")
    const disabled = "acme-svc-acme@.service disabled\nacme-svc.service disabled\nacme-svc@.service disabled\n"
    check(files === disabled, files)
    const loaded = await shell("systemctl list-units --all --no-legend 'acme-svc*'")
    check(loaded === "", loaded)
  })
  await step("makes the user and gives it what is its own", async () => {
    const said = await shell("stat --format '%n %a %U %G' /etc/acme-svc/config.toml /var/lib/acme-svc")
    check(
      said === "/etc/acme-svc/config.toml 640 root acme-svc\n/var/lib/acme-svc 750 acme-svc acme-svc\n",
      said
    )
    const mine = "setpriv --reuid=65534 --regid=65534 --clear-groups -- acme-svc --version"
    check(/^acme-svc \d+\.\d+\.\d+$/m.test(await shell(mine)), "nobody is not told the version")
  })
  await step("has compiled code that its user can read, but not write", async () => {
    const said = await shell("stat --format '%a %U' /usr/lib/acme-svc/dist/compiled /usr/lib/acme-svc/dist/compiled/*")
    check(said === "755 root\n644 root\n", said)
  })
  await step("brings the documents, and serves them to anybody", async () => {
    const nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups"
    const serving = `${nobody} -- acme-svc docs --port 8086 > /tmp/said & read -r line < /tmp/said`
    const said = await shell(`mkfifo /tmp/said && { ${serving}; kill $!; wait $!; echo "$? $line"; }`)
    check(said === "0 The documents are at http://127.0.0.1:8086/ until Ctrl-C.\n", said)
  })
  await step("has units that systemd finds sound", async () => {
    const said = await shell(`systemd-analyze verify --man=no ${units.join(" ")}`)
    check(!said.includes("acme-svc"), said)
    for (const unit of units) {
      await shell(`systemd-analyze security --offline=true --no-pager --threshold=${exposed} ${unit}`)
    }
  })
  await step("writes a configuration from answers, for the group of the service", async () => {
    await shell("umask 077 && echo 'panel = false' > /root/answers.toml")
    const said = await shell(`${debianLines.setup} --answers answers.toml --yes 2>&1`)
    check(said.includes("the configuration is now /etc/acme-svc/config.toml."), said)
    const owned = await shell("stat --format '%n %a %U %G' /etc/acme-svc/*")
    check(owned === "/etc/acme-svc/config.toml 640 root acme-svc\n", owned)
    await shell(`if ${debianLines.setup} --answers answers.toml --yes; then exit 1; fi`)
  })
  await step("accepts its configuration, and makes what is missing", async () => {
    await shell(debianLines.check)
    await shell(debianLines.init)
    const said = await shell("stat --format '%a %U' /var/lib/acme-svc/ca.key")
    check(said === "600 acme-svc\n", said)
  })
  await step("is a command for its own user too, unless its secrets are root's", async () => {
    const own = `setpriv --reuid=acme-svc --regid=acme-svc --clear-groups -- ${debianLines.list}`
    await shell(own)
    await shell("umask 077 && echo ACME_SVC_LOGGING__LEVEL=debug > /etc/acme-svc/env")
    const said = await shell(`if ${own} 2>&1; then echo 'it ran'; fi`)
    check(said === "acme-svc: /etc/acme-svc/env is not readable for this user: run the command as root\n", said)
    await shell("rm /etc/acme-svc/env")
  })
  await step("keeps the keys when it is purged, and says so", async () => {
    const said = await shell(`${debianLines.purge} --yes`)
    check(said.includes("/var/lib/acme-svc stays, with the database and the keys of the CA"), said)
    await shell("test -s /var/lib/acme-svc/ca.key -a -s /var/lib/acme-svc/sqlite.db -a ! -e /etc/acme-svc")
  })
  await step("goes on with these keys when it is installed again", async () => {
    const kept = "sha256sum /var/lib/acme-svc/ca.key /var/lib/acme-svc/ca.pem"
    const before = await shell(kept)
    await shell(debianLines.install.replace("amd64", native))
    check(await shell(debianLines.init) === "Nothing to do: everything exists.\n", "something was made anew")
    await shell("acme-svc migrate --check && acme-svc crl list")
    check(await shell(kept) === before, "the keys are others")
    const owner = await shell("stat --format '%U %a' /var/lib/acme-svc /var/lib/acme-svc/ca.key")
    check(owner === "acme-svc 750\nacme-svc 600\n", owner)
  })
  await step("is installed where its configuration was taken away, and gives it back when asked", async () => {
    const again = "dpkg --force-confmiss --install acme-svc_*.deb"
    await shell(`dpkg --remove acme-svc && rm -r /etc/acme-svc && ${again.replace("--force-confmiss ", "")}`)
    await shell(`test ! -e /etc/acme-svc/config.toml && acme-svc --version && ${again}`)
    const said = await shell("stat --format '%a %U %G' /etc/acme-svc/config.toml")
    check(said === "640 root acme-svc\n", said)
    await shell(debianLines.check)
  })
  await step("takes the keys along when it is told to", async () => {
    await shell("ACME_SVC_PURGE_DATA=yes dpkg --purge acme-svc")
    await shell("test ! -e /var/lib/acme-svc -a ! -e /usr/lib/acme-svc")
  })
}

const play = async (site: Site): Promise<void> => {
  const { directory, say, step } = site
  const at = (name: string) => join(directory, name)
  const first = await step("is made", () => buildPackage(at("first"), { architecture: native, revision: 1 }))
  say(`deb: ${native} ${mebibytes(statSync(first).size)} by gzip; xz, which is not waited for here, takes a third less`)
  await step("is the same bytes when it is made again", async () => {
    const surroundings = "umask 077; export TZ=Pacific/Auckland LC_ALL=C"
    const again = await buildPackage(at("again"), { architecture: native, revision: 1, surroundings })
    check(readFileSync(first).equals(readFileSync(again)), `${first} and ${again} differ`)
    rmSync(again)
  })
  await step(`is made for ${foreign}`, async () => {
    const file = await buildPackage(at("foreign"), { architecture: foreign, revision: 1 })
    const said = await runCommand("dpkg-deb", ["--field", file, "Architecture"])
    check(said.trim() === foreign, said)
    await runCommand("dpkg-deb", ["--extract", file, at("unpacked")])
    const lib = at("unpacked/usr/lib/acme-svc")
    const prebuilds = join(lib, "node_modules/better-sqlite3/prebuilds")
    const koffi = join(lib, "node_modules/@koromix")
    const binaries = [
      join(lib, "node"),
      ...readdirSync(prebuilds).map((name) => join(prebuilds, name)),
      ...readdirSync(koffi, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".node"))
        .map((name) => join(koffi, name))
    ]
    check(binaries.length === 3, binaries.join(" "))
    listsRuntime(await readBom(join(lib, "dist/sbom.cdx.json")), foreign === "arm64" ? "arm64" : "x64")
    for (const binary of binaries) check(elfMachineOf(binary) === machines[foreign], `${binary} is for another machine`)
    rmSync(at("unpacked"), { recursive: true })
    rmSync(file)
  })
  await step("has no error for lintian", () => runCommand("lintian", ["--fail-on", "error", first]))
  const older = await step("is made of an earlier commit", () => buildOlder(at("older"), say))

  const machine = await step("has a Debian to be installed in", () => bootMachine(directory))
  try {
    copyFileSync(first, machine.at(`/root/acme-svc_0_${native}.deb`))
    await playFirst(machine, step)
    copyFileSync(older, machine.at("/root/older.deb"))
    copyFileSync(first, machine.at("/root/newer.deb"))
    await playRoles(machine, site)
    await playLife(machine, site)
  } finally {
    await machine.stop()
  }
}

/** `dpkg --install` of the Debian package. */
export const debian: Installation = {
  name: "debian",
  commands: ["lintian", "mmdebstrap", "openssl", "git", "x86_64-linux-gnu-strip", "aarch64-linux-gnu-strip"],
  play
}
