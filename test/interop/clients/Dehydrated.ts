import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Names, Workplace } from "../Client.ts"
import { contact, newContact, scriptIn } from "../Client.ts"
import { runCommand } from "../Command.ts"
import { alpnCertificatesOf, responding, tokensOf } from "../Responders.ts"

/** Writes the hook, which dehydrated calls with the action, the name, the token and the text to publish. */
const hookFor = (at: Workplace): string =>
  scriptIn(
    at.home,
    "hook.sh",
    `case "${at.challenge}/$1" in`,
    `dns-01/deploy_challenge) ${at.nameServer.script} add "_acme-challenge.$2" "$4" ;;`,
    `dns-01/clean_challenge) ${at.nameServer.script} delete "_acme-challenge.$2" "$4" ;;`,
    "esac"
  )

const runAs = (address: string, at: Workplace, ...words: ReadonlyArray<string>) => {
  const config = join(at.home, "config")
  const settings = {
    BASEDIR: at.home,
    CA: at.directoryUrl,
    CHALLENGETYPE: at.challenge,
    WELLKNOWN: tokensOf(at),
    ALPNCERTDIR: alpnCertificatesOf(at),
    HOOK: hookFor(at),
    CURL_OPTS: `--cacert ${at.trust}`,
    CONTACT_EMAIL: address,
    KEYSIZE: "2048",
    EAB_KID: at.credential?.kid ?? "",
    EAB_HMAC_KEY: at.credential?.hmacKey ?? ""
  }
  writeFileSync(config, Object.entries(settings).map(([key, value]) => `${key}="${value}"\n`).join(""))
  return runCommand("dehydrated", ["--config", config, ...words], { cwd: at.home, env: { HOME: at.home } })
}

const run = (at: Workplace, ...words: ReadonlyArray<string>) => runAs(contact, at, ...words)

const order = (at: Workplace, names: Names, ...words: ReadonlyArray<string>) =>
  responding(at, () => run(at, "--cron", ...words, ...names.flatMap((name) => ["--domain", name])))

/** dehydrated. Separate servers, or a hook that updates the zone, answer the challenges. The account key is RSA. */
export const dehydrated: Client = {
  name: "dehydrated",
  commands: ["dehydrated"],
  challenges: ["http-01", "dns-01", "tls-alpn-01"],
  issue: async (at, names) => {
    if (!existsSync(join(at.home, "accounts"))) await run(at, "--register", "--accept-terms")
    await order(at, names)
  },
  renew: (at, names) => order(at, names, "--force"),
  chain: (at, [name]) => readFileSync(join(at.home, "certs", name, "fullchain.pem"), "utf8"),
  binds: true,
  updateContact: (at) => runAs(newContact, at, "--account"),
  // With a separate key for revocations, dehydrated would first look for the account of that key. There is none.
  revoke: (at, [name]) => run(at, "--revoke", join(at.home, "certs", name, "cert.pem")),
  deactivate: (at) => run(at, "--deactivate")
}
