import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { whole } from "../../src/app/Commands.ts"
import type { CommandNode } from "../../src/surfaces/cli/CommandTree.ts"
import { leavesOf } from "../../src/surfaces/cli/CommandTree.ts"
import { freshPlace } from "../support/RunCommand.ts"

/*
 * Walks the command tree and gives each command every flag and argument wrongly. The refusal must name what is wrong.
 * The commands run in this process. Their database has no schema, so a wrong command line must be refused before the
 * database is used.
 */

const place = freshPlace()

/** Returns how a command line ends, and what it prints. */
const ends = (...words: ReadonlyArray<string>) => Effect.runPromise(place.run(words))

/** Checks that a command line is refused with one sentence on stderr that names the subject. */
const refuses = async (words: ReadonlyArray<string>, named: string, codes = [2]) => {
  const line = JSON.stringify(words)
  const { code, err, out } = await ends(...words)
  assert.include(codes, code, `${line}: ${err}`)
  assert.strictEqual(out, "", line)
  assert.match(err, /^[^\n]+\n$/, line)
  const sentence = words.includes("--json")
    ? (JSON.parse(err) as { readonly message: string }).message
    : err.trimEnd()
  assert.match(sentence, /\.$/, line)
  assert.include(sentence, named, line)
}

const leaves = leavesOf(await Effect.runPromise(whole))

/** Returns words for everything that a command requires, except one flag. */
const filled = ({ args, flags, path }: CommandNode, but?: string): ReadonlyArray<string> => [
  ...path.slice(1),
  ...args.filter(({ isNeeded }) => isNeeded).map(({ words }) => words[0] ?? "x"),
  ...flags.flatMap(({ isNeeded, name }) => isNeeded && name !== but ? [name, good.get(name) ?? "1"] : [])
]
const good = new Map([["--to", "sqlite:///nowhere/x.db"]])

describe.each(leaves.map((leaf) => ({ leaf, name: leaf.path.slice(1).join(" ") })))("$name", ({ leaf, name }) => {
  it("refuses an unknown flag and an additional argument", async () => {
    await refuses([...leaf.path.slice(1), "--no-such-flag"], "--no-such-flag")
    if (!leaf.args.some(({ isRepeated }) => isRepeated)) {
      const all = leaf.args.filter(({ isNeeded }) => !isNeeded).map(({ words }) => words[0] ?? "x")
      await refuses([...filled(leaf), ...all, "too-many"], "too-many")
    }
    if (leaf.flags.some((flag) => flag.name === "--json")) {
      const { code, err } = await ends(...leaf.path.slice(1), "--jsno", "--json")
      assert.deepStrictEqual([code, JSON.parse(err)], [2, {
        error: "usage",
        message: `${name} has no flag --jsno; the nearest is --json.`
      }])
    }
  })

  if (leaf.args.length > 0) {
    it("names an argument that is missing, empty or invalid", async () => {
      for (const [at, argument] of leaf.args.filter(({ isNeeded }) => isNeeded).entries()) {
        const words = filled(leaf)
        const place = leaf.path.length - 1 + at
        // The next words move into the place of the missing word, so the last argument counts as missing.
        await refuses(
          words.filter((_, index) => index !== place),
          leaf.args.findLast((one) => one.isNeeded)?.name ?? ""
        )
        await refuses(words.with(place, ""), argument.name)
        if (argument.isClosed) await refuses(words.with(place, "nonsense"), argument.name)
      }
    })
  }

  for (const flag of leaf.flags) {
    it(`names ${flag.name} when its value is missing, empty, given twice or not accepted`, async () => {
      const words = filled(leaf, flag.name)
      if (flag.isNeeded) await refuses(words, flag.name)
      if (flag.value === undefined) {
        await refuses([...words, `${flag.name}=1`], flag.name)
        return await refuses([...words, flag.name, flag.name], flag.name)
      }
      await refuses([...words, flag.name], flag.name)
      await refuses([...words, flag.name, ""], flag.name)
      await refuses([...words, `${flag.name}=`], flag.name)
      // A word that is not in a fixed set of words may also end with exit code 3.
      await refuses([...words, flag.name, "\u0007"], flag.name, [2, 3])
      if (flag.value === "number") {
        for (const bad of ["x", "1.5", "1e3", "0x10", "--json", " "]) {
          await refuses([...words, flag.name, bad], flag.name)
        }
      }
      const value = good.get(flag.name) ?? flag.words[0] ?? flag.value
      if (!flag.isRepeated) await refuses([...words, flag.name, value, flag.name, value], flag.name)
    })
  }
})

describe("the program itself", () => {
  it("has commands with different names", () => {
    const names = leaves.map(({ path }) => path.slice(1).join(" "))
    assert.strictEqual(new Set(names).size, names.length)
    assert.includeMembers(names, ["serve", "order list", "upstream order show", "completions"])
    for (const { flags, path } of leaves) {
      assert.strictEqual(new Set(flags.map((flag) => flag.name)).size, flags.length, path.join(" "))
    }
  })

  it("suggests the nearest command for an unknown command", async () => {
    assert.strictEqual((await ends("ordr", "list")).err, "There is no command ordr; the nearest is order.\n")
    assert.strictEqual((await ends("order", "lst")).err, "There is no command order lst; the nearest is list.\n")
    assert.strictEqual(
      (await ends("revoke", "4a1b")).err,
      "There is no command revoke; some end with it: eab revoke, admin session revoke, admin token revoke, order revoke, cert revoke, crl revoke.\n"
    )
    await refuses(["upstream", "list"], "upstream order list.")
    await refuses(["--json", "order", "list"], "--json")
    await refuses(["\u001b[2J"], "\\u001b[2J")
    await refuses(["ordr", "--help"], "order")
    await refuses(["order", "list", "--colour", "never"], "--color.")
    await refuses(["help", "order", "lst"], "list")
    await refuses(["upstream", "order"], "list, show")
    await refuses(["upstream", "order", "shw", "x"], "show")
  })
})

describe("words that could be read in several ways", () => {
  it.each([
    [["upstream", "show", "--profile", "-x"], "--profile: -x is not configured; there is default.\n"],
    [["upstream", "show", "--profile", "--"], "--profile: -- is not configured; there is default.\n"],
    [["upstream", "show", "--profile=--json"], "--profile: --json is not configured; there is default.\n"],
    [["upstream", "show", "--profile=a=b"], "--profile: a=b is not configured; there is default.\n"]
  ])("are read as values after a flag that takes a value: %j", async (words, err) => {
    assert.deepStrictEqual(await ends(...words), { code: 3, out: "", err })
  })

  it("are arguments after --, also if they begin with a hyphen", async () => {
    for (const word of ["-x", "--yes", "--help", "--json", "--"]) {
      const { code, err } = await ends("audit", "show", "--json", "--", word)
      assert.deepStrictEqual([code, JSON.parse(err).error], [1, "host_failed"], word)
    }
    await refuses(["order", "list", "--", "-x"], "-x")
  })

  it("are read as arguments after a flag that takes no value", async () => {
    for (const word of ["1", "true", "no", "-"]) {
      const { code, err } = await ends("audit", "show", "--json", word)
      assert.deepStrictEqual([code, JSON.parse(err).error], [1, "host_failed"], word)
    }
  })

  it("are refused with one sentence for each wrong value", async () => {
    assert.deepStrictEqual(await ends("order", "list", "--offset", "x", "--limit", "y"), {
      code: 2,
      out: "",
      err: "--limit takes a whole number.\n\n--offset takes a whole number.\n"
    })
  })
})

describe("values that only look correct", () => {
  it.each([
    [["order", "list", "--since", "2026-02-31"], "--since"],
    [["order", "list", "--since", "2026-02-31T00:00:00Z"], "--since"],
    [["order", "list", "--until", "2026-02-28T24:00:00Z"], "--until"],
    [["order", "list", "--since", "2026-02-02", "--until", "2026-02-01"], "--until"],
    [["order", "list", "--since", "2026-02-02", "--until", "2026-02-02"], "--until"],
    [["order", "list", "--expiring-in", "soon"], "--expiring-in"],
    [["order", "list", "--cert-serial", "0x12"], "--cert-serial"],
    [["order", "list", "--identifier-contains", " "], "--identifier-contains"],
    [["order", "revoke", "x", "--reason", "7"], "--reason"],
    [["order", "revoke", "x", "--wait", "-1"], "--wait"],
    [["crl", "raise", "x", "--above", "-1"], "--above"],
    [["crl", "raise", "x", "--above", "99999999999999999999"], "--above"],
    [["health", "--timeout-ms", "0"], "--timeout-ms"],
    [["eab", "create", "--label", "x".repeat(257)], "--label"],
    [["filter", "explain", "--path", "newOrder"], "--path"],
    [["filter", "explain", "--method", "get it"], "--method"],
    [["filter", "explain", "--client-ip", "localhost"], "--client-ip"],
    [["filter", "explain", "--identifier", "a..b"], "--identifier"],
    [["filter", "explain", "--common-name", "a,b"], "--common-name"],
    [["serve", "--role", "acme,,worker"], "--role"]
  ])("are refused with the name of their flag: %j", (words, named) => refuses(words, named))
})
