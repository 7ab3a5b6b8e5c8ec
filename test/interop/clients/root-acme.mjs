// Gets a certificate with @root/acme: <home> <directory URL> <tokens> <name> ...
import ACME from "@root/acme"
import CSR from "@root/csr"
import Keypairs from "@root/keypairs"
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const [home, directoryUrl, tokens, ...names] = process.argv.slice(2)
const accountFile = join(home, "account.json")

const acme = ACME.create({
  maintainerEmail: "ops@corp.example",
  packageAgent: "interop/1",
  notify: () => {},
  // The client would ask the web server of the name at port 80, where no server listens.
  skipChallengeTest: true,
  skipDryRun: true
})
await acme.init(directoryUrl)

const { account, accountKey } = existsSync(accountFile)
  ? JSON.parse(readFileSync(accountFile, "utf8"))
  : await Keypairs.generate({ kty: "EC", format: "jwk" }).then(async ({ private: accountKey }) => ({
    accountKey,
    account: await acme.accounts.create({ subscriberEmail: "ops@corp.example", agreeToTerms: true, accountKey })
  }))
writeFileSync(accountFile, JSON.stringify({ account, accountKey }))

const { private: key } = await Keypairs.generate({ kty: "EC", format: "jwk" })
const csr = await CSR.csr({ jwk: key, domains: names, encoding: "pem" })
const http01 = {
  init: async () => null,
  set: async ({ challenge }) => {
    writeFileSync(join(tokens, challenge.token), challenge.keyAuthorization)
    return null
  },
  get: async ({ challenge }) => ({ keyAuthorization: readFileSync(join(tokens, challenge.token), "utf8") }),
  remove: async ({ challenge }) => {
    rmSync(join(tokens, challenge.token))
    return null
  }
}
const { cert, chain } = await acme.certificates.create({
  account,
  accountKey,
  csr,
  domains: names,
  challenges: { "http-01": http01 }
})
writeFileSync(join(home, `${names[0]}.pem`), `${cert}\n${chain}\n`)
