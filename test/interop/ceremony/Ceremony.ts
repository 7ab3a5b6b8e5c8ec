import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { thisBuild } from "../../support/Server.ts"
import type { VerifiedChain } from "../../support/Verifiers.ts"
import { verifiers } from "../../support/Verifiers.ts"
import { runCommand } from "../Command.ts"
import type { Outcome } from "../Table.ts"

/*
 * A CA is made by two machines and judged by a third. Each is a folder, and every program runs in a network of its own
 * that has only a loopback, so whatever passes from one to another is a file that this program copies.
 */

/** The commands that the ceremony needs. */
export const ceremonyCommands = ["certtool", "ip", "javac", "openssl"]

/** Runs a command in a folder, in a network that nobody else is in. */
const alone = (directory: string, command: string, ...words: ReadonlyArray<string>): Promise<string> => {
  const user = process.getuid?.() === 0 ? [] : ["--map-root-user"]
  const script = "ip link set lo up && exec \"$0\" \"$@\""
  return runCommand("unshare", ["--net", ...user, "sh", "-euc", script, command, ...words], { cwd: directory })
}

const service = (directory: string, ...words: ReadonlyArray<string>) =>
  alone(directory, process.execPath, join(thisBuild, "dist/main.js"), ...words)

interface Machines {
  readonly root: string
  readonly service: string
  readonly verifier: string
}

const host = "www.corp.example"
const passing = ["--passphrase-file", "passphrase"]

/** Makes a root and an issuing CA on two machines, issues a certificate, and carries it to the third. */
const hold = async (at: Machines, rootKey: string, issuingKey: string): Promise<VerifiedChain> => {
  const carry = (name: string, from: string, to: string, as = name) => copyFileSync(join(from, name), join(to, as))
  writeFileSync(join(at.root, "passphrase"), "correct horse battery staple\n", { mode: 0o600 })
  writeFileSync(
    join(at.service, "config.toml"),
    `[challenge]\nbypass = true\n[profiles.default.signer.local_ca]\nkey_type = "${issuingKey}"\n`
  )
  const named = ["--root-name", "Example Root", "--key-type", rootKey]
  await service(at.root, "ca", "init", "--root", "r", "--root-only", ...named, ...passing)
  await service(at.service, "ca", "csr", "--out", "issuing.csr")
  carry("issuing.csr", at.service, at.root)
  const permitted = ["--permit", "corp.example"]
  const signed = await service(at.root, "ca", "sign", "issuing.csr", "--root", "r", ...permitted, ...passing, "--yes")
  // The command says on standard error what it signs, and both are here, as in a mail. The answer is taken all the same.
  writeFileSync(join(at.service, "answer.txt"), signed)
  await service(at.service, "ca", "import", "answer.txt")
  await service(at.service, "ca", "test-sign")
  await alone(at.service, process.execPath, join(import.meta.dirname, "issue.ts"), at.service, host)
  await alone(at.service, "openssl", "crl", "-inform", "DER", "-in", "list.der", "-out", "list.pem")
  carry("r/root.pem", at.root, at.verifier, "root.pem")
  for (const name of ["chain.pem", "list.pem"]) carry(name, at.service, at.verifier)
  const there = (name: string) => join(at.verifier, name)
  return { host, chain: there("chain.pem"), root: there("root.pem"), list: there("list.pem") }
}

/** Signs a certificate for a name outside the constraints with the key of the CA, as somebody who stole it would. */
const steal = async (at: Machines, files: VerifiedChain, outside: string): Promise<VerifiedChain> => {
  const extensions = [
    `subjectAltName=critical,DNS:${outside}`,
    "basicConstraints=critical,CA:FALSE",
    "keyUsage=critical,digitalSignature",
    "extendedKeyUsage=serverAuth",
    "subjectKeyIdentifier=hash",
    "authorityKeyIdentifier=keyid"
  ]
  writeFileSync(join(at.service, "leaf.cnf"), extensions.join("\n"))
  const openssl = (...words: ReadonlyArray<string>) => alone(at.service, "openssl", ...words)
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
  await openssl("req", "-new", ...curve, "-nodes", "-keyout", "leaf.key", "-subj", "/", "-out", "leaf.csr")
  const ca = ["-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "4711", "-extfile", "leaf.cnf"]
  await openssl("x509", "-req", "-in", "leaf.csr", ...ca, "-out", "leaf.pem")
  const text = (name: string) => readFileSync(join(at.service, name), "utf8")
  const chain = join(at.verifier, "stolen.pem")
  writeFileSync(chain, text("leaf.pem") + text("ca.pem"))
  return { ...files, chain, host: outside }
}

type Judgement = readonly [verifier: string, error: string | undefined]

/** Lets every verifier judge a chain. Returns an error if one judges differently than wanted. */
const judge = (at: Machines, files: VerifiedChain, isWanted: boolean): Promise<ReadonlyArray<Judgement>> =>
  Promise.all(
    verifiers(files).map(async ({ accepts, command, name, words }): Promise<Judgement> => {
      const said = await alone(at.verifier, command, ...words).catch((error: unknown) => String(error))
      return [name, accepts.test(said) === isWanted ? undefined : `${isWanted ? "refuses" : "accepts"} it: ${said}`]
    })
  )

const outside = "www.example.org"

/** Holds the ceremony for several kinds of keys. */
export const playCeremony = async (say: (text: string) => void): Promise<ReadonlyArray<Outcome>> => {
  const outcomes: Array<Outcome> = []
  for (const [rootKey, issuingKey] of [["ecdsa-p384", "ecdsa-p256"], ["rsa-4096", "rsa-3072"]] as const) {
    const folder = mkdtempSync(join(tmpdir(), "acme-ceremony-"))
    const at = { root: join(folder, "root"), service: join(folder, "service"), verifier: join(folder, "verifier") }
    for (const one of Object.values(at)) mkdirSync(one)
    const begun = performance.now()
    const tell = (client: string, scenario: string, error: string | undefined) => {
      const named = `ceremony, ${rootKey} and ${issuingKey}: ${scenario}`
      const milliseconds = performance.now() - begun
      const outcome = { database: "SQLite", client, challenge: "", scenario: named, milliseconds }
      outcomes.push(error === undefined ? outcome : { ...outcome, error })
      if (error !== undefined) say(`--- ${client} ${named}\n${error}\n---`)
    }
    try {
      const files = await hold(at, rootKey, issuingKey)
      tell("acme-svc", "issues", undefined)
      for (const [name, error] of await judge(at, files, true)) tell(name, "accepts the chain", error)
      const stolen = await steal(at, files, "other.corp.example")
      for (const [name, error] of await judge(at, stolen, true)) tell(name, "accepts a permitted name", error)
      const forbidden = await steal(at, files, outside)
      for (const [name, error] of await judge(at, forbidden, false)) tell(name, "refuses another name", error)
    } catch (error) {
      tell("acme-svc", "issues", String(error))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  return outcomes
}
