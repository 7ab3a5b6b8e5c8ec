import { chmodSync, copyFileSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { basename, delimiter, join } from "node:path"
import { runCommand, startForeground } from "../interop/Command.ts"
import { startWorld } from "../support/Ground.ts"
import { freePort } from "../support/Ports.ts"
import { certify } from "./Certified.ts"
import { importedOf } from "./Imported.ts"
import type { Installation, Site } from "./Installation.ts"
import { check } from "./Installation.ts"
import { npmLines } from "./Lines.ts"
import { mebibytes, sizeOf } from "./Measure.ts"
import { playElsewhere } from "./NpmElsewhere.ts"

/* The published package, installed into an empty folder by npm. */

/** The compilers that a package calls if it compiles anything. */
const compilers = ["cc", "c++", "gcc", "g++", "clang", "make", "cmake", "node-gyp", "python", "python3"]

/**
 * Returns the programs of the machine with the tests' runtime, without the packages of this clone, and with compilers
 * that fail.
 */
const pathWithoutClone = (directory: string): string => {
  const programs = join(directory, "programs")
  mkdirSync(programs)
  symlinkSync(process.execPath, join(programs, "node"))
  for (const compiler of compilers) {
    writeFileSync(join(programs, compiler), `#!/bin/sh\necho "${compiler} is not to be called" >&2\nexit 1\n`)
    chmodSync(join(programs, compiler), 0o755)
  }
  const others = (process.env["PATH"] ?? "").split(delimiter).filter((one) => !one.includes("node_modules"))
  return [programs, ...others].join(delimiter)
}

/** The disk space that an installation may use. */
const most = 60 * 2 ** 20

/** Without its compiled binary, the SQLite driver would need these headers. */
const unimported = ["node-addon-api"]

const play = async (site: Site): Promise<void> => {
  const { directory, say, step, tarball } = site
  const home = join(directory, "empty")
  const modules = join(home, "node_modules")
  mkdirSync(home)
  // The caller's environment says where npm finds its registry, and which CAs it trusts for the registry. Other
  // settings of an outer npm concern this clone.
  const inherited = Object.entries(process.env).filter(([name]) => !/^npm_(?!config_registry|config_cafile)/.test(name))
  const env = {
    ...Object.fromEntries(inherited.map(([name, value]) => [name, value ?? ""])),
    PATH: pathWithoutClone(directory)
  }
  const shell = (line: string) => runCommand("sh", ["-c", line], { cwd: home, env })

  await step("installs into an empty folder, without a compiler", async () => {
    copyFileSync(tarball, join(home, basename(tarball)))
    await shell(npmLines.begin)
    await shell(npmLines.install)
  })
  await step("installs no more than 60 MiB", async () => {
    const installed = await sizeOf(modules)
    const bundle = await sizeOf(join(modules, "acme-svc/dist"), "compiled")
    say(
      `npm: package ${mebibytes(statSync(tarball).size)}, bundle ${mebibytes(bundle)}, installed ${
        mebibytes(installed)
      }`
    )
    check(installed <= most, `${installed} bytes are installed`)
  })
  await step("installs nothing that is not imported", () => {
    const { names, unused } = importedOf(modules)
    say(`npm: ${names.length} packages: ${names.join(" ")}`)
    const idle = unused.filter((name) => name !== "acme-svc" && !unimported.includes(name))
    check(idle.length === 0 && unused.includes("acme-svc"), `not imported by anything: ${idle.join(", ")}`)
    return Promise.resolve()
  })
  await step("tells its version", async () => {
    const said = await shell("npx acme-svc --version")
    check(/^acme-svc \d+\.\d+\.\d+$/m.test(said), said)
  })
  await step("makes what is missing", async () => {
    const said = await shell(npmLines.init)
    check(said.includes("created configuration config.toml"), said)
  })
  await step("serves the documents", async () => {
    const port = await freePort()
    const serving = await startForeground("sh", ["-c", `exec node_modules/.bin/acme-svc docs --port ${port}`], {
      cwd: home,
      env,
      ready: /^The documents are at /
    })
    try {
      const said = await (await fetch(`http://127.0.0.1:${port}/operate/jobs.html`)).text()
      check(said.includes("<h1 id=\"jobs\">Jobs</h1>"), said)
    } finally {
      await serving.stop()
    }
  })
  const world = await startWorld()
  try {
    const port = await freePort()
    const baseUrl = `http://127.0.0.1:${port}`
    const address = {
      ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
      ACME_SVC_SERVER__BASE_URL: baseUrl,
      ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${await freePort()}`
    }
    const serving = await step("serves", () =>
      startForeground("sh", ["-c", `exec ${npmLines.serve}`], {
        cwd: home,
        env: { ...env, ...world.env, ...address, ACME_SVC_CHALLENGE__ALLOW_LOOPBACK: "true" },
        ready: /acme-svc is ready/
      }))
    try {
      await step("issues a certificate", () => certify(baseUrl, world, directory, "www.corp.example"))
      await step(
        "is healthy",
        () => runCommand("sh", ["-c", npmLines.health], { cwd: home, env: { ...env, ...address } })
      )
    } finally {
      await serving.stop()
    }
  } finally {
    await world.stop()
  }
  await playElsewhere(site, env)
}

/** `npm install` of the published package. */
export const npm: Installation = { name: "npm", commands: ["openssl"], play }
