import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Names, Workplace } from "../Client.ts"
import { contact, scriptIn } from "../Client.ts"
import { startForeground } from "../Command.ts"

const modules = "/usr/lib/apache2/modules"

const configurationFor = (at: Workplace, names: Names, renewWindow: string): string => {
  const trust = join(at.home, "trust.pem")
  const dns = scriptIn(
    at.home,
    "dns.sh",
    `case "$1" in setup) verb=add ;; *) verb=delete ;; esac`,
    `${at.nameServer.script} "$verb" "_acme-challenge.$2" "$3"`
  )
  copyFileSync(at.trust, trust)
  const [name, ...rest] = names
  return [
    ...["mpm_event", "authz_core", "socache_shmcb", "ssl", "md"].map((module) =>
      `LoadModule ${module}_module ${modules}/mod_${module}.so`
    ),
    `ServerRoot ${at.home}`,
    `ServerName ${name}`,
    `PidFile ${at.home}/apache.pid`,
    `Mutex file:${at.home}/run`,
    // The log goes through a pipe, because stderr cannot be opened by name if it is a socket.
    `ErrorLog "|/bin/cat"`,
    "LogLevel info",
    // Only root may become another user, and must then give up root.
    ...process.getuid?.() === 0 ? ["User nobody", "Group nogroup"] : [],
    `Listen 127.0.0.1:${at.httpPort}`,
    `Listen 127.0.0.1:${at.alpnPort}`,
    "Protocols http/1.1 acme-tls/1",
    `MDStoreDir ${at.home}/md`,
    `MDCertificateAuthority ${at.directoryUrl}`,
    `MDCACertificateFile ${trust}`,
    "MDCertificateAgreement accepted",
    "MDPrivateKeys P-256",
    `MDContactEmail ${contact}`,
    ...at.credential === undefined
      ? []
      : [`MDExternalAccountBinding ${at.credential.kid} ${at.credential.hmacKey}`],
    ...at.kind === undefined ? [] : [`MDProfile ${at.kind}`, "MDProfileMandatory on"],
    `MDPortMap http:${at.httpPort} https:${at.alpnPort}`,
    `MDCAChallenges ${at.challenge}`,
    `MDChallengeDns01 ${dns}`,
    "MDChallengeDns01Version 2",
    "MDInitialDelay 0s",
    "MDRetryDelay 1s",
    `MDRenewWindow ${renewWindow}`,
    `MDomain ${names.join(" ")}`,
    `<VirtualHost 127.0.0.1:${at.alpnPort}>`,
    `  ServerName ${name}`,
    ...rest.map((alias) => `  ServerAlias ${alias}`),
    "  SSLEngine on",
    "</VirtualHost>",
    ""
  ].join("\n")
}

const ready = /resuming normal operations/

const started = (at: Workplace, names: Names, renewWindow: string) => {
  mkdirSync(join(at.home, "run"), { recursive: true })
  const config = join(at.home, "apache.conf")
  writeFileSync(config, configurationFor(at, names, renewWindow))
  return startForeground("apache2", ["-f", config, "-D", "FOREGROUND"], { cwd: at.home, ready })
}

/** Runs Apache until it has a certificate, and then reloads Apache so that it uses the certificate. */
const run = async (at: Workplace, names: Names, renewWindow: string) => {
  const apache = await started(at, names, renewWindow)
  try {
    await apache.waitFor(/AH10059/)
    apache.signal("SIGUSR1")
    await apache.waitFor(ready, 2)
  } finally {
    await apache.stop()
  }
}

/**
 * Apache with mod_md. Apache itself or a program that updates the zone answers the challenges. The account key is RSA.
 */
export const apache: Client = {
  name: "Apache mod_md",
  commands: ["apache2"],
  challenges: ["http-01", "dns-01", "tls-alpn-01"],
  issue: (at, names) => run(at, names, "33%"),
  // This is longer than any certificate is valid, so that the certificate is due at once.
  renew: (at, names) => run(at, names, "4000d"),
  renewWhenTold: (at, names) => run(at, names, "33%"),
  chain: (at, [name]) => {
    const kept = join(at.home, "md/domains", name)
    const file = readdirSync(kept).find((entry) => /^pubcert.*\.pem$/.test(entry))
    if (file === undefined) throw new Error(`mod_md keeps no certificate of ${name}`)
    return readFileSync(join(kept, file), "utf8")
  },
  binds: true
}

/** Lets Apache order until its log has a line like this. Apache itself never stops after a refusal. */
export const apacheUntil = async (at: Workplace, names: Names, said: RegExp): Promise<void> => {
  const apache = await started(at, names, "33%")
  try {
    await apache.waitFor(said)
  } finally {
    await apache.stop()
  }
}
