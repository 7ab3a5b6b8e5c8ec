import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { createHash, X509Certificate } from "node:crypto"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { SharedClock, sharedSeconds } from "../../../../src/engine/queue/SharedClock.ts"
import type { Record } from "../../../../src/engine/telemetry/EventLog.ts"
import * as crlRecords from "../../../../src/operations/operator/CrlRecords.ts"
import * as crl from "../../../../src/operations/work/crl/ListPublication.ts"
import * as revocation from "../../../../src/operations/work/Revocation.ts"
import type { LocalCaSettings, OtherCaSettings } from "../../../../src/services/signing/ConfiguredCas.ts"
import * as LocalCa from "../../../../src/services/signing/LocalCa.ts"
import { opensslOnCrl } from "../../../crypto/Pki.ts"
import { databases, freshDirectory } from "../../../support/Databases.ts"
import { callerAt, configOf, fieldsOf, profileOf, world } from "../../../support/Graph.ts"
import { requestOf, surfaceOf } from "../../../support/Handle.ts"
import type { IssuedHere } from "../../../support/Issued.ts"
import { issueTo, profilesIn, work } from "../../../support/Issued.ts"
import { daySeconds, foreignCa, issueRequest, keyPem, madeAt, settingsIn } from "../../../support/LocalCa.ts"
import type { Making } from "../../../support/UseTests.ts"
import { useStore, useTests } from "../../../support/UseTests.ts"
import { watched } from "../../../support/Watched.ts"

/* Several CAs of one profile, of which one issues (docs/contribute/decisions/rotation.md). */

const config = configOf()
const surface = surfaceOf(config)
const iso = (epochSeconds: number) => new Date(epochSeconds * 1000).toISOString()

/** When the waiting CA begins to issue. */
const takeover = madeAt + daySeconds

/** Returns the id of the CA in a certificate file. */
const idOf = (file: string): string =>
  createHash("sha256").update(
    new X509Certificate(readFileSync(file)).publicKey.export({ type: "spki", format: "der" })
  ).digest("hex")

/** Writes the files of another CA, and returns its settings. */
const otherIn = (
  directory: string,
  name: string,
  more: Partial<OtherCaSettings> & { readonly notAfter?: number } = {}
): OtherCaSettings => {
  const { notAfter, ...settings } = more
  const made = foreignCa({ name: `CA ${name}`, ...notAfter === undefined ? {} : { notAfter } })
  const [cert_path, key_path] = [join(directory, `${name}.pem`), join(directory, `${name}.key`)]
  writeFileSync(cert_path, made.certificatePem)
  writeFileSync(key_path, keyPem(made.key), { mode: 0o600 })
  const { key_passphrase_file, key_source, pkcs11, transit } = settingsIn(directory)
  return {
    cert_path,
    key_path,
    key_source,
    key_passphrase_file,
    pkcs11,
    cross_cert_paths: [],
    transit,
    state: "retired",
    from: "",
    crl_path: "",
    ...settings
  }
}

/** A CA that has retired, and a CA that takes over at {@link takeover}. */
const othersIn = (directory: string) => ({
  old: otherIn(directory, "old"),
  next: otherIn(directory, "next", { state: "waiting", from: iso(takeover) })
})

const issuerOf = ({ leaf }: IssuedHere): string => leaf.issuer.replace(/^CN=/, "")

const crls = "crl_distribution_points"

describe.each(databases)("several CAs of a profile on $name", (backend) => {
  let directory = ""
  const { test } = useStore(backend, {
    startsAt: madeAt,
    layer: ({ name, records }: Making<unknown>) => {
      directory = freshDirectory()
      const more: Partial<LocalCaSettings> = {
        others: othersIn(directory),
        [crls]: ["https://acme.test/profile/default/crl/{issuer}"],
        ca_issuer_urls: ["https://acme.test/profile/default/issuer/{issuer}.cer"]
      }
      return world({ records, seed: name, profiles: profilesIn(directory, more) })
    },
    first: () => crl.initialize,
    around: watched
  })

  const fileOf = (name: string) => join(directory, `${name}.pem`)
  const get = (path: string) =>
    Effect.flatMap(surface, (app) => app.handle(requestOf("GET", `/profile/default${path}`)))
  const issue = (name: string) => Effect.flatMap(callerAt(profileOf(config)), (caller) => issueTo(caller, [name]))
  const listOf = (name: string) =>
    Effect.map(get(`/crl/${idOf(fileOf(name))}`), ({ body, status }) => {
      assert.strictEqual(status, 200)
      return Buffer.from(body as Uint8Array)
    })
  const issuances = Effect.map(crlRecords.list(["default"]), (all) =>
    Object.fromEntries(
      all.map(({ issuance, issuer }) =>
        [["ca", "old", "next"].find((name) => idOf(fileOf(name)) === issuer) ?? "", issuance] as const
      )
    ))

  test("take over at their time without a reload, and every CA goes on publishing its list", () =>
    Effect.gen(function*() {
      const before = yield* issue("a.example")
      assert.strictEqual(issuerOf(before), "Test CA")
      assert.deepStrictEqual(yield* issuances, { ca: "issuing", old: "retired", next: "waiting" })
      assert.deepStrictEqual(Buffer.from((yield* get("/crl")).body as Uint8Array), yield* listOf("ca"))
      yield* TestClock.adjust(takeover * 1000 - madeAt * 1000 - 1000)
      assert.strictEqual(issuerOf(yield* issue("b.example")), "Test CA")
      yield* TestClock.adjust(1000)
      const after = yield* issue("c.example")
      assert.strictEqual(issuerOf(after), "CA next")
      assert.deepStrictEqual(yield* issuances, { ca: "retired", old: "retired", next: "issuing" })
      assert.deepStrictEqual(Buffer.from((yield* get("/crl")).body as Uint8Array), yield* listOf("next"))
      assert.strictEqual(String((yield* get("/ca.pem")).body), readFileSync(fileOf("next"), "utf8"))
      yield* revocation.revoke(
        {
          orderId: before.orderId,
          accountId: (yield* callerAt(profileOf(config))).accountId,
          profile: "default",
          identifiers: [],
          certificate: before.chain,
          serial: before.serial,
          certPubkey: undefined
        },
        "local_ca",
        4,
        { actorKind: "cli", detail: { authorized_by: "operator" } }
      )
      yield* work("local_ca_crl_regenerate")
      const lists = yield* Effect.forEach(["ca", "old", "next"], listOf)
      assert.deepStrictEqual(
        ["ca", "old", "next"].map((name, at) => opensslOnCrl(fileOf(name), lists[at] ?? Buffer.alloc(0))),
        ["verify OK", "verify OK", "verify OK"]
      )
      assert.isTrue(lists[0]?.includes(Buffer.from(before.serial, "hex")))
      assert.isFalse(lists[2]?.includes(Buffer.from(before.serial, "hex")))
    }))

  test("are named by their ids in the URLs of their certificates, which lead to them", () =>
    Effect.gen(function*() {
      const before = yield* issue("a.example")
      yield* TestClock.adjust(daySeconds * 1000)
      for (const [{ der, leaf }, name] of [[before, "ca"], [yield* issue("b.example"), "next"]] as const) {
        const id = idOf(fileOf(name))
        assert.include(leaf.infoAccess ?? "", `https://acme.test/profile/default/issuer/${id}.cer`)
        assert.isTrue(der.includes(Buffer.from(`https://acme.test/profile/default/crl/${id}`)))
        const { body, status } = yield* get(`/issuer/${id}.cer`)
        assert.strictEqual(status, 200)
        assert.isTrue(leaf.checkIssued(new X509Certificate(Buffer.from(body as Uint8Array))))
      }
    }))

  test("are not found by a wrong id", () =>
    Effect.gen(function*() {
      const id = idOf(fileOf("ca"))
      const paths = [`/crl/${"0".repeat(64)}`, `/crl/${id.toUpperCase()}`, "/crl/x", `/issuer/${id}`, "/issuer/.cer"]
      for (const path of paths) assert.strictEqual((yield* get(path)).status, 404, path)
    }))

  test("take over by the clock of the database, whatever the clock of a process says", () =>
    Effect.gen(function*() {
      yield* TestClock.adjust(daySeconds * 1000 + 60_000)
      const behind = { offsetMillis: () => -120_000, measure: Effect.void }
      const on = Effect.provideService(SharedClock, behind)
      assert.strictEqual(yield* on(sharedSeconds), takeover - 60)
      assert.strictEqual(issuerOf(yield* on(issue("a.example"))), "Test CA")
      assert.strictEqual(issuerOf(yield* issue("b.example")), "CA next")
    }))
})

describe("the CAs beside the one that issues", () => {
  const { records, test } = useTests({ startsAt: madeAt, first: () => Effect.sync(freshDirectory) })
  const said = (event: Record["event"]) => fieldsOf(records, event)

  test("stop nothing if they cannot be loaded or have ended", (directory) =>
    Effect.gen(function*() {
      const gone = otherIn(directory, "gone")
      rmSync(gone.key_path)
      const ended = otherIn(directory, "ended", { notAfter: madeAt - 1 })
      const settings = settingsIn(directory, { others: { gone, ended } })
      const signer = yield* LocalCa.make(settings)
      yield* signer.issue(issueRequest(["a.example"]))
      assert.isUndefined(yield* (signer.trouble ?? Effect.succeed(undefined)))
      assert.strictEqual(signer.crls?.length, 2)
      const [failure] = said("local_ca_other_unusable")
      assert.strictEqual(failure?.["name"], "gone")
      assert.include(failure?.["error"], `signer.local_ca.others.gone.key_path: ${gone.key_path} cannot be used`)
      const checked = yield* Effect.flip(LocalCa.check(settings))
      assert.include(checked.detail, "signer.local_ca.others.gone: of ")
      yield* LocalCa.check({ ...settings, others: { ended } })
    }))

  test("are not replaced by an older CA if they cannot be loaded at their time", (directory) =>
    Effect.gen(function*() {
      const next = otherIn(directory, "next", { state: "waiting", from: iso(takeover) })
      rmSync(next.cert_path)
      const signer = yield* LocalCa.make(settingsIn(directory, { others: { next } }))
      yield* signer.issue(issueRequest(["a.example"]))
      yield* TestClock.adjust(daySeconds * 1000)
      const refused = yield* Effect.flip(signer.issue(issueRequest(["a.example"])))
      assert.include(refused, { _tag: "SigningFailed" })
      assert.include(refused.detail, `others.next.cert_path: ${next.cert_path}`)
      assert.strictEqual(yield* (signer.trouble ?? Effect.succeed(undefined)), refused.detail)
    }))

  test("are refused with the key of another CA of the profile", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      yield* LocalCa.make(settings)
      const copy = { ...otherIn(directory, "copy"), cert_path: settings.cert_path, key_path: settings.key_path }
      const refused = yield* Effect.flip(LocalCa.make({ ...settings, others: { copy } }))
      assert.include(refused.detail, "others.copy: the CA has the same key as the CA of signer.local_ca.")
      assert.strictEqual(
        (yield* Effect.flip(LocalCa.check({ ...settings, others: { copy } }))).detail,
        refused.detail
      )
    }))
})
