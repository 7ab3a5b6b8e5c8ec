import { Context, Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { X509Certificate } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import { Scripts } from "../../../src/engine/host/Scripts.ts"
import { DnsUpdate } from "../../../src/engine/net/DnsUpdate.ts"
import { Resolver } from "../../../src/engine/net/Resolver.ts"
import { Web } from "../../../src/engine/net/Web.ts"
import type { SigningProfile } from "../../../src/services/signing/Backends.ts"
import * as Backends from "../../../src/services/signing/Backends.ts"
import type { LocalCaSettings } from "../../../src/services/signing/ConfiguredCas.ts"
import { Signers } from "../../../src/services/signing/Signer.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { eventsOf } from "../../support/Graph.ts"
import { kindOf } from "../../support/Kinds.ts"
import { issueRequest, settingsIn, signerOf } from "../../support/LocalCa.ts"
import type { Paths } from "../../support/ScriptedRelay.ts"
import { noUpdates, refusal, relaySettings } from "../../support/ScriptedRelay.ts"
import { ca, directory as upstreamDirectory, upstreamWith } from "../../support/ScriptedUpstream.ts"
import { useTests } from "../../support/UseTests.ts"

const profile = (name: string, local_ca: LocalCaSettings): SigningProfile => ({ name, signer: signerOf(local_ca) })

const signersOf = (
  profiles: ReadonlyArray<SigningProfile>,
  before?: Signers["Service"]["bySection"],
  outbound?: object,
  mayDegrade: (profile: string) => boolean = () => false
) =>
  Effect.map(
    Layer.build(
      Layer.provide(
        Backends.layer(profiles, { before, mayDegrade, outbound: outbound ?? {} }),
        Layer.mergeAll(Entropy.layer, Scripts.layer, Web.layer("1"), DnsUpdate.layer)
      ).pipe(
        Layer.provide(Layer.merge(Entropy.layer, Resolver.layerStatic({})))
      )
    ),
    Context.get(Signers)
  )

/** Each test has a separate directory. */
const { records, test } = useTests({ first: () => Effect.sync(freshDirectory) })

/** Makes settings with a separate directory below this directory. */
const settingsBelow = (directory: string, name: string, more: Partial<LocalCaSettings> = {}) => {
  const own = join(directory, name)
  mkdirSync(own)
  return settingsIn(own, more)
}

type Kinds = { readonly [name: string]: { readonly upstream: string } }

/** Makes the backend of a profile that relays to an upstream with these answers, for kinds of certificates. */
const relayedBy = (directory: string, paths: Paths) => {
  const { web } = upstreamWith({
    "/account": [{ status: 201, json: {}, headers: { location: `${ca}/acct/1` } }],
    ...paths
  })
  const relay = relaySettings({ account_key_path: join(directory, "account.key") })
  const signer = { ...signerOf(settingsIn(directory)), backend: "relay" as const, relay }
  const world = Layer.mergeAll(web, noUpdates, Entropy.layerSeeded("relay"), Scripts.layer)
  const layer = (kinds: Kinds, before?: Signers["Service"]["bySection"], mayDegrade = () => false) =>
    Layer.provide(Backends.layer([{ name: "r", signer, certificates: { kinds } }], { before, mayDegrade }), world)
  return { layer, build: (kinds: Kinds) => Effect.scoped(Layer.build(layer(kinds))) }
}

describe("the backends of the profiles", () => {
  test(
    "are shared if the sections are equal, so that one CA is made and loaded once",
    (directory) =>
      Effect.gen(function*() {
        const signers = yield* signersOf([
          profile("a", settingsIn(directory)),
          profile("b", settingsIn(directory)),
          profile("c", settingsIn(directory))
        ])
        assert.strictEqual(yield* signers.of("a"), yield* signers.of("b"))
        assert.strictEqual(yield* signers.of("a"), yield* signers.of("c"))
        assert.deepStrictEqual(eventsOf(records), ["local_ca_generated", "local_ca_loaded"])
      })
  )

  test("of profiles that share a relay log each request with the profile of the request", (directory) =>
    Effect.gen(function*() {
      const { web } = upstreamWith({
        "/account": [{ status: 201, json: {}, headers: { location: `${ca}/acct/1` } }],
        "/revoke": [refusal("unauthorized")]
      })
      const settings = relaySettings({ account_key_path: join(directory, "account.key") })
      const signer = { ...signerOf(settingsIn(directory)), backend: "relay" as const, relay: settings }
      const world = Layer.mergeAll(web, noUpdates, Entropy.layerSeeded("relay"), Scripts.layer)
      const layer = Layer.provide(Backends.layer([{ name: "first", signer }, { name: "second", signer }]), world)
      const signers = Context.get(yield* Layer.build(layer), Signers)
      const told = () => records.filter(({ event }) => event === "upstream_request_failed").map(({ fields }) => fields)
      for (const name of ["second", "first"]) {
        yield* Effect.flip((yield* signers.of(name)).revoke?.(Buffer.from("leaf"), 0) ?? Effect.die("no relay"))
        assert.strictEqual(told().at(-1)?.["profile"], name)
      }
    }))

  const offering = (...names: ReadonlyArray<string>) => ({
    json: { ...upstreamDirectory, meta: { profiles: Object.fromEntries(names.map((name) => [name, "d"])) } }
  })

  for (
    const [what, offers, said] of [
      ["offers other profiles", offering("classic", "tls"), "classic, tls"],
      ["offers no profiles", { json: upstreamDirectory }, "none"],
      ["offers a profile that has the name of a member of every object", offering("constructor"), "constructor"]
    ] as const
  ) {
    test(`are not made if a kind asks for a profile and the upstream ${what}, and the refusal names them`, (directory) =>
      Effect.gen(function*() {
        const { build } = relayedBy(directory, { "/directory": [offers] })
        const refused = yield* Effect.flip(build({ default: { upstream: "" }, short: { upstream: "toString" } }))
        assert.isTrue(refused._tag === "ProfileUnusable" && refused.isOutside && refused.mayPass)
        assert.strictEqual(
          refused.message,
          `Profile r: certificates.kinds.short.upstream: the upstream offers no profile toString, but ${said}.`
        )
        yield* build({ default: { upstream: "" }, short: { upstream: "" } })
      }))
  }

  test("are made if the upstream offers the profiles of all kinds, or if it has made an account and does not answer now", (directory) =>
    Effect.gen(function*() {
      const all = offering("classic", "shortlived")
      const kinds = { default: { upstream: "classic" }, short: { upstream: "shortlived" } }
      yield* relayedBy(directory, { "/directory": [all] }).build(kinds)
      const more = { ...kinds, long: { upstream: "longlived" } }
      const refused = yield* Effect.flip(relayedBy(directory, { "/directory": [all] }).build(more))
      assert.include(refused.message, "certificates.kinds.long.upstream")
      yield* relayedBy(directory, { "/directory": [{ unsent: true }] }).build(more)
    }))

  test("are made at a start although the upstream no longer offers the profile of one kind, and that is logged", (directory) =>
    Effect.gen(function*() {
      const { layer } = relayedBy(directory, { "/directory": [offering("classic")] })
      const kinds = { default: { upstream: "classic" }, short: { upstream: "shortlived" } }
      const signers = Context.get(yield* Layer.build(layer(kinds, undefined, () => true)), Signers)
      assert.deepStrictEqual([...(yield* signers.troubles)], [["r", undefined]])
      const told = records.filter(({ event }) => event === "profile_kind_unoffered").map(({ fields }) => fields)
      assert.deepStrictEqual(told, [{
        profile: "r",
        error: "certificates.kinds.short.upstream: the upstream offers no profile shortlived, but classic."
      }])
    }))

  test("are kept at a reload with a kind whose profile the upstream has offered only since the start", (directory) =>
    Effect.gen(function*() {
      const [old, now] = [offering("classic"), offering("classic", "shortlived")]
      const { layer } = relayedBy(directory, { "/directory": [old, old, now] })
      const kinds = { default: { upstream: "classic" } }
      const first = Context.get(yield* Layer.build(layer(kinds)), Signers)
      const more = { ...kinds, short: { upstream: "shortlived" } }
      const second = Context.get(yield* Layer.build(layer(more, first.bySection)), Signers)
      assert.deepStrictEqual([...second.bySection.values()], [...first.bySection.values()])
    }))

  test("are kept at a reload unless the network settings have changed", (directory) =>
    Effect.gen(function*() {
      const profiles = [profile("a", settingsIn(directory))]
      const outbound = (password: string) => ({ dns: { resolver: "" }, proxy: { http_url: Redacted.make(password) } })
      const first = yield* signersOf(profiles, undefined, outbound("one"))
      const second = yield* signersOf(profiles, first.bySection, outbound("one"))
      assert.strictEqual(yield* second.of("a"), yield* first.of("a"))
      const third = yield* signersOf(profiles, second.bySection, outbound("other"))
      assert.notStrictEqual(yield* third.of("a"), yield* first.of("a"))
    }))

  test("are separate if the sections differ, so that each signs with its own CA and validity", (directory) =>
    Effect.gen(function*() {
      const sections = {
        a: settingsBelow(directory, "a"),
        b: settingsBelow(directory, "b", { leaf_validity_days: 7 })
      }
      const signers = yield* signersOf([profile("a", sections.a), profile("b", sections.b)])
      const lives: Array<number> = []
      for (const name of ["a", "b"] as const) {
        const issued = yield* (yield* signers.of(name)).issue?.(
          issueRequest(["a.example.com"], {
            kind: kindOf(`[profiles.p]\nsigner.local_ca.leaf_validity_days = ${lives.length === 0 ? 90 : 7}`)
          })
        ) ??
          Effect.die(new Error("relays"))
        const leaf = new X509Certificate(issued.chain)
        const [own, other] = [sections[name], sections[name === "a" ? "b" : "a"]].map(({ cert_path }) =>
          new X509Certificate(readFileSync(cert_path)).publicKey
        )
        assert.isTrue(own !== undefined && leaf.verify(own), name)
        assert.isFalse(other !== undefined && leaf.verify(other), name)
        lives.push(issued.notAfter)
      }
      assert.deepStrictEqual(lives, [90 * 86_400, 7 * 86_400])
    }))

  const every = () => true

  test("are available if a file of one profile is missing, and that profile signs once the file is back", (directory) =>
    Effect.gen(function*() {
      const [a, b] = [settingsBelow(directory, "a"), settingsBelow(directory, "b")]
      const profiles = [profile("a", a), profile("b", b)]
      yield* signersOf(profiles)
      renameSync(a.key_path, `${a.key_path}.away`)
      const refused = yield* Effect.flip(signersOf(profiles))
      assert.isTrue(refused._tag === "ProfileUnusable" && refused.isOutside)
      const signers = yield* signersOf(profiles, undefined, undefined, every)
      assert.include([...(yield* signers.troubles)].join(), "a,signer.local_ca: of ")
      assert.isUndefined((yield* signers.troubles).get("b"))
      assert.strictEqual(signers.crlIssuers.length, 1)
      const issue = (name: string) =>
        Effect.flatMap(
          signers.of(name),
          (signer) => signer.issue?.(issueRequest(["a.example.com"])) ?? Effect.die(new Error("relays"))
        )
      const failure = yield* Effect.flip(issue("a"))
      assert.include(failure._tag === "SigningFailed" ? failure.detail : "", "only")
      yield* issue("b")
      renameSync(`${a.key_path}.away`, a.key_path)
      yield* TestClock.adjust("9 seconds")
      assert.isDefined((yield* signers.troubles).get("a"))
      yield* TestClock.adjust("1 second")
      assert.isUndefined((yield* signers.troubles).get("a"))
      assert.strictEqual(signers.crlIssuers.length, 2)
      yield* issue("a")
    }))

  for (
    const [what, refused, says] of [
      [
        "refuses the account",
        // The upstream is also asked for an existing account.
        [refusal("externalAccountRequired"), refusal("externalAccountRequired")],
        /the upstream makes no account: .*credential/
      ],
      ["is away", [{ unsent: true }], /connect ECONNREFUSED/]
    ] as const
  ) {
    test(`are available if the upstream of one profile ${what}, and that profile works once it has an account`, (directory) =>
      Effect.gen(function*() {
        const created = { status: 201, json: {}, headers: { location: `${ca}/acct/1` } }
        const { web } = upstreamWith({ "/account": [...refused, ...refused, created], "/revoke": [{}] })
        const relay = relaySettings({ account_key_path: join(directory, "account.key") })
        const profiles = [
          profile("own", settingsBelow(directory, "own")),
          { name: "relayed", signer: { ...signerOf(settingsIn(directory)), backend: "relay" as const, relay } }
        ]
        const world = Layer.mergeAll(web, noUpdates, Entropy.layerSeeded("relay"), Scripts.layer)
        const build = (mayDegrade: (profile: string) => boolean) =>
          Effect.map(
            Layer.build(Layer.provide(Backends.layer(profiles, { mayDegrade }), world)),
            Context.get(Signers)
          )
        const refusing = yield* Effect.flip(build((name) => name === "own"))
        assert.isTrue(refusing._tag === "ProfileUnusable" && refusing.isOutside)
        assert.match(refusing.message, says)
        const signers = yield* build((name) => name === "relayed")
        assert.match((yield* signers.troubles).get("relayed") ?? "", says)
        assert.isUndefined((yield* signers.troubles).get("own"))
        yield* (yield* signers.of("own")).issue?.(issueRequest(["a.example.com"])) ?? Effect.die("it relays")
        const revoke = Effect.flatMap(
          signers.of("relayed"),
          (signer) => signer.revoke?.(Buffer.from("leaf"), 0) ?? Effect.die("it has a list")
        )
        const failure = yield* Effect.flip(revoke)
        assert.match(failure._tag === "SigningFailed" ? failure.detail : "", /the signer of the profile cannot be used/)
        yield* TestClock.adjust("10 seconds")
        assert.isUndefined((yield* signers.troubles).get("relayed"))
        yield* revoke
      }))
  }

  test("are refused if none of them can be made", (directory) =>
    Effect.gen(function*() {
      const [a, b] = [settingsBelow(directory, "a"), settingsBelow(directory, "b")]
      const profiles = [profile("a", a), profile("b", b)]
      yield* signersOf(profiles)
      for (const { key_path } of [a, b]) rmSync(key_path)
      assert.strictEqual((yield* Effect.flip(signersOf(profiles, undefined, undefined, every)))._tag, "ProfileUnusable")
    }))

  test("keep the revocation list of a CA that has expired", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const first = yield* signersOf([profile("a", settings)])
      const end = new Date(new X509Certificate(readFileSync(settings.cert_path)).validTo).getTime()
      assert.isUndefined((yield* first.troubles).get("a"))
      yield* TestClock.setTime(end + 1000)
      assert.match((yield* first.troubles).get("a") ?? "", /ended at/)
      const refused = yield* Effect.flip(signersOf([profile("a", settings)]))
      assert.isTrue(refused._tag === "ProfileUnusable" && refused.isOutside)
      const signers = yield* signersOf([profile("a", settings)], undefined, undefined, every)
      assert.match((yield* signers.troubles).get("a") ?? "", /ended at/)
      const [crl] = signers.crlIssuers
      assert.isDefined(crl)
    }))

  test("are degraded while the record of the last revocation list of a CA cannot be used", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const signers = yield* signersOf([profile("a", settings)])
      assert.isUndefined((yield* signers.troubles).get("a"))
      writeFileSync(`${settings.crl_path}.issued`, "")
      const trouble = /ca\.crl\.issued, the record of the list that this CA issued last, cannot be used: it is empty\./
      assert.match((yield* signers.troubles).get("a") ?? "", trouble)
      const refused = yield* Effect.flip(signersOf([profile("a", settings)]))
      assert.isTrue(refused._tag === "ProfileUnusable" && refused.isOutside)
      assert.match(refused.message, trouble)
      const degraded = yield* signersOf([profile("a", settings)], undefined, undefined, every)
      assert.lengthOf(degraded.crlIssuers, 1)
      rmSync(`${settings.crl_path}.issued`)
      assert.isUndefined((yield* degraded.troubles).get("a"))
    }))

  test("are refused for a fault in the configuration, even if profiles may be degraded", (directory) =>
    Effect.gen(function*() {
      const [a, b] = [settingsBelow(directory, "a"), settingsBelow(directory, "b")]
      const profiles = [profile("a", a), profile("b", b)]
      yield* signersOf(profiles)
      for (
        const [path, text] of [[a.cert_path, readFileSync(b.cert_path)], [a.key_path, Buffer.from("no key\n")]] as const
      ) {
        const before = readFileSync(path)
        writeFileSync(path, text)
        // If no signer could be made at all, that alone would prevent the startup.
        const refused = yield* Effect.flip(signersOf(profiles, undefined, undefined, every))
        assert.deepInclude(refused, { _tag: "ProfileUnusable", profile: "a", isOutside: false }, path)
        writeFileSync(path, before)
      }
    }))

  test("are found only by the exact name of a profile", (directory) =>
    Effect.gen(function*() {
      const signers = yield* signersOf([profile("a", settingsIn(directory))])
      for (const name of ["b", "", "A", "toString", "__proto__"]) {
        const failure = yield* Effect.flip(signers.of(name))
        assert.deepInclude(failure, { _tag: "ProfileNotMounted", profile: name })
      }
    }))

  test(
    "are refused if the signer of a profile cannot be made, and the log has the profile and the reason",
    (directory) =>
      Effect.gen(function*() {
        const sound = settingsBelow(directory, "sound")
        const broken = settingsBelow(directory, "broken")
        writeFileSync(broken.cert_path, "no certificate")
        writeFileSync(broken.key_path, "no key")
        const failure = yield* Effect.flip(signersOf([profile("fine", sound), profile("broken", broken)]))
        assert.include(failure.message, broken.cert_path)
        const [record] = records.filter(({ event }) => event === "profile_init_failed")
        assert.deepInclude(record?.fields, { profile: "broken" })
        assert.include(String(record?.fields["error"]), broken.cert_path)
        assert.strictEqual(readFileSync(broken.key_path, "utf8"), "no key")
      })
  )

  test("are not made if there is no profile, and nothing is written", (directory) =>
    Effect.gen(function*() {
      const signers = yield* signersOf([])
      yield* Effect.flip(signers.of("default"))
      assert.deepStrictEqual(records, [])
      assert.isFalse(existsSync(settingsIn(directory).cert_path))
    }))
})
