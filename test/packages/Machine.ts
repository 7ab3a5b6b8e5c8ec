import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { runCommand, startForeground } from "../interop/Command.ts"

/*
 * A minimal Debian system in a directory. Its systemd boots it in separate namespaces, so that packages start and stop
 * real units.
 */

/** Returns the release of this machine, and the mirror that apt uses for it. */
const origin = async (): Promise<{ readonly suite: string; readonly mirror: string }> => {
  const [, suite = ""] = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync("/etc/os-release", "utf8")) ?? []
  const format = ["--format", "$(REPO_URI) $(CODENAME)"]
  const said = await runCommand("apt-get", ["indextargets", ...format, "Created-By: Packages", "Component: main"])
  const [, mirror] = new RegExp(`^(\\S+) ${suite}$`, "m").exec(said) ?? []
  if (mirror === undefined) throw new Error(`apt knows no mirror of ${suite}:\n${said}`)
  return { suite, mirror }
}

/** Returns the archive of a minimal Debian system, which is made once and kept in the directory for temporary files. */
const archive = async (): Promise<string> => {
  const { mirror, suite } = await origin()
  const file = join(tmpdir(), `acme-debian-systemd-${suite}-${process.arch}.tar`)
  if (!existsSync(file)) {
    const made = `${file}.${process.pid}.tar`
    const words = ["--quiet", "--variant=apt", "--include=systemd", suite, made, mirror]
    await runCommand("mmdebstrap", words, { timeoutMs: 600_000 })
    renameSync(made, file)
  }
  return file
}

/** Enters a control group and then namespaces of its own. */
const enter = `
root=$1 group=$2 inner=$3
mount -t cgroup2 none "$root/mnt"
mkdir "$root/mnt/$group"
echo $$ > "$root/mnt/$group/cgroup.procs"
umount "$root/mnt"
exec unshare --pid --fork --kill-child --uts --ipc --cgroup sh -euc "$inner" sh "$root"
`

/**
 * Gives systemd the file systems that it needs, but nothing that could change this machine, such as kernel settings,
 * modules or the clock. Records the process id of systemd on this machine, for commands that enter its namespaces
 * later.
 */
const boot = `
root=$1
read -r pid _ < /proc/self/stat
echo "$pid" > "$root.pid"
echo entered
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 none "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
cd "$root"
pivot_root . mnt
umount --lazy /mnt
exec setpriv --bounding-set=-sys_module,-sys_time,-sys_rawio \\
  env --ignore-environment container=test PATH="$PATH" /lib/systemd/systemd --system --unit=booted.service
`

/** Removes the control groups that systemd leaves behind. */
const leave = `
mount -t cgroup2 none "$1"
find "$1/$2" -depth -type d -exec rmdir {} +
`

/** Opens the pipe once everything is started. */
const bootedUnit = `[Unit]
Requires=multi-user.target
After=multi-user.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c "echo booted > /booted"
`

/** A running Debian. */
export interface Machine {
  /** A path inside the machine, as seen from outside. */
  readonly at: (path: string) => string
  /** Runs a shell line inside the machine, as root, in the directory `/root`. */
  readonly shell: (line: string) => Promise<string>
  /** Waits until a unit has logged `words`, `times` times in total. */
  readonly said: (unit: string, words: string, times?: number) => Promise<void>
  /** Ends all processes of the machine at once. */
  readonly stop: () => Promise<void>
}

const unpack = async (root: string): Promise<void> => {
  mkdirSync(root)
  await runCommand("tar", ["--extract", "--numeric-owner", "--file", await archive(), "--directory", root])
  if (existsSync("/etc/hosts")) cpSync("/etc/hosts", join(root, "etc/hosts"))
  const units = join(root, "etc/systemd/system")
  writeFileSync(join(units, "booted.service"), bootedUnit)
  // At some hours, apt's own timer would hold the lock of dpkg.
  symlinkSync("/dev/null", join(units, "timers.target"))
  await runCommand("mkfifo", [join(root, "booted")])
}

/** Boots a Debian in a directory, which shares only the network of this machine. */
export const bootMachine = async (directory: string): Promise<Machine> => {
  const root = join(directory, "debian")
  const group = basename(directory)
  await unpack(root)
  const at = (path: string) => join(root, path)
  const isolated = ["--mount", "--propagation", "private", "sh", "-euc"]
  const system = await startForeground("unshare", [...isolated, enter, "sh", root, group, boot], { ready: /^entered$/ })
  const pid = readFileSync(`${root}.pid`, "utf8").trim()
  const inside = ["--target", pid, "--all", "--root", "--wd"]
  const env = { DEBIAN_FRONTEND: "noninteractive", HOME: "/root", PATH: "/usr/sbin:/usr/bin:/sbin:/bin" }
  const shell = (line: string) => runCommand("nsenter", [...inside, "sh", "-c", `cd /root && ${line}`], { env })
  const said: Machine["said"] = async (unit, words, times = 1) => {
    // The program that follows the journal ends by itself when its output is no longer read.
    const journal = `journalctl --follow --lines=all --output=cat --unit=${unit} 2> /dev/null`
    await shell(`exec bash -c 'grep --fixed-strings --max-count=${times} "${words}" < <(${journal})'`)
  }
  const stop = async () => {
    await runCommand("sh", ["-c", "kill -KILL \"$0\" || true", pid])
    await system.ended()
    await runCommand("unshare", [...isolated, leave, "sh", at("mnt"), group])
  }
  try {
    const ended = system.ended().then((end): never => {
      throw new Error(`systemd ${end} before it had started everything`)
    })
    await Promise.race([runCommand("cat", [at("booted")]), ended])
  } catch (error) {
    await stop()
    throw error
  }
  return { at, said, shell, stop }
}
