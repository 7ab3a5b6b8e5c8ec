import { Effect } from "effect"
import { generateKeyPairSync } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { makeCsr } from "../support/Csr.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { useTests } from "../support/UseTests.ts"

/* `kinds list` and `kinds try`: what certificates contain, and which certificate a CSR would become. */

const startsAt = 1_800_000_000
const { test } = useTests({ startsAt })

const pem = (label: string, der: Uint8Array): string =>
  `-----BEGIN ${label}-----\n${
    Buffer.from(der).toString("base64").replaceAll(/.{64}/g, "$&\n")
  }\n-----END ${label}-----\n`

const place = () =>
  freshPlace((directory) =>
    `[profiles.corp]
[profiles.corp.certificates]
default = "server"
[profiles.corp.certificates.kinds]
default.description = "As before"
server.description = "One week"
server.validity = "7d"
mutual.description = "Both"
mutual.validity = "6h"
mutual.usages = ["server_auth", "client_auth"]
mutual.keys = ["ecdsa-p256"]
mutual.common_name = "first"
mutual.subject = { organization = "Example, Inc.", country = "CH" }
mutual.policies = ["1.3.6.1.4.1.99999.1"]
[profiles.script]
[profiles.script.signer]
backend = "custom"
custom.script_path = "${directory}/sign"
[profiles.parked]
enabled = false
`
  )

const names = ["a.example", "b.example"]
const asked = ["--name", "a.example", "--name", "b.example"]

describe("kinds list", () => {
  test("lists the kinds of the served profiles, or of one of them", () =>
    Effect.gen(function*() {
      const { run } = place()
      yield* run(["migrate"])
      const { out } = yield* run(["kinds", "list", "--json"])
      const { items, total } = JSON.parse(out)
      assert.strictEqual(total, 4)
      assert.deepStrictEqual(
        items.map((one: { profile: string; kind: string; isDefault: boolean }) => [
          one.profile,
          one.kind,
          one.isDefault
        ]),
        [
          ["corp", "default", false],
          ["corp", "mutual", false],
          ["corp", "server", true],
          ["script", "default", true]
        ]
      )
      assert.deepStrictEqual(items[1], {
        profile: "corp",
        kind: "mutual",
        isDefault: false,
        description: "Both",
        backend: "local_ca",
        validity: "6h",
        usages: ["server_auth", "client_auth"],
        commonName: "first",
        subject: { country: "CH", organization: "Example, Inc." },
        policies: ["1.3.6.1.4.1.99999.1"],
        keys: ["ecdsa-p256"],
        unrequested: "refuse"
      })
      assert.notProperty(items[3], "validity", "the program decides it")
      const table = yield* run(["kinds", "list", "--profile", "corp"])
      assert.match(table.out, /^corp +server +yes +7d +server_auth +/m)
      assert.include(table.out, "3 of 3 row(s).")
      for (const profile of ["parked", "none"]) {
        const { code, err } = yield* run(["kinds", "list", "--profile", profile])
        assert.strictEqual(code, 3, profile)
        assert.include(err, "--profile takes the name of a profile that is served: corp, script.")
      }
    }))
})

describe("kinds try", () => {
  /** Makes a place whose CA exists, and a function that tries a CSR. */
  const ready = Effect.gen(function*() {
    const { directory, run } = place()
    const made = yield* run(["init"])
    assert.strictEqual(made.code, 0, made.err)
    const tries = (content: Uint8Array | string, ...words: ReadonlyArray<string>) => {
      writeFileSync(join(directory, "request"), content)
      return run(["kinds", "try", "request", ...words])
    }
    return { run, tries }
  })

  test("prints the certificate that a CSR would become, from PEM, DER, base64 and standard input alike", () =>
    Effect.gen(function*() {
      const { run, tries } = yield* ready
      const { csr } = makeCsr({ names })
      const words = ["--profile", "corp", "--kind", "mutual", ...asked, "--json"]
      const first = yield* tries(pem("CERTIFICATE REQUEST", csr), ...words)
      assert.strictEqual(first.code, 0, first.out)
      const { certificate, ...about } = JSON.parse(first.out)
      assert.deepStrictEqual(about, { profile: "corp", kind: "mutual", backend: "local_ca", outcome: "accepted" })
      assert.deepInclude(certificate, {
        subject: "C=CH, O=Example\\, Inc., CN=a.example",
        sans: names,
        sansCritical: false,
        keyUsage: ["digitalSignature"],
        extendedKeyUsage: ["serverAuth", "clientAuth"],
        policies: ["1.3.6.1.4.1.99999.1"],
        keyType: "ecdsa-p256",
        notAfter: new Date((startsAt + 6 * 3600) * 1000).toISOString().replace(".000", "")
      })
      for (
        const content of [csr, csr.toString("base64"), csr.toString("base64url"), pem("NEW CERTIFICATE REQUEST", csr)]
      ) {
        assert.strictEqual((yield* tries(content, ...words)).out, first.out)
      }
      const piped = yield* run(["kinds", "try", "-", ...words], { piped: csr })
      assert.strictEqual(piped.out, first.out)
      const usual = yield* tries(csr, "--profile", "corp", ...asked)
      assert.match(usual.out, /^kind +server$/m)
      assert.match(usual.out, /^subject +empty$/m)
      assert.match(usual.out, /^subject alt name +a\.example, b\.example, \(critical\)$/m)
      assert.match(usual.out, /^extended key usage +serverAuth$/m)
    }))

  test("prints the refusal that a client would get, and ends with code 3", () =>
    Effect.gen(function*() {
      const { tries } = yield* ready
      const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey
      const at = ["--profile", "corp"]
      for (
        const [request, words, said] of [
          [{ names }, [...at, "--name", "a.example"], "badCSR: The CSR asks for b.example, which the order lacks."],
          [{ names: ["a.example"] }, [...at, ...asked], "badCSR: The CSR lacks b.example, which the order has."],
          [{ names, key: rsa }, [...at, ...asked, "--kind", "mutual"], "badCSR: The key is rsa-2048"],
          [{ names, commonNames: ["c.example"] }, [...at, ...asked], "badCSR: The CSR has the common name c.example"],
          [{ names }, [...at, "--name", "a_b"], "400 "],
          [
            { names: ["*.a.example"] },
            [...at, "--name", "*.a.example"],
            "A wildcard needs dns-01, which this profile does not offer."
          ]
        ] as const
      ) {
        const { code, err, out } = yield* tries(makeCsr(request).csr, ...words)
        assert.strictEqual(code, 3, said)
        assert.match(out, /^outcome +refused$/m, said)
        assert.include(out, said)
        assert.include(err, "A client would be refused.")
      }
    }))

  test("leaves the content to a program, and judges only the request", () =>
    Effect.gen(function*() {
      const { tries } = yield* ready
      const at = ["--profile", "script", ...asked]
      const accepted = yield* tries(makeCsr({ names }).csr, ...at)
      assert.strictEqual(accepted.code, 0, accepted.err)
      assert.include(accepted.out, "The signer (custom) decides what the certificate contains.")
      const refused = yield* tries(makeCsr({ names, commonNames: ["Free text"] }).csr, ...at)
      assert.strictEqual(refused.code, 3)
      assert.include(refused.out, "badCSR")
    }))

  test("says what is wrong with input that is no CSR, and with an unknown profile or kind", () =>
    Effect.gen(function*() {
      const { run, tries } = yield* ready
      const { csr } = makeCsr({ names })
      const good = pem("CERTIFICATE REQUEST", csr)
      const words = ["--profile", "corp", ...asked]
      for (
        const [content, code, said] of [
          ["", 2, "<csr> takes a CSR; this is empty."],
          ["no CSR!", 2, "<csr> takes a CSR: PEM, or DER as base64."],
          [pem("CERTIFICATE", csr), 2, "this is the PEM of a CERTIFICATE."],
          [good + good, 2, "this PEM has 2 blocks."],
          [good.slice(0, 100), 2, "<csr> is not PEM: "],
          ["x".repeat(1_048_576), 3, "<csr>: request cannot be used: too large."],
          [csr.subarray(0, 100), 3, "A client would be refused."]
        ] as const
      ) {
        const ended = yield* tries(content, ...words)
        assert.strictEqual(ended.code, code, said)
        assert.include(ended.err, said)
      }
      const long = yield* run(["kinds", "try", "-", ...words], { piped: "x".repeat(70_000) })
      assert.strictEqual(long.code, 3)
      assert.include(long.err, "standard input has more than 65536 octets")
      const absent = yield* run(["kinds", "try", "nothing", ...words])
      assert.strictEqual(absent.code, 3)
      assert.include(absent.err, "<csr>: nothing cannot be used: no such file or directory")
      for (const profile of ["parked", "none"]) {
        const { code, err } = yield* tries(csr, "--profile", profile, ...asked)
        assert.strictEqual(code, 3)
        assert.include(err, "--profile takes the name of a profile that is served: corp, script.")
      }
      const { code, err } = yield* tries(csr, ...words, "--kind", "bogus")
      assert.strictEqual(code, 3)
      assert.include(err, "--kind takes one of default, mutual, server, not")
      assert.strictEqual((yield* tries(csr, "--profile", "corp")).code, 2, "no names")
    }))
})
