import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { chmodSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Entropy } from "../../src/crypto/Entropy.ts"
import * as LocalCa from "../../src/services/signing/LocalCa.ts"
import { daySeconds, foreignCa, issueRequest, keyPem, madeAt, settingsIn } from "../support/LocalCa.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import type { Place } from "../support/RunCommand.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { useTests } from "../support/UseTests.ts"

/* The commands that replace the CA of a profile (docs/configure/rotation.md, "Replacing the CA"). */

const { test } = useTests({ startsAt: madeAt })

const own = "http://acme.example/profile/web/crl"
const configWith = (url: string) => (at: string) =>
  `# The CA of the web team\n[profiles.web.signer.local_ca]\ncert_path = "${at}/ca.pem"\nkey_path = "${at}/ca.key"\n`
  + `crl_path = "${at}/ca.crl"\ncrl_distribution_points = ["${url}"]\n`

const put = ({ directory }: Place, name: string, text: string): void =>
  writeFileSync(join(directory, name), text, { mode: 0o600 })
const configOf = ({ directory }: Place): string => readFileSync(join(directory, "config.toml"), "utf8")
const databaseOf = ({ directory }: Place): string => `sqlite://${directory}/acme.db`

/** A machine with a CA, the files of the next one, and a database. */
const newPlace = (url = `${own}/{issuer}`) =>
  Effect.gen(function*() {
    const place = freshPlace(configWith(url))
    yield* LocalCa.make(settingsIn(place.directory))
    const next = foreignCa({ name: "Next" })
    put(place, "Next CA.pem", next.certificatePem)
    put(place, "Next CA.key", keyPem(next.key))
    put(
      place,
      "cross.pem",
      foreignCa({ name: "Next", key: next.key, issuer: foreignCa({ name: "Old root" }) }).certificatePem
    )
    yield* succeeds(place, "migrate")
    return place
  }).pipe(Effect.provide(Entropy.layerSeeded("rotation")), Effect.orDie)

const succeeds = (place: Place, ...words: ReadonlyArray<string>) =>
  Effect.map(place.run(words), ({ code, err, out }) => {
    assert.strictEqual(code, 0, err)
    return out
  })

/** Runs a command that must be refused and must not change the configuration. */
const refuses = (place: Place, words: ReadonlyArray<string>, sentence: string, code = 3) =>
  Effect.gen(function*() {
    const before = configOf(place)
    const ended = yield* place.run(words)
    assert.strictEqual(ended.code, code, ended.err + ended.out)
    assert.include(ended.err, sentence)
    assert.strictEqual(configOf(place), before)
  })

const rotate = ["ca", "rotate", "--to", "Next CA.pem"]

/** Stores a certificate of the present CA whose URL is the given one. */
const issued = (place: Place, url: string, days: number) =>
  Effect.gen(function*() {
    const settings = { ...settingsIn(place.directory), crl_distribution_points: [url] }
    const { issue } = yield* LocalCa.make(settings)
    const { chain, notAfter, serial } = yield* issue(
      issueRequest(["a.example"], { notAfter: madeAt + days * daySeconds })
    )
    const account = `x'${"01".repeat(16)}'`
    yield* Effect.promise(async () => {
      await sqlAt(
        databaseOf(place),
        `INSERT OR IGNORE INTO accounts (id, profile, pubkey, status, contact, terms_of_service_agreed, created_at)
         VALUES (${account}, 'web', x'01', 'valid', '[]', 0, 1)`
      )
      await sqlAt(
        databaseOf(place),
        `INSERT INTO orders (id, profile, account_id, status, identifiers, created_at, expires_at, certificate, cert_serial, cert_not_after)
         VALUES (randomblob(16), 'web', ${account}, 'valid', '[{"type":"dns","value":"a.example"}]', 1, 2, '${chain}', '${serial}', ${notAfter})`
      )
    })
  }).pipe(Effect.provide(Entropy.layerSeeded(`leaf${days}`)), Effect.orDie)

describe("ca rotate", () => {
  test("prints what has to stand in the configuration, and changes it only with --write", () =>
    Effect.gen(function*() {
      const place = yield* newPlace()
      chmodSync(join(place.directory, "config.toml"), 0o640)
      const before = configOf(place)
      const at = ["--at", "2026-03-01T07:00:00+01:00", "--cross", "cross.pem"]
      const said = yield* succeeds(place, ...rotate, ...at)
      const added = [
        "[profiles.web.signer.local_ca.others.next-ca]",
        `cert_path = "${place.directory}/Next CA.pem"`,
        `cross_cert_paths = ["${place.directory}/cross.pem"]`,
        "state = \"waiting\"",
        "from = \"2026-03-01T06:00:00Z\"",
        `key_path = "${place.directory}/Next CA.key"`
      ].join("\n")
      assert.include(said, added)
      assert.strictEqual(configOf(place), before)
      const object = JSON.parse(yield* succeeds(place, ...rotate, ...at, "--write", "--json")) as object
      assert.deepInclude(object, {
        profile: "web",
        name: "next-ca",
        from: "2026-03-01T06:00:00Z",
        added,
        written: true
      })
      assert.strictEqual(configOf(place), `${before}\n${added}\n`)
      assert.strictEqual(statSync(join(place.directory, "config.toml")).mode & 0o777, 0o640)
      yield* succeeds(place, "config", "check")
      yield* refuses(place, [...rotate, "--write"], "Profile web has a CA next-ca already, which is waiting.")
    }))

  test("begins a day later if no time is given, at a full minute", () =>
    Effect.gen(function*() {
      const place = yield* newPlace()
      const said = yield* succeeds(place, ...rotate, "--name", "b", "--key", "Next CA.key")
      assert.include(said, "The CA b can issue for profile web from 2026-01-02T00:00:00Z on.")
      assert.include(said, "[profiles.web.signer.local_ca.others.b]")
    }))

  test("refuses a CA that cannot issue then", () =>
    Effect.gen(function*() {
      const place = yield* newPlace()
      put(place, "other.key", keyPem(foreignCa({ name: "Other" }).key))
      put(place, "ended.pem", foreignCa({ name: "Ended", notAfter: madeAt - 1 }).certificatePem)
      for (
        const [words, sentence] of [
          [[...rotate, "--key", "other.key"], "do not match"],
          [["ca", "rotate", "--to", "absent.pem"], "do not exist"],
          [[...rotate, "--key", "absent.key"], "both or neither must"],
          [["ca", "rotate", "--to", "ca.pem"], "is the certificate of"],
          [
            ["ca", "rotate", "--to", "ca.pem"],
            "config.toml is as before, because with the change it would be refused."
          ],
          [[...rotate, "--at", "2025-12-31T23:59:59Z"], "has passed"],
          [[...rotate, "--cross", "ca.pem"], "another key than the CA"],
          [[...rotate, "--key-label", "ca2"], "the key of the present CA is in a file"]
        ] as const
      ) yield* refuses(place, [...words, "--write"], sentence)
      yield* refuses(place, [...rotate, "--name", "Not A Name"], "--name: Not A Name cannot name a CA", 2)
      yield* refuses(place, [...rotate, "--at", "tomorrow"], "is no RFC 3339 time", 2)
      yield* refuses(place, [...rotate, "--key", "a", "--key-label", "b"], "exclude each other", 2)
      yield* succeeds(place, ...rotate, "--at", "2026-02-01T00:00:00Z", "--write")
      put(place, "third.pem", readFileSync(join(place.directory, "ca.pem"), "utf8"))
      const third = foreignCa({ name: "Third" })
      put(place, "third.pem", third.certificatePem)
      put(place, "third.key", keyPem(third.key))
      const same = ["ca", "rotate", "--to", "third.pem", "--at", "2026-02-01T00:00:00Z"]
      yield* refuses(place, same, "is the time of")
    }))

  test("refuses while valid certificates lead to the list of the CA that issues", () =>
    Effect.gen(function*() {
      const shared = yield* newPlace(own)
      yield* refuses(shared, rotate, "has no {issuer}")
      yield* succeeds(shared, ...rotate, "--lists-mixed")
      const place = yield* newPlace()
      yield* issued(place, `${own}/${"ab".repeat(32)}`, 20)
      yield* succeeds(place, ...rotate)
      yield* issued(place, own, 30)
      yield* issued(place, "http://crl.example/web.crl", 40)
      yield* issued(place, own, 10)
      yield* refuses(
        place,
        rotate,
        "2 valid certificate(s) of profile web have a URL without {issuer}, the last until 2026-01-31T00:00:00Z"
      )
      yield* succeeds(place, ...rotate, "--lists-mixed")
    }))

  test("undoes nothing that another command has written at the same moment", () =>
    Effect.gen(function*() {
      const place = yield* newPlace()
      const names = ["one", "two", "three", "four"]
      for (const name of names) {
        const ca = foreignCa({ name })
        put(place, `${name}.pem`, ca.certificatePem)
        put(place, `${name}.key`, keyPem(ca.key))
      }
      // Each waits for the lock of the file.
      const ended = yield* TestClock.withLive(Effect.forEach(
        names,
        (name, index) =>
          place.run(["ca", "rotate", "--to", `${name}.pem`, "--at", `2030-03-0${index + 1}T07:00:00Z`, "--write"]),
        { concurrency: "unbounded" }
      ))
      const written = names.filter((_, index) => ended[index]?.code === 0)
      assert.isAtLeast(written.length, 1)
      for (const name of written) assert.include(configOf(place), `.others.${name}]`)
      for (const { code, err } of ended) {
        if (code !== 0) {
          assert.match(err, /has been changed meanwhile. Run the command again.|issues at .* by its own time/)
        }
      }
    }))

  test("does not write through a link, and says what to do", () =>
    Effect.gen(function*() {
      const place = yield* newPlace()
      renameSync(join(place.directory, "config.toml"), join(place.directory, "real.toml"))
      symlinkSync("real.toml", join(place.directory, "config.toml"))
      yield* refuses(place, [...rotate, "--write"], "config.toml cannot be changed: not a regular file")
      assert.isTrue(statSync(join(place.directory, "real.toml")).isFile())
    }))
})

describe("ca retire", () => {
  test("lets a waiting CA only sign its list, and leaves the rest of the file as it is", () =>
    Effect.gen(function*() {
      const place = yield* newPlace()
      yield* succeeds(place, ...rotate, "--at", "2026-03-01T06:00:00Z", "--write")
      put(place, "config.toml", `${configOf(place)}\n[jobs]\nmax_attempts = 3 # not more\n`)
      const before = configOf(place)
      assert.include(yield* succeeds(place, "ca", "retire", "next-ca"), "state = \"retired\"")
      assert.strictEqual(configOf(place), before)
      yield* succeeds(place, "ca", "retire", "next-ca", "--write")
      const after = before.replace("state = \"waiting\"\nfrom = \"2026-03-01T06:00:00Z\"", "state = \"retired\"")
      assert.strictEqual(configOf(place), after)
      yield* succeeds(place, "config", "check")
      yield* refuses(place, ["ca", "retire", "next-ca"], "is retired already")
      const from = "2026-03-02T06:00:00Z"
      const again = `which is retired. If this one shall issue, write state = "waiting" and from = "${from}"`
      yield* refuses(place, [...rotate, "--at", from], again)
      put(place, "config.toml", after.replace(`state = "retired"`, `state = "waiting"\nfrom = "${from}"`))
      yield* succeeds(place, "config", "check")
      put(place, "config.toml", after)
      yield* refuses(place, ["ca", "retire", "other"], "there is next-ca")
    }))

  test("refuses the CA that issues now, and a table that it cannot change", () =>
    Effect.gen(function*() {
      const place = yield* newPlace()
      yield* succeeds(place, ...rotate, "--at", "2026-03-01T06:00:00Z", "--write")
      const before = configOf(place)
      put(place, "config.toml", before.replace("2026-03-01T06:00:00Z", "2025-12-31T06:00:00Z"))
      yield* refuses(place, ["ca", "retire", "next-ca", "--write"], "The CA next-ca issues now")
      const [head = "", table = ""] = before.split("[profiles.web.signer.local_ca.others.next-ca]\n")
      put(place, "config.toml", `${head}others.next-ca = { ${table.trim().replaceAll("\n", ", ")} }\n`)
      yield* refuses(place, ["ca", "retire", "next-ca", "--write"], "this command cannot change that")
    }))
})

describe("ca list and ca show", () => {
  test("say what each CA does, where its key is, and how many of its certificates are live", () =>
    Effect.gen(function*() {
      const place = yield* newPlace()
      yield* issued(place, `${own}/{issuer}`, 30)
      yield* issued(place, `${own}/{issuer}`, 60)
      yield* succeeds(place, ...rotate, "--at", "2026-03-01T07:00:00Z", "--write")
      const { items } = JSON.parse(yield* succeeds(place, "ca", "list", "--json")) as {
        readonly items: ReadonlyArray<{ readonly issuer: string; readonly issuance: string }>
      }
      assert.deepStrictEqual(items.map(({ issuance }) => issuance), ["issuing", "waiting"])
      const [present = { issuer: "" }, next = { issuer: "" }] = items
      const table = yield* succeeds(place, "ca", "list")
      assert.match(table, new RegExp(`${present.issuer} .* web +issuing .* file `))
      const show = (issuer: string) =>
        Effect.map(succeeds(place, "ca", "show", issuer, "--json"), (out) => JSON.parse(out))
      const shown = yield* show(present.issuer)
      assert.deepInclude(shown, { ...present, live: 2, truncated: false, keySource: "file" })
      assert.deepInclude(yield* show(next.issuer), { issuance: "waiting", live: 0 })
      yield* Effect.promise(() =>
        sqlAt(
          databaseOf(place),
          "UPDATE orders SET revoked_at = 5 WHERE cert_not_after = (SELECT min(cert_not_after) FROM orders)"
        )
      )
      assert.deepInclude(yield* show(present.issuer), { live: 1 })
      yield* refuses(place, ["ca", "show", "ab".repeat(32)], "issuer")
    }))
})
