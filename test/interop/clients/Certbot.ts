import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Workplace } from "../Client.ts"
import { contact, scriptIn } from "../Client.ts"
import { runCommand } from "../Command.ts"

const run = (at: Workplace, ...words: ReadonlyArray<string>) => {
  const places = ["--config-dir", "config", "--work-dir", "work", "--logs-dir", "logs"]
  const all = [...words, ...places, "--server", at.directoryUrl, "--non-interactive"]
  return runCommand("certbot", all, { cwd: at.home, env: { HOME: at.home, REQUESTS_CA_BUNDLE: at.trust } })
}

const how = (at: Workplace): ReadonlyArray<string> => {
  if (at.challenge === "http-01") {
    return ["--standalone", "--http-01-address", "127.0.0.1", "--http-01-port", `${at.httpPort}`]
  }
  const record = "\"_acme-challenge.$CERTBOT_DOMAIN\" \"$CERTBOT_VALIDATION\""
  const auth = scriptIn(at.home, "auth.sh", `${at.nameServer.script} add ${record}`)
  const clean = scriptIn(at.home, "clean.sh", `${at.nameServer.script} delete ${record}`)
  return ["--manual", "--preferred-challenges", "dns", "--manual-auth-hook", auth, "--manual-cleanup-hook", clean]
}

const live = (at: Workplace, name: string, file: string) => join(at.home, "config/live", name, file)

/** certbot with its own web server, or with hooks that update the zone; an RSA account key. */
export const certbot: Client = {
  name: "certbot",
  commands: ["certbot"],
  challenges: ["http-01", "dns-01"],
  issue: (at, names) => {
    const domains = names.flatMap((name) => ["-d", name])
    const { credential } = at
    const bound = credential === undefined ? [] : ["--eab-kid", credential.kid, "--eab-hmac-key", credential.hmacKey]
    return run(at, "certonly", ...how(at), ...domains, ...bound, "--agree-tos", "--no-eff-email", "-m", contact)
  },
  renew: (at, [name]) => run(at, "renew", "--cert-name", name, "--force-renewal", "--no-random-sleep-on-renew"),
  chain: (at, [name]) => readFileSync(live(at, name, "fullchain.pem"), "utf8"),
  binds: true,
  revoke: (at, [name]) => run(at, "revoke", "--cert-path", live(at, name, "cert.pem"), "--no-delete-after-revoke"),
  revokeByItsKey: (at, [name]) => {
    const files = ["--cert-path", live(at, name, "cert.pem"), "--key-path", live(at, name, "privkey.pem")]
    return run(at, "revoke", ...files, "--no-delete-after-revoke", "--reason", "keycompromise")
  },
  deactivate: (at) => run(at, "unregister")
}
