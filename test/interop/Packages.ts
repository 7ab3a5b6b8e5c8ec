import { rmSync, writeFileSync } from "node:fs"
import { runCommand } from "./Command.ts"

/** The Debian package of every program whose package has a different name. */
const packages: Readonly<Record<string, string>> = {
  a2enmod: "apache2",
  apache2: "apache2-bin",
  certtool: "gnutls-bin",
  certutil: "libnss3-tools",
  go: "golang-go",
  ip: "iproute2",
  javac: "default-jdk-headless",
  keytool: "default-jre-headless",
  kubectl: "kubernetes-client",
  mvn: "maven",
  named: "bind9",
  "nix-instantiate": "nix-bin",
  nsupdate: "bind9-dnsutils",
  pip3: "python3-pip",
  promtool: "prometheus",
  rsyslogd: "rsyslog",
  "softhsm2-util": "softhsm2",
  "systemd-analyze": "systemd",
  "update-ca-certificates": "ca-certificates",
  "x86_64-linux-gnu-strip": "binutils-x86-64-linux-gnu",
  "aarch64-linux-gnu-strip": "binutils-aarch64-linux-gnu",
  ualpn: "uacme"
}

/** Returns a command that imports a module with Debian's Python, whatever other python3 is on the path. */
const importing = (module: string) => ["/usr/bin/python3", "-c", `import ${module}`] as const

/** Returns a command that checks whether Debian's sources of a Go library are installed. */
const sourceOf = (library: string) => ["test", "-d", `/usr/share/gocode/src/${library}`] as const

/** The commands that find out whether libraries are installed. */
const probes: Readonly<Record<string, readonly [string, ...ReadonlyArray<string>]>> = {
  "golang-github-caddyserver-certmagic-dev": sourceOf("github.com/caddyserver/certmagic"),
  "golang-golang-x-crypto-dev": sourceOf("golang.org/x/crypto/acme/autocert"),
  "libssl-dev": ["test", "-f", "/usr/include/openssl/ssl.h"],
  "rsyslog-gnutls": ["sh", "-c", "ls /usr/lib/*/rsyslog/lmnsd_gtls.so"],
  postgresql: ["sh", "-c", "ls /usr/lib/postgresql/*/bin/initdb"],
  "python3-acme": importing("acme"),
  "python3-certbot-dns-rfc2136": importing("certbot_dns_rfc2136"),
  "python3-certbot-nginx": importing("certbot_nginx"),
  "python3-requests": importing("requests"),
  "python3-requests-toolbelt": importing("requests_toolbelt"),
  "python3-setuptools": importing("setuptools"),
  "python3-venv": importing("ensurepip"),
  "python3-zope.component": importing("zope.component"),
  "ruby-acme-client": ["ruby", "-e", "require 'acme-client'"]
}

const packageOf = (command: string): string => packages[command] ?? command

const exists = (command: string): Promise<boolean> => {
  const [program, ...words] = probes[command] ?? ["sh", "-c", "command -v \"$0\"", command]
  return runCommand(program, words).then(() => true, () => false)
}

/** The policy that packages ask before they start their daemons. 101 means no. */
const policy = "/usr/sbin/policy-rc.d"

/**
 * Forbids packages to start their daemons. Returns whether this function made the policy, and the caller must remove
 * it.
 */
const forbidDaemons = (): boolean => {
  try {
    writeFileSync(policy, "#!/bin/sh\nexit 101\n", { flag: "wx", mode: 0o755 })
    return true
  } catch {
    return false
  }
}

const aptGet = async (wanted: ReadonlyArray<string>): Promise<void> => {
  const env = { DEBIAN_FRONTEND: "noninteractive" }
  await runCommand("apt-get", ["update"], { env, timeoutMs: 300_000 })
  const ours = forbidDaemons()
  try {
    const words = ["install", "--yes", "--no-install-recommends", ...wanted]
    await runCommand("apt-get", words, { env, timeoutMs: 600_000 })
  } finally {
    if (ours) rmSync(policy)
  }
}

/** Installs missing packages with apt-get. Fails with the names of those that cannot be installed. */
export const install = async (commands: ReadonlyArray<string>, say: (text: string) => void): Promise<void> => {
  const missing = new Set<string>()
  for (const command of commands) {
    if (!await exists(command)) missing.add(packageOf(command))
  }
  if (missing.size === 0) return
  const wanted = [...missing].join(" ")
  if (process.getuid?.() !== 0 || !await exists("apt-get")) {
    throw new Error(`not installed: ${wanted}. Install them, or run this as root where there is apt-get.`)
  }
  say(`installing ${wanted} with apt-get`)
  try {
    await aptGet([...missing])
  } catch (error) {
    throw new Error(`apt-get could not install ${wanted}: ${String(error)}`, { cause: error })
  }
}

/**
 * Returns the names and the versions of the packages that Debian has installed for the commands, with one line for each
 * package.
 */
export const versionsOf = (commands: ReadonlyArray<string>): Promise<string> =>
  runCommand("dpkg-query", ["--show", "--showformat=${Package} ${Version}\\n", ...new Set(commands.map(packageOf))])
    .then((text) => text.trim(), () => "")
