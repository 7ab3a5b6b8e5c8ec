import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { runCommand } from "../Command.ts"
import type { Step } from "./Guide.ts"

/*
 * Machines on which guides are followed. Each has the programs of this machine, but a file system, a network and
 * processes of its own, so that files and ports are at the places that the guide names. The files of a machine are
 * deleted with the machine.
 */

/** Addresses in the network between the service and its clients, which is connected to nothing else (RFC 5737). */
export const addresses = { service: "192.0.2.10", nameServer: "192.0.2.53", client: "192.0.2.20" } as const

const repository = resolve(import.meta.dirname, "../../..")

/**
 * Makes the service's end of the connection, and a place for the networks of clients. Must run in the network that
 * becomes that of the service.
 */
export const layWire = async (): Promise<void> => {
  await runCommand("sh", [
    "-euc",
    [
      "mount -t tmpfs none /run",
      "ip link set lo up",
      "ip link add wire type bridge",
      `for address in ${addresses.service} ${addresses.nameServer}; do ip addr add $address/24 dev wire; done`,
      "ip link set wire up"
    ].join("\n")
  ])
}

/**
 * Mounts the root of a machine. The root shows the files of this machine, and above them the files that are written in
 * the new machine.
 */
const boot = `
at=$1 lower=$2 repository=$3; shift 3
mkdir -p "$at/upper" "$at/work" "$at/root"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$at/upper,workdir=$at/work" "$at/root"
mount --rbind /dev "$at/root/dev"
mount -t proc proc "$at/root/proc"
for own in /run /tmp; do mount -t tmpfs none "$at/root$own"; done
mkdir -p "$at/root/run/lock" "$at/root$repository"
mount --bind "$repository" "$at/root$repository"
exec chroot "$at/root" "$@"
`

/** A replacement for systemctl that does what the units of the programs do. */
const systemctl = `#!/bin/sh
set -eu
run() {
  case "$1-$2" in
    start-apache2) apachectl start ;;
    reload-apache2) apachectl graceful ;;
    start-caddy) HOME=/var/lib/caddy caddy start --config /etc/caddy/Caddyfile > /var/log/caddy.log 2>&1 ;;
    reload-caddy) caddy reload --config /etc/caddy/Caddyfile ;;
    start-haproxy) haproxy -W -D -p /run/haproxy.pid -f /etc/haproxy/haproxy.cfg ;;
    reload-haproxy) kill -USR2 "$(cat /run/haproxy.pid)" ;;
    start-nginx) nginx ;;
    reload-nginx) nginx -s reload ;;
    *) echo "no unit $2 can be told to $1 here" >&2; exit 1 ;;
  esac
}
unit=$2
case "$1" in
  restart | reload-or-restart) if [ -e "/run/started.$unit" ]; then run reload "$unit"; else run start "$unit"; fi ;;
  *) run "$1" "$unit" ;;
esac
touch "/run/started.$unit"
`

const bytes = (text: string): string => Buffer.from(text).toString("base64")

/** Writes a file in a machine. Scripts become executable. */
const writing = (path: string, body: string): string =>
  [
    `mkdir -p "$(dirname '${path}')"`,
    `printf %s ${bytes(body)} | base64 -d > '${path}'`,
    ...body.startsWith("#!") ? [`chmod 755 '${path}'`] : []
  ].join("\n")

const scriptOf = (steps: ReadonlyArray<Step>): string =>
  steps.map((step) => step.kind === "file" ? writing(step.path, step.body) : step.body).join("\n")

/** Where a machine is made. */
export interface Place {
  /** A directory of this run, on a file system of its own. */
  readonly directory: string
  /** The machine that is copied, by default this machine. */
  readonly like?: Machine
}

/** A machine that has been shut down. Its files can be read, or another machine can start with them. */
export interface Machine {
  readonly upper: string
  readonly said: string
}

let made = 0

/**
 * Carries out a guide in a new machine, as root in its home directory. Fails with the output of the first command that
 * failed.
 */
export const doIn = async ({ directory, like }: Place, steps: ReadonlyArray<Step>): Promise<Machine> => {
  const name = `m${made++}`
  const at = mkdtempSync(join(directory, `${name}-`))
  const lower = like === undefined ? "/" : `${like.upper}:/`
  const wire = [
    `ip netns add ${name}`,
    // The address is the same for every machine, so that other hosts that knew an earlier machine also know this one.
    `ip link add ${name} type veth peer name eth0 address 02:00:00:00:02:20 netns ${name}`,
    `ip link set ${name} master wire up`,
    `ip -n ${name} link set lo up`,
    `ip -n ${name} addr add ${addresses.client}/24 dev eth0`,
    `ip -n ${name} link set eth0 up`
  ].join("\n")
  await runCommand("sh", ["-euc", wire])
  const script = [
    writing("/usr/local/sbin/systemctl", systemctl),
    writing("/etc/resolv.conf", `nameserver ${addresses.nameServer}\n`),
    writing("/etc/hosts", "127.0.0.1 localhost\n"),
    `ln -sf '${process.execPath}' /usr/local/bin/node`,
    "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "cd /root",
    "set -x",
    scriptOf(steps)
  ].join("\n")
  mkdirSync(join(at, "upper/var"), { recursive: true })
  const file = join(at, "upper/guide.sh")
  writeFileSync(file, script)
  try {
    const net = `--net=/run/netns/${name}`
    const words = ["--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", boot, "sh", at, lower, repository]
    const env = { HOME: "/root", DEBIAN_FRONTEND: "noninteractive" }
    const said = await runCommand("nsenter", [net, "unshare", ...words, "sh", "-eu", "/guide.sh"], { env })
    return { upper: join(at, "upper"), said }
  } finally {
    await runCommand("ip", ["netns", "delete", name])
  }
}
