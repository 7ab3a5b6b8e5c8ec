import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { assert, describe, it } from "vitest"
import { freshDirectory } from "./support/Databases.ts"

/* The messages of the packaging programs. `npm run packages` tests the packages themselves. */

const repository = resolve(import.meta.dirname, "..")

/** Makes a folder for PATH with these programs of the host, and with scripts for others. */
const pathOf = (programs: ReadonlyArray<string>, scripts: Readonly<Record<string, string>> = {}): string => {
  const folder = join(freshDirectory(), "bin")
  mkdirSync(folder)
  for (const program of programs) {
    const { stdout } = spawnSync("sh", ["-c", "command -v \"$0\"", program], { encoding: "utf8" })
    symlinkSync(stdout.trim(), join(folder, program))
  }
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
  return folder
}

describe("npm run deb", () => {
  const [native, foreign] = process.arch === "arm64" ? ["arm64", "amd64"] : ["amd64", "arm64"]
  const strip = { amd64: "x86_64-linux-gnu-strip", arm64: "aarch64-linux-gnu-strip" } as const

  const deb = (path: string, ...words: ReadonlyArray<string>) => {
    const out = join(freshDirectory(), "out")
    const { status, stderr, stdout } = spawnSync(
      process.execPath,
      [join(repository, "tools/packaging/deb.ts"), "--out", out, ...words],
      { encoding: "utf8", env: { PATH: path } }
    )
    assert.isFalse(existsSync(out))
    return { status, stderr, stdout }
  }

  it("names the missing programs and their packages, and builds nothing", () => {
    const path = pathOf(["sh", "git", "tar"], {
      [strip[native as "amd64"]]: "exit 0",
      npm: "echo built >&2; exit 1"
    })
    const binutils = foreign === "arm64" ? "binutils-aarch64-linux-gnu" : "binutils-x86-64-linux-gnu"
    const missing = strip[foreign as "arm64"]
    assert.deepStrictEqual(deb(path), {
      status: 1,
      stderr: `This needs ${missing}, dpkg-deb. On Debian: apt-get install ${binutils} dpkg. `
        + `For this host alone: npm run deb -- --arch ${native}\n`,
      stdout: ""
    })
    assert.deepStrictEqual(
      deb(path, "--arch", native ?? "").stderr,
      "This needs dpkg-deb. On Debian: apt-get install dpkg.\n"
    )
  })

  it("ends with a sentence if a step fails or the command line is wrong", () => {
    const path = pathOf(["sh", "git", "tar"], {
      [strip[native as "amd64"]]: "exit 0",
      "dpkg-deb": "exit 0",
      npm: "echo 'esbuild is not there' >&2; exit 4"
    })
    assert.deepStrictEqual(deb(path, "--arch", native ?? ""), {
      status: 1,
      stderr: "npm run --silent build ended with 4: esbuild is not there\n\n",
      stdout: ""
    })
    assert.deepStrictEqual(deb(path, "--arch", "sparc"), {
      status: 2,
      stderr: "sparc is not amd64 or arm64.\n",
      stdout: ""
    })
    assert.deepInclude(deb(path, "--arhc", "amd64"), { status: 2, stdout: "" })
  })
})

describe("postinst of the Debian package", () => {
  const doneByOthers = [
    "adduser",
    "chmod",
    "chown",
    "deb-systemd-helper",
    "deb-systemd-invoke",
    "mkdir",
    "rm",
    "systemctl"
  ]
  const path = pathOf(["cat", "cut"], {
    ...Object.fromEntries(doneByOthers.map((name) => [name, "exit 0"])),
    "dpkg-statoverride": "exit 1",
    getent: "exit 2"
  })
  const configure = (...words: ReadonlyArray<string>): string => {
    const script = join(repository, "tools/packaging/debian/postinst")
    const { status, stdout } = spawnSync("/bin/sh", [script, "configure", ...words], {
      encoding: "utf8",
      env: { PATH: path }
    })
    assert.strictEqual(status, 0)
    return stdout
  }

  it("prints the next steps only at the first installation", () => {
    const steps = ["acme-svc setup", "systemctl enable --now acme-svc", "acme-svc health"]
    for (const words of [[], [""]]) {
      const said = configure(...words)
      for (const step of [...steps, "/etc/acme-svc/config.toml", "man acme-svc"]) {
        assert.include(said, step)
      }
    }
    const brought = readFileSync(join(repository, "tools/packaging/debian/config.toml"), "utf8")
    for (const step of steps) assert.match(brought, new RegExp(`^#   ${step}(?: .*)?$`, "m"))
    assert.strictEqual(configure("0.1.0-1"), "")
  })
})
