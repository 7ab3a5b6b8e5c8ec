import { execFileSync } from "node:child_process"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import { gateComesBackForTokens, gateVerifiesElsewhere, isInstalled } from "../support/Installed.ts"
import { runToEnd, startServer } from "../support/Server.ts"
import { softhsmModule } from "../support/Softhsm.ts"
import type { VerifiedChain } from "../support/Verifiers.ts"
import { outputOf, verifiers } from "../support/Verifiers.ts"

/*
 * The commands that make, request, sign and take over a CA, run by the built program in three folders that share
 * nothing: the machine of the root, that of the service, and that of somebody who verifies.
 */

const passphrase = "correct horse battery staple"
const config = "[challenge]\nbypass = true\n[profiles.default]\n"

/** A folder of its own, and the commands in it. No command may print the passphrase. */
const machine = (env: Readonly<Record<string, string>> = {}) => {
  const directory = freshDirectory()
  const at = (name: string) => join(directory, name)
  writeFileSync(at("passphrase"), `${passphrase}\n`, { mode: 0o600 })
  const run = async (...words: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await runToEnd(words, { config: null, directory, env })
    for (const said of [stdout, stderr]) {
      assert.notInclude(said, passphrase)
      assert.notInclude(said, "PRIVATE KEY")
    }
    return { code, stderr, stdout }
  }
  const succeed = async (...words: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await run(...words)
    assert.strictEqual(code, 0, `${words.join(" ")}: ${stderr}`)
    return stdout
  }
  return { at, directory, env, run, succeed }
}

type Machine = ReturnType<typeof machine>

const withPassphrase = ["--passphrase-file", "passphrase"]

/** A machine with a root and without a configuration. */
const rootMachine = async (...more: ReadonlyArray<string>) => {
  const root = machine()
  await root.succeed("ca", "init", "--root", "r", "--root-only", "--root-name", "A Root", ...withPassphrase, ...more)
  return root
}

/** Carries a request to the root and the answer back, as a person with a medium does. */
const carry = async (service: Machine, root: Machine, ...more: ReadonlyArray<string>) => {
  copyFileSync(service.at("issuing.csr"), root.at("issuing.csr"))
  const signed = await root.succeed("ca", "sign", "issuing.csr", "--root", "r", "--yes", ...withPassphrase, ...more)
  writeFileSync(service.at("answer.pem"), signed)
  return signed
}

const openssl = (words: ReadonlyArray<string>) => execFileSync("openssl", words, { stdio: "pipe" }).toString()

/** Lets the programs that are installed judge a chain, and returns whether each accepts it. */
const judged = (files: VerifiedChain) =>
  verifiers(files).flatMap((one) => {
    if (!isInstalled(one.needs)) {
      gateVerifiesElsewhere()
      return []
    }
    const said = outputOf(one)
    return [{ name: one.name, said, accepts: one.accepts.test(said) }]
  })

/** Issues a certificate by the service in a folder, and verifies it on a machine that has only the root. */
const issueAndVerify = async (service: Machine, rootFile: string, host: string): Promise<VerifiedChain> => {
  const server = await startServer({ directory: service.directory, config: null, env: service.env })
  try {
    const session = await AcmeSession.open(server.directoryUrl)
    await session.register()
    const { chain } = await session.issue([host], new Map())
    const { at } = machine()
    const list = await fetch(`${server.baseUrl}/profile/default/crl`)
    writeFileSync(at("list.der"), Buffer.from(await list.arrayBuffer()))
    openssl(["crl", "-inform", "DER", "-in", at("list.der"), "-out", at("list.pem")])
    writeFileSync(at("chain.pem"), chain)
    copyFileSync(rootFile, at("root.pem"))
    session.close()
    const files = { host, chain: at("chain.pem"), root: at("root.pem"), list: at("list.pem") }
    for (const { accepts, name, said } of judged(files)) assert.isTrue(accepts, `${name}: ${said}`)
    return files
  } finally {
    await server.stop()
  }
}

beforeAll(builtServer)

describe("a ceremony on two machines", () => {
  it("gives the service a CA whose certificates OpenSSL, GnuTLS and Java accept", async () => {
    const [root, service] = [await rootMachine("--key-type", "ecdsa-p384"), machine()]
    const own = "[profiles.default.signer.local_ca]\nkey_passphrase_file = \"ca-passphrase\"\n"
    writeFileSync(service.at("config.toml"), config + own)
    writeFileSync(service.at("ca-passphrase"), `${passphrase}\n`, { mode: 0o600 })
    await service.succeed("ca", "csr", "--out", "issuing.csr")
    assert.include(readFileSync(service.at("ca.key"), "utf8"), "BEGIN ENCRYPTED PRIVATE KEY")
    assert.strictEqual(statSync(service.at("ca.key")).mode & 0o777, 0o600)
    // Until the answer is there, the service does not start, and makes no CA of its own.
    assert.strictEqual((await service.run("serve")).code, 3)

    const signed = await carry(service, root, "--permit", "corp.example")
    assert.isFalse(["config.toml", "sqlite.db"].some((name) => existsSync(root.at(name))))
    const kept = readdirSync(root.at("r")).filter((name) => name.startsWith("issued-"))
    assert.deepStrictEqual(kept.map((name) => readFileSync(root.at(join("r", name)), "utf8")), [signed])

    await service.succeed("ca", "import", "answer.pem")
    assert.strictEqual(readFileSync(service.at("ca.pem"), "utf8"), signed)
    const before = readdirSync(service.directory).sort()
    assert.match(await service.succeed("ca", "test-sign"), /^name +test-sign\.corp\.example$/m)
    assert.deepStrictEqual(readdirSync(service.directory).sort(), before)
    await issueAndVerify(service, root.at("r/root.pem"), "www.corp.example")
  })

  it("uses the key that is in a token", async () => {
    if (!isInstalled("softhsm2-util")) return gateComesBackForTokens()
    const folder = freshDirectory()
    const [root, service] = [await rootMachine(), machine({ SOFTHSM2_CONF: join(folder, "softhsm2.conf") })]
    mkdirSync(join(folder, "tokens"))
    writeFileSync(
      join(folder, "softhsm2.conf"),
      `directories.tokendir = ${join(folder, "tokens")}\nlog.level = ERROR\n`
    )
    const softhsm = (...words: ReadonlyArray<string>) =>
      execFileSync("softhsm2-util", words, { env: { ...process.env, ...service.env }, stdio: "pipe" })
    softhsm("--init-token", "--free", "--label", "ca", "--pin", "1234", "--so-pin", "5678")
    const key = join(folder, "key")
    openssl(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key])
    softhsm("--import", key, "--token", "ca", "--label", "ca-key", "--id", "a1", "--pin", "1234")
    const wanted = openssl(["pkey", "-in", key, "-pubout"])
    unlinkSync(key)
    writeFileSync(service.at("pin"), "1234\n", { mode: 0o600 })
    writeFileSync(
      service.at("config.toml"),
      `${config}[profiles.default.signer.local_ca]\nkey_source = "pkcs11"\n[profiles.default.signer.local_ca.pkcs11]\n` +
        `module_path = "${softhsmModule}"\ntoken_label = "ca"\nkey_label = "ca-key"\npin_file = "pin"\n`
    )
    writeFileSync(service.at("issuing.csr"), await service.succeed("ca", "csr"))
    assert.strictEqual(openssl(["req", "-in", service.at("issuing.csr"), "-noout", "-pubkey", "-verify"]), wanted)
    assert.isFalse(existsSync(service.at("ca.key")))
    await carry(service, root)
    await service.succeed("ca", "import", "answer.pem")
    assert.match(await service.succeed("ca", "test-sign"), /^key source +pkcs11$/m)
    await issueAndVerify(service, root.at("r/root.pem"), "www.example.org")

    // One command makes a root and a certificate for the same key. A key that is not there stops it before anything is
    // made.
    const another = machine(service.env)
    copyFileSync(service.at("pin"), another.at("pin"))
    const text = readFileSync(service.at("config.toml"), "utf8")
    writeFileSync(another.at("config.toml"), text.replace("\"ca-key\"", "\"other\""))
    const lacking = await another.run("ca", "init", "--root", "r", ...withPassphrase)
    assert.strictEqual(lacking.code, 3)
    assert.include(lacking.stderr, "signer.local_ca.pkcs11: the token has no private key of that label and id.")
    assert.isFalse(existsSync(another.at("r")))
    writeFileSync(another.at("config.toml"), text)
    assert.match(
      await another.succeed("ca", "init", "--root", "r", ...withPassphrase),
      /^ {2}private key +in the token$/m
    )
    assert.strictEqual(openssl(["x509", "-in", another.at("ca.pem"), "-noout", "-pubkey"]), wanted)
    await another.succeed("ca", "test-sign")

    writeFileSync(service.at("pin"), "4321\n")
    const refused = await service.run("ca", "test-sign")
    assert.strictEqual(refused.code, 1)
    assert.include(refused.stderr, "CKR_PIN_INCORRECT")
    assert.notInclude(refused.stderr, "4321")
  })
})

describe("a root and an issuing CA from one command", () => {
  it("serve names that are permitted; OpenSSL, GnuTLS and Java refuse others", async () => {
    const service = machine()
    writeFileSync(service.at("config.toml"), config)
    const said = await service.succeed("ca", "init", "--root", "r", "--permit", "corp.example", ...withPassphrase)
    assert.strictEqual(readFileSync(service.at("r/transcript.txt"), "utf8"), said)
    for (const file of ["ca.pem", "r/root.pem"]) {
      assert.include(
        said,
        openssl(["x509", "-in", service.at(file), "-noout", "-fingerprint", "-sha256"]).split("=")[1] ?? "none"
      )
    }
    const files = await issueAndVerify(service, service.at("r/root.pem"), "www.corp.example")

    // The service refuses other names, so OpenSSL signs such a leaf with the key of the CA.
    const [key = "", request = "", names = "", leaf = ""] = ["leaf.key", "leaf.csr", "leaf.cnf", "leaf.pem"].map((
      name
    ) => service.at(name))
    const signWith = (host: string) => {
      openssl([
        "req",
        "-new",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-subj",
        "/",
        "-out",
        request
      ])
      writeFileSync(
        names,
        `subjectAltName=critical,DNS:${host}\nextendedKeyUsage=serverAuth\nkeyUsage=critical,digitalSignature\n` +
          "basicConstraints=critical,CA:FALSE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
      )
      const ca = ["-CA", service.at("ca.pem"), "-CAkey", service.at("ca.key"), "-set_serial", "4711"]
      openssl(["x509", "-req", "-in", request, ...ca, "-extfile", names, "-out", leaf])
      writeFileSync(files.chain, readFileSync(leaf, "utf8") + readFileSync(service.at("ca.pem"), "utf8"))
      return judged({ ...files, host })
    }
    for (const { accepts, name, said } of signWith("other.corp.example")) assert.isTrue(accepts, `${name}: ${said}`)
    for (const { accepts, name, said } of signWith("www.example.org")) assert.isFalse(accepts, `${name}: ${said}`)
  })
})
