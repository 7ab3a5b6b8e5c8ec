import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { freshPlace } from "../support/RunCommand.ts"
import { useTests } from "../support/UseTests.ts"

/* The commands about campaigns. */

const { test } = useTests({ startsAt: 1_800_000_000 })

const ready = Effect.gen(function*() {
  const place = freshPlace()
  assert.strictEqual((yield* place.run(["migrate"])).code, 0)
  return place
})

describe("`campaign`", () => {
  test("reads serial numbers from a file", () =>
    Effect.gen(function*() {
      const place = yield* ready
      writeFileSync(join(place.directory, "serials"), "# these\n0A:01\n0a02, 0a01\n")
      const started = yield* place.run(["campaign", "start", "--serials-file", "serials", "--reason", "bug", "--json"])
      assert.strictEqual(started.code, 0, started.err)
      assert.deepStrictEqual((JSON.parse(started.out) as { readonly filter: object }).filter, { serials: 2 })
    }))

  test("shows the filter of a new campaign, and where its certificates will be counted", () =>
    Effect.gen(function*() {
      const place = yield* ready
      const started = yield* place.run(["campaign", "start", "--key", "rsa", "--name", "*.example", "--reason", "bug"])
      assert.match(started.out, /^filter key +rsa$/m)
      assert.match(started.out, /^filter name +\*\.example$/m)
      const [, id] = /^id +(\S+)$/m.exec(started.out) ?? []
      assert.include(started.err, `acme-svc campaign show ${id}`)
    }))

  test("refuses each member that cannot be used, and names its flag", () =>
    Effect.gen(function*() {
      const place = yield* ready
      writeFileSync(join(place.directory, "serials"), "0a01\nno\n")
      writeFileSync(join(place.directory, "empty"), "\n")
      const all = ["--profile", "default"]
      const id = "01890a5d-ac96-774b-bcce-b302099a8057"
      const wrong: ReadonlyArray<readonly [said: string, ...words: ReadonlyArray<string>]> = [
        ["At least one of these is needed"],
        ["--issuer", "--issuer", "0"],
        ["There is no profile none", "--profile", "none"],
        ["--kind takes one of", "--kind", "none"],
        ["--key takes", "--key", "dsa"],
        ["--kid takes", "--kid", "x"],
        [`There is no credential ${id}`, "--kid", id],
        ["--account-id takes", "--account-id", "x"],
        [`There is no account ${id}`, "--account-id", id],
        ["--name takes", "--name", "a b"],
        ["line 2 is none", "--serials-file", "serials"],
        ["there are none", "--serials-file", "empty"],
        ["--issued-before takes", "--issued-before", "yesterday"],
        ["--explanation-url takes", ...all, "--explanation-url", "ftp://a.example"],
        ["--pace takes", ...all, "--pace", "0"],
        ["--revoke-at takes a time in the future", ...all, "--revoke-at", "2001-01-01"],
        ["--revoke-reason takes", ...all, "--revoke-at", "2099-01-01", "--revoke-reason", "7"],
        ["--revoke-reason needs --revoke-at", ...all, "--revoke-reason", "4"]
      ]
      for (const [said, ...words] of wrong) {
        const { code, err } = yield* place.run(["campaign", "start", "--reason", "bug", ...words])
        assert.include([2, 3], code, words.join(" "))
        assert.include(err, said, words.join(" "))
      }
      const { err } = yield* place.run(["campaign", "start", ...all, "--reason", " "])
      assert.include(err, "--reason takes 1 to 500 characters")
    }))

  test("says that clients that keep their keys will be refused, before it begins or confirms that", () =>
    Effect.gen(function*() {
      const place = yield* ready
      const dated = ["--key", "rsa", "--reason", "bug", "--revoke-at", "2099-01-01", "--revoke-reason", "1"]
      const asked = yield* place.run(["campaign", "start", ...dated], { typed: "n\n" })
      assert.notStrictEqual(asked.code, 0)
      assert.include(asked.err, "clients that keep their keys will be refused")
      const started = yield* place.run(["campaign", "start", ...dated, "--yes", "--json"])
      const { id } = JSON.parse(started.out) as { readonly id: string }
      const confirming = yield* place.run(["campaign", "confirm", id], { typed: "n\n" })
      assert.notStrictEqual(confirming.code, 0)
      assert.include(confirming.err, "clients that keep their keys will be refused")
    }))
})
