import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Foreground } from "../interop/Command.ts"
import { runCommand, startForeground } from "../interop/Command.ts"

/* A bare Debian in a directory, without systemd: what a package does there is done by dpkg and its scripts alone. */

/** The release this machine runs, and the mirror apt has for it. */
const origin = async (): Promise<{ readonly suite: string; readonly mirror: string }> => {
  const [, suite = ""] = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync("/etc/os-release", "utf8")) ?? []
  const format = ["--format", "$(REPO_URI) $(CODENAME)"]
  const said = await runCommand("apt-get", ["indextargets", ...format, "Created-By: Packages", "Component: main"])
  const [, mirror] = new RegExp(`^(\\S+) ${suite}$`, "m").exec(said) ?? []
  if (mirror === undefined) throw new Error(`apt knows no mirror of ${suite}:\n${said}`)
  return { suite, mirror }
}

/** The archive of a bare Debian: made once, then found in the directory for temporary files. */
const archive = async (): Promise<string> => {
  const { mirror, suite } = await origin()
  const file = join(tmpdir(), `acme-debian-${suite}-${process.arch}.tar`)
  if (!existsSync(file)) {
    const made = `${file}.${process.pid}.tar`
    await runCommand("mmdebstrap", ["--quiet", "--variant=apt", suite, made, mirror], { timeoutMs: 600_000 })
    renameSync(made, file)
  }
  return file
}

/** A Debian to install into. */
export interface Chroot {
  /** A path inside, as it is seen from outside. */
  readonly at: (path: string) => string
  /** Runs a line of a shell inside, as root, in the directory `/root`. */
  readonly shell: (line: string) => Promise<string>
  /** Starts what the unit starts, as its user, in its directory, with its variables and these. */
  readonly start: (unit: string, variables: Readonly<Record<string, string>>) => Promise<Foreground>
}

/** Makes one in a directory. Daemons may not be started in it. */
export const makeChroot = async (directory: string): Promise<Chroot> => {
  const root = join(directory, "debian")
  mkdirSync(root)
  await runCommand("tar", ["--extract", "--numeric-owner", "--file", await archive(), "--directory", root])
  const at = (path: string) => join(root, path)
  writeFileSync(at("/usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n", { mode: 0o755 })
  if (existsSync("/etc/hosts")) cpSync("/etc/hosts", at("/etc/hosts"))
  const env = { DEBIAN_FRONTEND: "noninteractive", HOME: "/root", PATH: "/usr/sbin:/usr/bin:/sbin:/bin" }
  const shell = (line: string) => runCommand("chroot", [root, "sh", "-c", `cd /root && ${line}`], { env })
  const start: Chroot["start"] = (unit, variables) => {
    const text = readFileSync(at(`/lib/systemd/system/${unit}`), "utf8")
    const of = (key: string): string => new RegExp(`^${key}=(.*)$`, "m").exec(text)?.[1] ?? ""
    const own = Object.entries(variables).map(([name, value]) => `${name}=${value}`)
    const variablesOfUnit = of("Environment").split(" ")
    const user = [`--reuid=${of("User")}`, `--regid=${of("Group")}`, "--init-groups", "--no-new-privs"]
    const place = ["env", `--chdir=${of("WorkingDirectory")}`, ...variablesOfUnit, ...own]
    const words = ["setpriv", ...user, "--", ...place, ...of("ExecStart").split(" ")]
    return startForeground("chroot", [root, ...words], { env, ready: /acme-svc is ready/ })
  }
  return { at, shell, start }
}
