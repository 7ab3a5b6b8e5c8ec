import { copyFileSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { join, resolve } from "node:path"
import { runCommand } from "../interop/Command.ts"
import { startWorld } from "../support/Ground.ts"
import { freePort } from "../support/Ports.ts"
import { certify } from "./Certified.ts"
import { makeChroot } from "./Chroot.ts"
import type { Installation, Site } from "./Installation.ts"
import { check } from "./Installation.ts"
import { debianLines } from "./Lines.ts"
import { mebibytes } from "./Measure.ts"

/* The Debian package: made, judged by lintian, and installed, upgraded, removed and purged in a bare Debian. */

const repository = resolve(import.meta.dirname, "../..")

/** What Debian calls this machine, the other one, and the number ELF has for each. */
const [native, foreign] = process.arch === "arm64" ? ["arm64", "amd64"] as const : ["amd64", "arm64"] as const
const machines = { amd64: 0x3e, arm64: 0xb7 } as const

/** Makes a package with the program of `npm run deb`, quickly and in other surroundings; answers the file. */
const build = async (
  out: string,
  architecture: string,
  revision: number,
  surroundings = "umask 022; export TZ=UTC"
): Promise<string> => {
  const words = `--arch ${architecture} --revision ${revision} --compression gzip --out ${out}`
  const env = Object.fromEntries(Object.entries(process.env).map(([name, value]) => [name, value ?? ""]))
  const line = `${surroundings}; exec "$0" packaging/deb.ts ${words}`
  await runCommand("sh", ["-c", line, process.execPath], { cwd: repository, env })
  const [file, ...others] = readdirSync(out).filter((name) => name.includes(`-${revision}_${architecture}`))
  if (file === undefined || others.length > 0) throw new Error(`made ${readdirSync(out).join(" ")}`)
  return join(out, file)
}

const elfMachineOf = (file: string): number => readFileSync(file).readUInt16LE(18)

const play = async ({ directory, say, step }: Site): Promise<void> => {
  const at = (name: string) => join(directory, name)
  const first = await step("is made", () => build(at("first"), native, 1))
  say(`deb: ${native} ${mebibytes(statSync(first).size)} by gzip; xz, which is not waited for here, takes a third less`)
  await step("is the same bytes when it is made again", async () => {
    const again = await build(at("again"), native, 1, "umask 077; export TZ=Pacific/Auckland LC_ALL=C")
    check(readFileSync(first).equals(readFileSync(again)), `${first} and ${again} differ`)
    rmSync(again)
  })
  await step(`is made for ${foreign}`, async () => {
    const file = await build(at("foreign"), foreign, 1)
    const said = await runCommand("dpkg-deb", ["--field", file, "Architecture"])
    check(said.trim() === foreign, said)
    await runCommand("dpkg-deb", ["--extract", file, at("unpacked")])
    const lib = at("unpacked/usr/lib/acme-svc")
    const prebuilds = join(lib, "node_modules/better-sqlite3/prebuilds")
    const binaries = [join(lib, "node"), ...readdirSync(prebuilds).map((name) => join(prebuilds, name))]
    check(binaries.length === 2, binaries.join(" "))
    for (const binary of binaries) check(elfMachineOf(binary) === machines[foreign], `${binary} is for another machine`)
    rmSync(at("unpacked"), { recursive: true })
    rmSync(file)
  })
  await step("has no error for lintian", () => runCommand("lintian", ["--fail-on", "error", first]))

  const debian = await makeChroot(directory)
  await step("installs", async () => {
    copyFileSync(first, debian.at(`/root/acme-svc_0_${native}.deb`))
    const said = await debian.shell(debianLines.install.replace("amd64", native))
    check(!said.includes("warning"), said)
  })
  await step("makes the user and gives it what is its own", async () => {
    const said = await debian.shell("stat --format '%n %a %U %G' /etc/acme-svc/config.toml /var/lib/acme-svc")
    check(
      said === "/etc/acme-svc/config.toml 640 root acme-svc\n/var/lib/acme-svc 750 acme-svc acme-svc\n",
      said
    )
    const mine = "setpriv --reuid=65534 --regid=65534 --clear-groups -- acme-svc --version"
    check(/^\d+\.\d+\.\d+$/m.test(await debian.shell(mine)), "nobody is not told the version")
  })
  await step("accepts its configuration, and makes what is missing", async () => {
    await debian.shell(debianLines.check)
    await debian.shell(debianLines.init)
    const said = await debian.shell("stat --format '%a %U' /var/lib/acme-svc/ca.key")
    check(said === "600 acme-svc\n", said)
  })

  const world = await startWorld()
  const port = await freePort()
  const baseUrl = `http://127.0.0.1:${port}`
  const variables = {
    ...world.env,
    ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
    ACME_SVC_SERVER__BASE_URL: baseUrl,
    ACME_SVC_CHALLENGE__ALLOW_LOOPBACK: "true"
  }
  try {
    let serving = await debian.start("acme-svc.service", variables)
    try {
      const name = "www.corp.example"
      const { client, serial } = await step("issues a certificate", () => certify(baseUrl, world, directory, name))
      const account = client.getAccountUrl()
      const listed = async () => {
        const said = await debian.shell(`${debianLines.list} --json`)
        check(said.includes(name), said)
      }
      const kept = async () => {
        await listed()
        await client.createAccount({ onlyReturnExisting: true })
        check(client.getAccountUrl() === account, `the account was ${account}, and is ${client.getAccountUrl()}`)
        const renewed = await certify(baseUrl, world, directory, name)
        check(renewed.serial !== serial, "the certificate is the old one")
      }
      await step("is upgraded while it runs, and serves on", async () => {
        const second = await build(at("second"), native, 2)
        copyFileSync(second, debian.at("/root/newer.deb"))
        await debian.shell("echo '# mine' >> /etc/acme-svc/config.toml && dpkg --install newer.deb")
        check((await debian.shell("dpkg-query --show acme-svc")).includes("-2"), "the older version is installed")
        check((await debian.shell("tail -n 1 /etc/acme-svc/config.toml")) === "# mine\n", "config.toml was replaced")
        await certify(baseUrl, world, directory, "meanwhile.corp.example")
      })
      await step("starts again with the account and the certificate", async () => {
        await serving.stop()
        serving = await debian.start("acme-svc.service", variables)
        await kept()
      })
      await serving.stop()
      await step("keeps data and configuration when it is removed", async () => {
        await debian.shell("dpkg --remove acme-svc")
        await debian.shell("test -s /var/lib/acme-svc/ca.key -a -s /var/lib/acme-svc/sqlite.db")
        await debian.shell("test -s /etc/acme-svc/config.toml -a ! -e /usr/lib/acme-svc")
      })
      await step("goes on where it ended when it is installed again", async () => {
        await debian.shell("dpkg --install newer.deb")
        serving = await debian.start("acme-svc.service", variables)
        await kept()
      })
    } finally {
      await serving.stop()
    }
  } finally {
    await world.stop()
  }
  await step("keeps the keys when it is purged, and says so", async () => {
    const said = await debian.shell(`${debianLines.purge} --yes`)
    check(said.includes("/var/lib/acme-svc stays, with the database and the keys of the CA"), said)
    await debian.shell("test -s /var/lib/acme-svc/ca.key -a -s /var/lib/acme-svc/sqlite.db -a ! -e /etc/acme-svc")
  })
  await step("takes the keys along when it is told to", async () => {
    await debian.shell("dpkg --install newer.deb && ACME_SVC_PURGE_DATA=yes dpkg --purge acme-svc")
    await debian.shell("test ! -e /var/lib/acme-svc -a ! -e /usr/lib/acme-svc")
  })
}

/** `dpkg --install` of the Debian package. */
export const debian: Installation = {
  name: "debian",
  commands: ["lintian", "mmdebstrap", "openssl", "git", "x86_64-linux-gnu-strip", "aarch64-linux-gnu-strip"],
  play
}
