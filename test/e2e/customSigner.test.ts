import { execFile, execFileSync } from "node:child_process"
import { X509Certificate } from "node:crypto"
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { OrderBody } from "../support/AcmeSession.ts"
import { AcmeSession } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer, databases, freshDirectory } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import { shellScript } from "../support/Script.ts"

/* Tests `signer.backend = "custom"` with the script of docs/recipes, and with scripts that misbehave in every way. */

const recipe = resolve(import.meta.dirname, "../../docs/recipes/sign-with-openssl.sh")

/** Returns the path of a chain for a wrong key, which a misbehaving script prints. */
const wrongKeyChain = (): string => {
  const directory = freshDirectory()
  const [key, chain] = [join(directory, "key"), join(directory, "chain")]
  execFileSync("openssl", [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-noenc",
    "-keyout",
    key,
    "-out",
    chain,
    "-subj",
    "/CN=x",
    "-addext",
    "subjectAltName=DNS:wrong-key.example"
  ], { stdio: "ignore" })
  return chain
}

/** A command that runs long enough to be found, and that no other test starts. */
const sleeping = `sleep 600.${process.pid}`

/** What a script does when it should issue, and what happens to the order. */
const misbehaviours: ReadonlyArray<{
  readonly name: string
  readonly body: string
  /** The order's status, the last part of its problem type, and the event that the log has of each attempt. */
  readonly ends: readonly [status: OrderBody["status"], problem: string, log: string]
}> = [
  { name: "hangs", body: "trap '' TERM; while :; do sleep 1; done", ends: ["invalid", "serverInternal", "timeout"] },
  { name: "floods", body: "exec yes", ends: ["invalid", "serverInternal", "timeout"] },
  { name: "prints-too-much", body: "head -c 70000 /dev/zero", ends: ["invalid", "serverInternal", "failed"] },
  { name: "forks", body: `${sleeping} & exit 0`, ends: ["invalid", "serverInternal", "rejected"] },
  { name: "closes-stdin", body: "exec <&-; exit 1", ends: ["invalid", "serverInternal", "failed"] },
  { name: "prints-garbage", body: "head -c 1000 /dev/urandom", ends: ["invalid", "serverInternal", "rejected"] },
  { name: "prints-nothing", body: "exit 0", ends: ["invalid", "serverInternal", "rejected"] },
  { name: "wrong-key", body: `cat '${wrongKeyChain()}'`, ends: ["invalid", "serverInternal", "rejected"] },
  { name: "kills-itself", body: "kill -9 $$", ends: ["invalid", "serverInternal", "failed"] },
  { name: "exit-1", body: "echo no; exit 1", ends: ["invalid", "serverInternal", "failed"] },
  { name: "exit-2", body: "echo no; exit 2", ends: ["invalid", "serverInternal", "failed"] },
  { name: "exit-3", body: "echo 'that name is taken'; exit 3", ends: ["invalid", "badCSR", ""] },
  { name: "exit-4", body: "exit 4", ends: ["invalid", "serverInternal", "failed"] },
  { name: "exit-127", body: "exit 127", ends: ["invalid", "serverInternal", "failed"] }
]

const profileFor = (name: string, script: string, more = "") =>
  `[profiles.${name}.signer]\nbackend = "custom"\n[profiles.${name}.signer.custom]\nscript_path = "${script}"\n${more}\n`

describe("the recipe with OpenSSL, when it is called directly", () => {
  const run = promisify(execFile)
  const asked = async (directory: string, orderId: string, csr: Buffer) => {
    const env = {
      PATH: process.env["PATH"],
      ACME_SIGNER_HOOK: "issue",
      ACME_SIGNER_ORDER_ID: orderId,
      ACME_SIGNER_IDENTIFIERS: "a.example"
    }
    const asking = run(recipe, [directory], { env })
    asking.child.stdin?.end(
      JSON.stringify({
        hook: "issue",
        order_id: orderId,
        csr_der_base64: csr.toString("base64"),
        certificate_kind: "default"
      })
    )
    return (await asking).stdout
  }

  it("gives an order one certificate even if it is called several times at once", async () => {
    const directory = freshDirectory()
    const { csr } = makeCsr({ names: ["a.example"] })
    const [order, other] = ["01890000-0000-7000-8000-000000000001", "01890000-0000-7000-8000-000000000002"]
    const [one, two, another] = await Promise.all([
      asked(directory, order, csr),
      asked(directory, order, csr),
      asked(directory, other, csr)
    ])
    assert.match(one, /^-----BEGIN CERTIFICATE-----/)
    assert.strictEqual(two, one)
    assert.strictEqual(await asked(directory, order, csr), one)
    assert.notStrictEqual(another, one)
    assert.sameMembers(readdirSync(join(directory, "issued")), [order, other])
  })

  it("rejects an order id that is a path", async () => {
    const { csr } = makeCsr({ names: ["a.example"] })
    for (const id of ["../ca.key", "a/b", ".new", ""]) {
      const refused: unknown = await asked(freshDirectory(), id, csr).catch((error: unknown) => error)
      assert.match(String((refused as { readonly stderr?: string }).stderr), /no name for a file/)
    }
  })
})

describe.each(databases)("a script that signs on $name", (backend) => {
  let ground: Ground
  const [first, second, third] = [freshDirectory(), freshDirectory(), freshDirectory()]
  let [fails, hold, config, databaseUrl] = ["", "", "", ""]
  beforeAll(async () => {
    await builtServer()
    fails = join(freshDirectory(), "fails")
    hold = join(freshDirectory(), "hold")
    const flaky = shellScript(
      `if [ "$ACME_SIGNER_HOOK" = revoke ] && [ -e '${fails}' ]; then echo 'the HSM is away'; exit 1; fi; exec '${recipe}' '${second}'`
    )
    config = [
      "[server]\nrequest_timeout_ms = 5500\n[jobs]\nmax_attempts = 2\nretry_base_seconds = 1\n",
      profileFor("default", recipe, `args = ["${first}"]\nsupports_crl = true`),
      profileFor("flaky", flaky),
      profileFor(
        "banner",
        shellScript(`[ "$ACME_SIGNER_HOOK" = revoke ] || echo Signed:; exec '${recipe}' '${third}'`)
      ),
      profileFor(
        "slow",
        shellScript(
          `[ "$ACME_SIGNER_HOOK" = revoke ] || while [ -e '${hold}' ]; do sleep 0.05; done; exec '${recipe}' '${third}'`
        )
      ),
      // Only the script that never ends may reach its time limit.
      ...misbehaviours.map(({ body, ends: [, , log], name }) =>
        profileFor(name, shellScript(body), log === "timeout" ? "timeout_ms = 1000" : "")
      )
    ].join("\n")
    databaseUrl = await backend.freshUrl()
    ground = await startGround({ databaseUrl, config })
  })
  afterAll(async () => {
    await ground.dispose()
  })

  const sessionAt = (profile: string) =>
    AcmeSession.open(ground.server.directoryUrl.replace("/default/", `/${profile}/`))

  const finalized = async (session: AcmeSession, ...names: ReadonlyArray<string>) => {
    await session.register()
    const { body, url } = await session.newOrder(names)
    await session.authorize(body, ground.responder.tokens)
    await session.awaitOrder(url, ["ready"])
    // Careless clients make such CSRs, with the version number of certificates, and with a name only in the subject.
    const [commonName = "", ...others] = names
    const { csr } = makeCsr({
      names: others,
      commonNames: [commonName],
      withoutSan: others.length === 0,
      version: 2
    })
    const answer = await session.finalize(body, csr)
    assert.deepStrictEqual([answer.status, answer.headers["retry-after"]], [200, "0"])
    return session.awaitOrder(url, ["valid", "invalid"])
  }

  it("gets its certificates stored, revoked and listed by the service if it is the recipe with OpenSSL", async () => {
    const session = await sessionAt("default")
    const order = await finalized(session, "a.example", "b.example")
    assert.strictEqual(order.status, "valid")
    const chain = await session.download(order.certificate ?? "")
    const leaf = new X509Certificate(chain)
    const ca = join(first, "ca.pem")
    assert.isTrue(leaf.verify(new X509Certificate(readFileSync(ca)).publicKey))
    const directory = freshDirectory()
    writeFileSync(join(directory, "leaf"), chain)
    execFileSync("openssl", ["verify", "-x509_strict", "-CAfile", ca, join(directory, "leaf")], { stdio: "ignore" })
    assert.strictEqual(leaf.subjectAltName, "DNS:a.example, DNS:b.example")

    const list = async () => {
      const answer = await fetch(ground.server.directoryUrl.replace("/directory", "/crl"))
      assert.strictEqual(answer.status, 200)
      const body = Buffer.from(await answer.arrayBuffer())
      return execFileSync("openssl", ["crl", "-inform", "DER", "-noout", "-text"], { input: body }).toString()
    }
    assert.notInclude(await list(), leaf.serialNumber)
    const revoke = { certificate: leaf.raw.toString("base64url"), reason: 4 }
    assert.strictEqual((await session.post(session.directory.revokeCert ?? "", revoke)).status, 200)
    const again = await session.post(session.directory.revokeCert ?? "", revoke)
    assert.deepStrictEqual([again.status, (again.json as { readonly type: string }).type], [
      400,
      "urn:ietf:params:acme:error:alreadyRevoked"
    ])
    assert.include(readFileSync(join(first, "books"), "utf8"), leaf.serialNumber)
    session.close()
  })

  it("leaves a certificate unrevoked until it succeeds in revoking the certificate", async () => {
    const session = await sessionAt("flaky")
    const order = await finalized(session, "a.example")
    const leaf = new X509Certificate(await session.download(order.certificate ?? ""))
    writeFileSync(fails, "")
    const revoke = { certificate: leaf.raw.toString("base64url") }
    // On a slow machine the client may first learn that the revocation is still in progress.
    const ask = () => session.post(session.directory.revokeCert ?? "", revoke)
    let refused = await ask()
    for (let more = 5; more > 0 && refused.status === 503; more--) refused = await ask()
    assert.deepStrictEqual([refused.status, refused.headers["retry-after"]], [500, undefined])
    const command = { config, env: { ACME_SVC_DATABASE__URL: databaseUrl } }
    const id = order.finalize.split("/").at(-2) ?? ""
    const failed = await commandLine(["order", "revoke", id], command)
    assert.strictEqual(failed.code, 1, failed.stdout)
    assert.match(failed.stderr, /^Job \S+ is failed: script_failed: the HSM is away\n$/)
    rmSync(fails)
    const revoked = await commandLine(["order", "revoke", id, "--reason", "4"], command)
    assert.deepStrictEqual([revoked.code, revoked.stderr], [0, ""])
    assert.match(revoked.stdout, /^Job \S+ asks the signer to revoke the certificate\.\nRevoked\.\n$/)
    const again = await commandLine(["order", "revoke", id], command)
    assert.deepStrictEqual([again.code, again.stderr], [3, "The certificate is revoked already.\n"])
    session.close()
  })

  it("is asked to revoke a certificate that it signed for an order that has ended", async () => {
    const banner = await sessionAt("banner")
    const refused = await finalized(banner, "banner.example")
    assert.strictEqual(refused.error?.type, "urn:ietf:params:acme:error:serverInternal")
    const slow = await sessionAt("slow")
    await slow.register()
    const { body, url } = await slow.newOrder(["slow.example"])
    await slow.authorize(body, ground.responder.tokens)
    await slow.awaitOrder(url, ["ready"])
    writeFileSync(hold, "")
    await slow.finalize(body, makeCsr({ names: ["slow.example"] }).csr)
    await slow.deactivate()
    rmSync(hold)
    for (const profile of ["banner", "slow"]) {
      await ground.server.waitForEvent("certificate_orphan_revoked", {
        where: ({ fields }) => fields["profile"] === profile
      })
    }
    const command = { config, env: { ACME_SVC_DATABASE__URL: databaseUrl } }
    interface Listed {
      readonly items: ReadonlyArray<{ readonly serial: string; readonly status: string; readonly profile: string }>
    }
    const { stdout } = await commandLine(["order", "orphaned", "--json"], command)
    const { items } = JSON.parse(stdout) as Listed
    assert.sameMembers(items.map(({ profile, status }) => `${profile} ${status}`), ["banner revoked", "slow revoked"])
    const books = readFileSync(join(third, "books"), "utf8")
    const entries = books.trim().split("\n")
    assert.lengthOf(entries, 2)
    for (const { serial } of items) assert.match(books, new RegExp(`^R.*${serial}`, "im"))
    banner.close()
    slow.close()
  })

  it("makes the order end without a stored certificate if it misbehaves, and leaves no process", async () => {
    const ended = await Promise.all(misbehaviours.map(async ({ name }) => {
      const session = await sessionAt(name)
      const order = await finalized(session, `${name}.example`)
      session.close()
      return { name, order }
    }))
    const records = ground.server.records()
    for (const { ends: [status, problem, log], name } of misbehaviours) {
      const order = ended.find((one) => one.name === name)?.order
      assert.strictEqual(order?.status, status, name)
      assert.isUndefined(order?.certificate, name)
      assert.strictEqual(order?.error?.type, `urn:ietf:params:acme:error:${problem}`, name)
      const id = order?.finalize.split("/").at(-2)
      const rejected = records.filter(({ fields }) =>
        fields["event"] === "order_finalize_chain_rejected" && fields["order_id"] === id
      )
      assert.strictEqual(rejected.length, log === "rejected" ? 1 : 0, name)
    }
    assert.strictEqual(
      ended.find(({ name }) => name === "exit-3")?.order.error?.detail,
      "that name is taken"
    )
    const scripts = execFileSync("ps", ["-eo", "args"]).toString()
    assert.notInclude(scripts.split("\n"), sleeping)
  })
})
