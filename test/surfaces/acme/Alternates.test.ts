import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { X509Certificate } from "node:crypto"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe } from "vitest"
import { permittedNames } from "../../../src/crypto/x509/NameConstraints.ts"
import type { LocalCaSettings } from "../../../src/services/signing/ConfiguredCas.ts"
import * as LocalCa from "../../../src/services/signing/LocalCa.ts"
import { databases, freshDirectory } from "../../support/Databases.ts"
import {
  accountKeyOf,
  callerAt,
  column,
  configOf,
  fieldsOf,
  newPrivateKey,
  profileOf,
  world
} from "../../support/Graph.ts"
import { acmeKey, at, byAccount, newClient, register, surfaceOf, urlOf } from "../../support/Handle.ts"
import { issueTo, profilesIn } from "../../support/Issued.ts"
import { daySeconds, foreignCa, issueRequest, keyPem, madeAt, settingsIn } from "../../support/LocalCa.ts"
import type { Making } from "../../support/UseTests.ts"
import { useStore, useTests } from "../../support/UseTests.ts"
import { watched } from "../../support/Watched.ts"

/* The chains among which a client chooses (RFC 8555 section 7.4.2). */

const config = configOf()

/** A CA with certificates by two roots, and the files that can be given as cross-certificates. */
const crossedIn = (directory: string): LocalCaSettings => {
  const key = newPrivateKey()
  const [one, two, three] = ["One", "Two", "Three"].map((name) => foreignCa({ name: `Root ${name}` }))
  const below = (root = one, more: Partial<Parameters<typeof foreignCa>[0]> = {}) =>
    foreignCa({ name: "Issuing", key, ...root === undefined ? {} : { issuer: root }, ...more }).certificatePem
  const usual = below() + (one?.certificatePem ?? "")
  const files: { readonly [name: string]: string } = {
    "ca.pem": usual,
    "two.pem": below(two) + (two?.certificatePem ?? ""),
    "three.pem": `# by the third root\r\n${below(three)}`,
    "narrow.pem": below(two, { more: [permittedNames(["b.example"])] }) + (two?.certificatePem ?? ""),
    "ended.pem": below(two, { notAfter: madeAt + daySeconds }) + (two?.certificatePem ?? ""),
    "same.pem": usual,
    "other-key.pem": foreignCa({ name: "Issuing", ...two === undefined ? {} : { issuer: two } }).certificatePem,
    "other-name.pem": foreignCa({ name: "Other", key, ...two === undefined ? {} : { issuer: two } }).certificatePem,
    "no-identifier.pem": below(two, { without: ["subjectKeyIdentifier"] }),
    "wrong-order.pem": (two?.certificatePem ?? "") + below(two),
    "other-root.pem": below(two) + (three?.certificatePem ?? ""),
    "text.pem": "no certificate"
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
  writeFileSync(join(directory, "ca.key"), keyPem(key), { mode: 0o600 })
  return settingsIn(directory)
}

const partsOf = (chain: unknown) => String(chain).split(/(?<=-----END CERTIFICATE-----\n)/)

describe.each(databases)("the chains of a certificate on $name", (backend) => {
  let directory = ""
  const { records, test } = useStore(backend, {
    startsAt: madeAt,
    layer: ({ name, records }: Making<unknown>) => {
      directory = freshDirectory()
      crossedIn(directory)
      const cross_cert_paths = ["two", "narrow", "three", "other-key"].map((file) => join(directory, `${file}.pem`))
      return world({ records, seed: name, profiles: profilesIn(directory, { cross_cert_paths }) })
    },
    around: watched
  })

  test("are linked to each other, and are the same after the files have gone", () =>
    Effect.gen(function*() {
      const key = acmeKey()
      const app = yield* surfaceOf(config)
      const caller = yield* callerAt(profileOf(config), accountKeyOf(key.privateKey))
      const kid = yield* register(app, key)
      const issued = yield* issueTo(caller, ["a.example"])
      const path = at(`/certificate/${issued.orderId}`)
      for (const file of ["two", "three"]) rmSync(join(directory, `${file}.pem`))
      const get = (to: string) => Effect.flatMap(byAccount(key, kid, to), app.handle)
      const chains = yield* Effect.forEach(["", "/1", "/2"], (position) => get(`${path}${position}`))
      const [usual, ...others] = chains.map(({ body }) => partsOf(body).filter((part) => part !== ""))
      const links = chains.map(({ headers }) => [headers["link"] ?? ""].flat().filter((link) => /alternate/.test(link)))
      const to = (position: string) => `<${urlOf(`${path}${position}`)}>;rel="alternate"`
      assert.deepStrictEqual(links, [[to("/1"), to("/2")], [to(""), to("/2")], [to(""), to("/1")]])
      assert.deepStrictEqual(chains.map(({ headers, status }) => [status, headers["content-type"]]), [
        [200, "application/pem-certificate-chain"],
        [200, "application/pem-certificate-chain"],
        [200, "application/pem-certificate-chain"]
      ])
      assert.strictEqual(usual?.join(""), issued.chain)
      assert.deepStrictEqual(others.map((chain) => chain[0]), [usual?.[0], usual?.[0]])
      const issuers = chains.map(({ body }) => new X509Certificate(partsOf(body)[1] ?? "").issuer)
      assert.deepStrictEqual(issuers, ["CN=Root One", "CN=Root Two", "CN=Root Three"])
      const leaf = new X509Certificate(issued.chain)
      for (const { body } of chains) assert.isTrue(leaf.verify(new X509Certificate(partsOf(body)[1] ?? "").publicKey))
      for (const position of ["/0", "/3", "/4", "/5", "/-1", "/01", "/x", "/1/1"]) {
        assert.strictEqual((yield* get(`${path}${position}`)).status, 404, position)
      }
      assert.strictEqual((yield* (yield* newClient(app)).send(`${path}/1`)).status, 404)
      assert.lengthOf(fieldsOf(records, "certificate_served"), 3)
    }))

  test("share their rows, and leave out those that are not for the names", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      yield* issueTo(caller, ["a.example"])
      yield* issueTo(caller, ["b.example"])
      yield* issueTo(caller, ["c.b.example"])
      const counts = (yield* column("SELECT alternate_chains FROM orders ORDER BY id")).map((ids) =>
        (JSON.parse(String(ids)) as ReadonlyArray<string>).length
      )
      assert.deepStrictEqual(counts, [2, 3, 3])
      // The issuers of the usual chain have a row too.
      assert.lengthOf(yield* column("SELECT id FROM alternate_chains"), 4)
    }))
})

describe("a cross-certificate", () => {
  const { records, test } = useTests({
    startsAt: madeAt,
    first: () => Effect.sync(() => crossedIn(freshDirectory()))
  })
  const pathOf = ({ cert_path }: LocalCaSettings, file: string) => join(dirname(cert_path), `${file}.pem`)

  for (
    const [file, fault] of [
      ["other-key", "its first certificate has another key than the CA"],
      ["other-name", "its first certificate has another subject than the CA"],
      ["no-identifier", "its first certificate has another subject key identifier than the CA"],
      ["wrong-order", "certificate 2 of the certificate file did not issue certificate 1"],
      ["other-root", "certificate 2 of the certificate file did not issue certificate 1"],
      ["same", "it has the same chain as the CA"],
      ["text", "the certificate file"],
      ["absent", "no such file or directory"]
    ] as const
  ) {
    test(`that cannot be one (${file}) is refused by the check, and stops nothing`, (ca) =>
      Effect.gen(function*() {
        const path = pathOf(ca, file)
        const settings = { ...ca, cross_cert_paths: [path] }
        const refused = yield* Effect.flip(LocalCa.check(settings))
        assert.include(refused.detail, `signer.local_ca.cross_cert_paths: ${path} cannot be used: `)
        assert.include(refused.detail, fault)
        const { issue } = yield* LocalCa.make(settings)
        assert.deepStrictEqual((yield* issue(issueRequest(["a.example"]))).alternates, [])
        assert.deepStrictEqual(
          fieldsOf(records, "local_ca_cross_certificate_unusable").map(({ error }) => error),
          [refused.detail]
        )
      }))
  }

  test("whose chain has ended is not offered any more", (ca) =>
    Effect.gen(function*() {
      const { issue } = yield* LocalCa.make({ ...ca, cross_cert_paths: [pathOf(ca, "ended")] })
      const offered = Effect.map(issue(issueRequest(["a.example"])), ({ alternates }) => alternates)
      assert.deepStrictEqual(yield* offered, [readFileSync(pathOf(ca, "ended"), "utf8")])
      yield* TestClock.adjust((daySeconds + 1) * 1000)
      assert.deepStrictEqual(yield* offered, [])
    }))
})
