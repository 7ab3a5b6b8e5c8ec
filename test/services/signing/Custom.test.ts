import { it } from "@effect/vitest"
import { Clock, Effect, Layer, Redacted, Result } from "effect"
import { TestClock } from "effect/testing"
import { X509Certificate } from "node:crypto"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import { parseCsr } from "../../../src/crypto/x509/Csr.ts"
import { findLeaf } from "../../../src/crypto/x509/FoundLeaf.ts"
import { keyPurposes } from "../../../src/crypto/x509/KeyPurpose.ts"
import { leafContent } from "../../../src/crypto/x509/LeafContent.ts"
import { Scripts } from "../../../src/engine/host/Scripts.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import * as Custom from "../../../src/services/signing/Custom.ts"
import * as LocalCa from "../../../src/services/signing/LocalCa.ts"
import type { IssueRequest } from "../../../src/services/signing/Signer.ts"
import type { CustomSettings } from "../../../src/services/signing/SignerScript.ts"
import { cn, csrOf, dns, ext, hexed, oid, openssl, pem, sanOf, seq, utf8 } from "../../crypto/Pki.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { newPrivateKey } from "../../support/Graph.ts"
import { kindOf } from "../../support/Kinds.ts"
import { daySeconds, issueRequest, madeAt, settingsIn } from "../../support/LocalCa.ts"
import { longEnough } from "../../support/LongEnough.ts"
import { offline } from "../../support/Offline.ts"
import { makeCa } from "../../support/Openssl.ts"
import { shellScript } from "../../support/Script.ts"

/*
 * Tests docs/configure/signers.md, "A program", and docs/contribute/attacks.md, "Scripts that sign", with real
 * programs.
 */

const settings = (script_path: string, more: Partial<CustomSettings> = {}): CustomSettings => ({
  script_path,
  args: Redacted.make([]),
  timeout_ms: 20_000,
  supports_crl: false,
  supports_renewal_info: false,
  ...more
})

const made = (path: string, more?: Partial<CustomSettings>) =>
  Effect.provide(Custom.make(settings(path, more)), Scripts.layer)

const request = issueRequest(["a.example", "*.b.example"])

/** Makes a chain that a CA of the test signs for a request. */
const chainFor = (asked: IssueRequest) =>
  Effect.flatMap(LocalCa.make(settingsIn(freshDirectory())), (ca) => ca.issue(asked)).pipe(
    Effect.provide(Layer.merge(Entropy.layer, offline)),
    Effect.map(({ chain }) => chain)
  )

/** Writes a program that prints a text and ends. */
const printing = (text: string, exit = 0): string => {
  const file = join(freshDirectory(), "output")
  writeFileSync(file, text)
  return shellScript(`cat > /dev/null; cat '${file}'; exit ${exit}`)
}

const issueBy = (path: string, more?: Partial<CustomSettings>, asked = request) =>
  Effect.flatMap(made(path, more), ({ issue }) => issue(asked))

/** Returns how an issuance by a program fails, and its log. */
const failureOf = (path: string, more?: Partial<CustomSettings>, asked = request) =>
  Effect.gen(function*() {
    const records: Array<Record> = []
    const error = yield* Effect.provide(Effect.flip(issueBy(path, more, asked)), layerMemory(records))
    const cause = error._tag === "SigningFailed" ? error.cause : error._tag
    return { cause, detail: error.detail, made: error._tag === "SigningFailed" ? error.made : undefined, records }
  })

describe("the hook issue", () => {
  it.live("gets the order, its names and the CSR in standard base64, and no other data of the service", () =>
    Effect.gen(function*() {
      const seen = freshDirectory()
      const script = shellScript(
        `env > '${seen}/env'; for one; do printf '%s\\n' "$one"; done > '${seen}/args'; cat > '${seen}/stdin'; exit 1`
      )
      yield* failureOf(script, { args: Redacted.make(["--flag", "$(id)", "-n", "a b"]) })
      const environment = readFileSync(join(seen, "env"), "utf8").trim().split("\n").sort()
      assert.deepStrictEqual(environment.filter((line) => !/^(?:PATH|PWD|SHLVL|_|OLDPWD)=/.test(line)), [
        "ACME_SIGNER_HOOK=issue",
        "ACME_SIGNER_IDENTIFIERS=a.example,*.b.example",
        "ACME_SIGNER_ORDER_ID=order"
      ])
      assert.deepStrictEqual(readFileSync(join(seen, "args"), "utf8"), "--flag\n$(id)\n-n\na b\n")
      assert.deepStrictEqual(JSON.parse(readFileSync(join(seen, "stdin"), "utf8")), {
        hook: "issue",
        order_id: "order",
        identifiers: [{ type: "dns", value: "a.example" }, { type: "dns", value: "*.b.example" }],
        csr_der_base64: Buffer.from(request.csr.der).toString("base64"),
        certificate_kind: "default"
      })
    }))

  it.live("prints a chain, whose blanks at the end are replaced by one newline", () =>
    Effect.gen(function*() {
      const chain = yield* chainFor(request)
      for (const text of [chain, chain.trimEnd(), `${chain}\n \n\t\n`]) {
        const issued = yield* issueBy(printing(text))
        const leaf = new X509Certificate(chain)
        assert.strictEqual(issued.chain, chain)
        assert.strictEqual(issued.serial, leaf.serialNumber.toLowerCase())
        assert.strictEqual(issued.notAfter, Date.parse(leaf.validTo) / 1000)
      }
    }))

  it.live("may ignore its input", () =>
    Effect.gen(function*() {
      const file = join(freshDirectory(), "chain")
      writeFileSync(file, yield* chainFor(request))
      assert.include((yield* issueBy(shellScript(`exec <&-; cat '${file}'`))).chain, "BEGIN CERTIFICATE")
    }))

  for (
    const [said, expected] of [
      ["echo 'no such zone'; echo worse >&2", "no such zone"],
      ["echo; echo ' '; echo second", "second"],
      ["echo 'told on stderr' >&2", "told on stderr"],
      ["printf 'red \\033[31m\\007text\\n'", "red [31m text"],
      [":", "the script ended with 3"]
    ] as const
  ) {
    it.live(`reports a bad CSR by exit 3, with the first line as the reason: ${JSON.stringify(expected)}`, () =>
      Effect.gen(function*() {
        const { cause, detail, records } = yield* failureOf(shellScript(`${said}; exit 3`))
        assert.deepStrictEqual([cause, detail, records], ["CsrRejected", expected, []])
      }))
  }

  for (const exit of [1, 2, 4, 125, 126, 127, 255]) {
    it.live(`is tried again after exit ${exit}`, () =>
      Effect.gen(function*() {
        const { cause, detail, records } = yield* failureOf(shellScript(`echo 'the HSM is away'; exit ${exit}`))
        assert.deepStrictEqual([cause, detail], ["script_failed", "the HSM is away"])
        const [{ event, fields } = { event: "", fields: {} }] = records
        assert.strictEqual(event, "signer_script_failed")
        assert.deepInclude(fields, { hook: "issue", exit_code: exit, error: "the HSM is away" })
      }))
  }

  it.live("has all its output in the log if it fails, with the first line as the error", () =>
    Effect.gen(function*() {
      const said = "echo Traceback; echo '  line 7'; printf 'red \\033[31m\\n\\n' >&2; echo 'KeyError: zone' >&2"
      const { detail, records: [record] } = yield* failureOf(shellScript(`${said}; exit 1`))
      assert.strictEqual(detail, "Traceback")
      assert.strictEqual(record?.fields["output"], "line 7 | red [31m | KeyError: zone")
      const long = yield* failureOf(shellScript("seq 10000; exit 1"))
      assert.strictEqual(String(long.records[0]?.fields["output"]).length, 2000)
      const short = yield* failureOf(shellScript("echo one; exit 1"))
      assert.isUndefined(short.records[0]?.fields["output"])
    }))

  it.live("fails if a signal ends the program, or if the program does not exist or may not be run", () =>
    Effect.gen(function*() {
      const killed = yield* failureOf(shellScript("kill -9 $$"))
      assert.deepStrictEqual([killed.cause, killed.detail], ["script_failed", "the script ended with SIGKILL"])
      for (const [path, code] of [["/nowhere/at/all", "ENOENT"], [shellScript("", 0o600), "EACCES"]] as const) {
        const { cause, detail } = yield* failureOf(path)
        assert.strictEqual(cause, "script_failed")
        assert.match(detail ?? "", new RegExp(`^the script could not be started: .*${path} \\(${code}\\)$`))
      }
    }))

  it.live("is killed with all its children if it does not end in time", () =>
    Effect.gen(function*() {
      const pids = join(freshDirectory(), "pids")
      const script = shellScript(
        `trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo "$$ $!" > '${pids}.new'; mv '${pids}.new' '${pids}'; wait`
      )
      const started = yield* longEnough(500, (timeout_ms) =>
        Effect.gen(function*() {
          const { cause, detail, records } = yield* failureOf(script, { timeout_ms })
          assert.deepStrictEqual([cause, detail], ["script_failed", `the script did not end within ${timeout_ms} ms`])
          assert.deepStrictEqual(records.map(({ event }) => event), ["signer_script_timeout"])
          return existsSync(pids) ? readFileSync(pids, "utf8") : undefined
        }))
      for (const pid of started.split(" ").map(Number)) {
        yield* Effect.promise(async () => {
          while (existsSync(`/proc/${pid}`) && !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))) {
            await delay(10)
          }
        })
      }
    }))

  it.live("is not delayed by a grandchild that keeps the pipe open", () =>
    Effect.gen(function*() {
      const file = join(freshDirectory(), "chain")
      writeFileSync(file, yield* chainFor(request))
      assert.include((yield* issueBy(shellScript(`cat '${file}'; sleep 600 &`))).chain, "BEGIN CERTIFICATE")
    }))

  it.live("fails if its output exceeds the limit, however the program ends", () =>
    Effect.gen(function*() {
      const finite = yield* failureOf(shellScript("head -c 70000 /dev/zero | tr '\\0' x"))
      assert.deepStrictEqual([finite.cause, finite.detail], ["chain_rejected", "the script printed too much"])
      const endless = yield* failureOf(shellScript("yes"), { timeout_ms: 500 })
      assert.deepStrictEqual([endless.cause, endless.detail], [
        "script_failed",
        "the script printed more than the 65537 octets that are read, and did not end within 500 ms"
      ])
    }))
})

describe("the check of the chain that a program prints refuses", () => {
  /** Tests that this check refuses what a program prints, and that the log names the check. */
  const refused = (name: string, check: string, body: () => Effect.Effect<string, unknown, never>) =>
    it.effect(name, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(madeAt * 1000)
        const text = yield* body()
        const { cause, detail, made, records } = yield* Effect.provideService(
          failureOf(printing(text)),
          Clock.Clock,
          yield* Clock.Clock
        )
        assert.deepStrictEqual([cause, detail.split(":")[0]], ["chain_rejected", `the chain failed the check ${check}`])
        // A certificate for the key of the CSR is found at any position. A certificate for another key is not found.
        const cert_serial = findLeaf(text, request.csr.spki)?.serial
        assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields]), [
          ["order_finalize_chain_rejected", { order_id: "order", check, cert_serial }]
        ])
        assert.strictEqual(cert_serial !== undefined, made !== undefined)
        assert.strictEqual(cert_serial !== undefined, hasLeaf.has(name), name)
      }))

  const hasLeaf = new Set([
    "text before the chain",
    "a private key after the chain",
    "a certificate for fewer names",
    "a certificate for more names",
    "a certificate that is not valid yet",
    "the leaf after its issuer",
    "an issuer that did not sign the leaf",
    "a CA certificate that OpenSSL signs because it believes the request",
    "a hundred certificates"
  ])

  const another = () => {
    const key = newPrivateKey()
    const csr = csrOf({ key, extensions: [sanOf(...request.names.map((name) => dns(name)))] })
    return { ...request, csr: Result.getOrThrow(parseCsr(csr)) }
  }

  refused("nothing at all", "undecodable", () => Effect.succeed(""))
  refused("garbage", "undecodable", () => Effect.succeed("\0\u{fffd}garbage\n"))
  refused(
    "text before the chain",
    "undecodable",
    () => Effect.map(chainFor(request), (chain) => `Certificate:\n${chain}`)
  )
  refused(
    "a block that is not a certificate",
    "undecodable",
    () => Effect.succeed(pem("CERTIFICATE", Buffer.from("no DER")))
  )
  refused("a private key after the chain", "undecodable", () =>
    Effect.map(
      chainFor(request),
      (chain) => chain + newPrivateKey().export({ type: "pkcs8", format: "pem" }).toString()
    ))
  refused("a certificate for another key", "key", () => chainFor(another()))
  refused("a certificate for fewer names", "names", () => chainFor({ ...request, names: ["a.example"] }))
  refused(
    "a certificate for more names",
    "names",
    () => chainFor({ ...request, names: [...request.names, "c.example"] })
  )
  refused(
    "a certificate that is not valid yet",
    "validity",
    () => chainFor({ ...request, notBefore: madeAt + daySeconds, notAfter: undefined })
  )
  refused("the leaf after its issuer", "key", () =>
    Effect.map(chainFor(request), (chain) => {
      const [leaf = "", issuer = ""] = chain.split(/(?<=-----END CERTIFICATE-----\n)/)
      return issuer + leaf
    }))
  refused("an issuer that did not sign the leaf", "sequence", () =>
    Effect.gen(function*() {
      const [one, two] = [yield* chainFor(request), yield* chainFor(request)]
      const [leaf = ""] = one.split(/(?<=-----END CERTIFICATE-----\n)/)
      return leaf + (two.split(/(?<=-----END CERTIFICATE-----\n)/)[1] ?? "")
    }))
  refused(
    "a CA certificate that OpenSSL signs because it believes the request",
    "authority",
    () =>
      Effect.gen(function*() {
        const directory = freshDirectory()
        const [certificate, key, csr] = [join(directory, "ca.pem"), join(directory, "ca.key"), join(directory, "csr")]
        makeCa(certificate, key, "Believes")
        const wanted = [
          sanOf(...request.names.map((name) => dns(name))),
          ext("2.5.29.19", hexed("30030101ff"), true),
          ext("2.5.29.15", hexed("03020204"), true)
        ]
        writeFileSync(csr, csrOf({ subject: seq(cn(utf8("The Bank"))), extensions: wanted }))
        const files = ["-in", csr, "-inform", "DER", "-CA", certificate, "-CAkey", key]
        const leaf = openssl(["x509", "-req", ...files, "-copy_extensions", "copyall", "-set_serial", "5"]).toString()
        // OpenSSL writes the present time as the beginning of the validity.
        yield* TestClock.setTime(Date.now())
        return leaf
      })
  )
  refused("a hundred certificates", "sequence", () =>
    Effect.map(chainFor(request), (chain) => {
      const [, issuer = ""] = chain.split(/(?<=-----END CERTIFICATE-----\n)/)
      return chain + issuer.repeat(98)
    }))
})

describe("the kind of a certificate", () => {
  const kindsOf = (name: string) =>
    kindOf(
      `[profiles.p]
signer = { backend = "custom", custom.script_path = "/signer" }
certificates.kinds.default.description = "d"
certificates.kinds.client.description = "c"
`,
      name
    )
  const clientsOnly = leafContent({ usages: [keyPurposes.client_auth], policies: [], subject: [] })

  it.live("decides whether a program may print a certificate for TLS clients alone", () =>
    Effect.gen(function*() {
      const kind = { ...kindsOf("client"), content: clientsOnly }
      const chain = yield* chainFor({ ...request, kind })
      const leaf = new X509Certificate(chain)
      assert.deepStrictEqual(leaf.keyUsage, [keyPurposes.client_auth])
      const issued = yield* issueBy(printing(chain), undefined, { ...request, kind: kindsOf("client") })
      assert.strictEqual(issued.chain, chain)
      const refused = yield* failureOf(printing(chain), undefined, { ...request, kind: kindsOf("default") })
      assert.strictEqual(refused.cause, "chain_rejected")
      assert.match(refused.detail, /^the chain failed the check usages: /)
      assert.strictEqual(refused.records[0]?.fields["cert_serial"], leaf.serialNumber.toLowerCase())
    }))

  it.live("does not permit a certificate for TLS clients alone if the CSR asks for serverAuth", () =>
    Effect.gen(function*() {
      const asked = csrOf({
        extensions: [
          sanOf(...request.names.map((name) => dns(name))),
          ext("2.5.29.37", seq(oid(keyPurposes.server_auth)))
        ]
      })
      const asking = { ...request, csr: Result.getOrThrow(parseCsr(asked)) }
      const chain = yield* chainFor({ ...asking, kind: { ...kindsOf("client"), content: clientsOnly } })
      const refused = yield* failureOf(printing(chain), undefined, { ...asking, kind: kindsOf("client") })
      assert.match(refused.detail, /^the chain failed the check usages: /)
    }))

  it.live("may live no longer than a credential permits, with an hour of tolerance", () =>
    Effect.gen(function*() {
      const chain = yield* chainFor({ ...request, kind: { ...kindsOf("default"), validitySeconds: 7 * daySeconds } })
      const kind = kindsOf("default")
      const bounded = (validityBound: number) => ({ ...request, kind, validityBound })
      yield* issueBy(printing(chain), undefined, bounded(7 * daySeconds - 3600))
      const refused = yield* failureOf(printing(chain), undefined, bounded(7 * daySeconds - 2 * 3600))
      assert.match(refused.detail, /^the chain failed the check lifetime: /)
    }))

  it.live("is on the standard input of the program, with the lifetime that a credential permits", () =>
    Effect.gen(function*() {
      const seen = join(freshDirectory(), "stdin")
      yield* failureOf(shellScript(`cat > '${seen}'; env >> '${seen}.env'; exit 1`), undefined, {
        ...request,
        kind: kindsOf("client"),
        validityBound: 86_400
      })
      assert.deepInclude(JSON.parse(readFileSync(seen, "utf8")), {
        certificate_kind: "client",
        max_validity_seconds: 86_400
      })
      assert.notMatch(readFileSync(`${seen}.env`, "utf8"), /KIND/)
    }))
})

describe("the hook revoke", () => {
  const leaf = Buffer.from("the leaf")

  it.live("gets the certificate and the reason, if there is one", () =>
    Effect.gen(function*() {
      for (const reason of [undefined, 0, 4]) {
        const seen = freshDirectory()
        const script = shellScript(
          `env | grep ACME_ | sort > '${seen}/env'; cat > '${seen}/stdin'; head -c 70000 /dev/zero`
        )
        yield* Effect.flatMap(made(script), ({ revoke }) => revoke?.(leaf, reason) ?? Effect.die("none"))
        assert.deepStrictEqual(
          readFileSync(join(seen, "env"), "utf8"),
          `ACME_SIGNER_HOOK=revoke\nACME_SIGNER_REASON=${reason ?? ""}\n`
        )
        assert.deepStrictEqual(JSON.parse(readFileSync(join(seen, "stdin"), "utf8")), {
          hook: "revoke",
          cert_der_base64: leaf.toString("base64"),
          reason: reason ?? null
        })
      }
    }))

  for (const exit of [1, 3]) {
    it.live(`leaves the revocation to another attempt after exit ${exit}`, () =>
      Effect.gen(function*() {
        const script = shellScript(`echo busy; exit ${exit}`)
        const error = yield* Effect.flip(
          Effect.flatMap(made(script), ({ revoke }) => revoke?.(leaf, 1) ?? Effect.die("none"))
        )
        assert.deepInclude(error, { _tag: "SigningFailed", cause: "script_failed", detail: "busy" })
      }))
  }
})
