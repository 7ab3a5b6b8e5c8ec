import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Names, Workplace } from "../Client.ts"
import { contact } from "../Client.ts"
import { runCommand } from "../Command.ts"
import { responding, tokensOf } from "../Responders.ts"

const file = (at: Workplace, [name]: Names, kind: string) => join(at.home, `${name}.${kind}`)

/** Runs the client, which prints the chain to stdout and its progress to stderr. */
const run = async (at: Workplace, names: Names) => {
  const account = join(at.home, "account.key")
  if (!existsSync(account)) await runCommand("openssl", ["genrsa", "-out", account, "2048"])
  await runCommand("openssl", ["genrsa", "-out", file(at, names, "key"), "2048"])
  // The CSR is made as the client's README says, for one name or for several.
  const [name, ...others] = names
  const subject = others.length === 0
    ? ["-subj", `/CN=${name}`]
    : ["-subj", "/", "-addext", `subjectAltName = ${names.map((one) => `DNS:${one}`).join(", ")}`]
  const key = ["-key", file(at, names, "key")]
  await runCommand("openssl", ["req", "-new", "-sha256", ...key, ...subject, "-out", file(at, names, "csr")])
  const files = ["--account-key", account, "--csr", file(at, names, "csr"), "--acme-dir", tokensOf(at)]
  // Otherwise the client would look up its own answer with the system's name servers, which do not know this zone.
  const words = [...files, "--directory-url", at.directoryUrl, "--disable-check", "--contact", `mailto:${contact}`]
  const chain = await responding(
    at,
    () =>
      runCommand("acme-tiny", [...words, "--quiet"], { cwd: at.home, env: { HOME: at.home, SSL_CERT_FILE: at.trust } })
  )
  writeFileSync(file(at, names, "pem"), chain)
}

/** acme-tiny, with a separate web server. A renewal runs the same command again. */
export const acmeTiny: Client = {
  name: "acme-tiny",
  commands: ["acme-tiny"],
  challenges: ["http-01"],
  namesInSubject: true,
  issue: run,
  renew: run,
  chain: (at, names) => readFileSync(file(at, names, "pem"), "utf8")
}
