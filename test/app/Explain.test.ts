import { Effect } from "effect"
import { readdirSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { everyWord } from "../../src/operations/operator/Catalogue.ts"
import { freshPlace } from "../support/RunCommand.ts"

const place = freshPlace(null)
const run = (...words: ReadonlyArray<string>) => Effect.runPromise(place.run(words))
const succeeds = async (...words: ReadonlyArray<string>) => {
  const { code, err, out } = await run(...words)
  assert.deepStrictEqual([code, err], [0, ""])
  return out
}

describe("explain", () => {
  it("prints what an event means, what to do, its facts and its pages", async () => {
    const out = await succeeds("explain", "job_run_abandoned")
    assert.match(out, /^word +job_run_abandoned$/m)
    assert.match(out, /^kind +log event$/m)
    assert.match(out, /^means +The service has given up a job/m)
    assert.match(out, /^do +.*`acme-svc jobs run-now JOB_ID`/m)
    assert.match(out, /^level +error$/m)
    assert.match(out, /^target +acme_svc\.job$/m)
    assert.match(out, /^fields +kind, job_id, attempts, error$/m)
    assert.match(
      out,
      /^see +docs\/operate\/runbooks\/issuance-fails\.md, docs\/reference\/log-events\.md#job_run_abandoned$/m
    )
  })

  it("says of a success that nothing has to be done", async () => {
    assert.match(await succeeds("explain", "order_finalized"), /^do +nothing has to be done$/m)
  })

  it("prints the default, the values and the variable of a key", async () => {
    const out = await succeeds("explain", "profiles.web.order.finalize_wait_ms")
    assert.match(out, /^word +order\.finalize_wait_ms$/m)
    assert.match(out, /^default +0$/m)
    assert.match(out, /^value +integer, at least 0$/m)
    assert.match(out, /^variable +ACME_SVC_ORDER__FINALIZE_WAIT_MS$/m)
    assert.match(out, /^profiles +a profile may override it$/m)
  })

  it("prints the statuses of an error, and the events that say more", async () => {
    const out = await succeeds("explain", "urn:ietf:params:acme:error:rateLimited")
    assert.match(out, /^status +429$/m)
    assert.match(out, /^log events +request_rate_limited/m)
  })

  it("prints all words of a name that has several", async () => {
    const out = await succeeds("explain", "certificate_revoked")
    assert.match(out, /^kind +log event$/m)
    assert.match(out, /^kind +audit event$/m)
  })

  it("prints the same as an object", async () => {
    const { total, words } = JSON.parse(await succeeds("explain", "badCSR", "--json"))
    assert.strictEqual(total, 1)
    assert.deepInclude(words[0], { kind: "problem", name: "badCSR", statuses: [400] })
    const all = JSON.parse(await succeeds("explain", "--json"))
    assert.deepStrictEqual(all.words, JSON.parse(JSON.stringify(everyWord())))
  })

  it("without a word lists the kinds, and says how to search", async () => {
    const out = await succeeds("explain")
    assert.match(out, /^configuration key +\d+ +database\.url$/m)
    assert.include(out, "acme-svc explain --search TEXT")
  })

  it("finds words by a text, and says how many there are", async () => {
    const out = await succeeds("explain", "--search", "standby")
    assert.match(out, /^db_standby_left +log event +The standby/m)
    assert.match(out, /^database\.read_url +configuration key/m)
    assert.include(await succeeds("explain", "--search", "no word says this"), "0 of 0 row(s).")
  })

  it("refuses an unknown word with 2, and names the three nearest", async () => {
    assert.deepStrictEqual(await run("explain", "job_run_abandond"), {
      code: 2,
      out: "",
      err:
        "There is no word \"job_run_abandond\"; the nearest are job_run_abandoned, job_run_panicked, job_run_retried.\n"
    })
  })

  it("refuses a word that controls the terminal or is endless, and prints neither", async () => {
    const { code, err } = await run("explain", `a\u001b[2J\u202e${"x".repeat(100_000)}`)
    assert.strictEqual(code, 2)
    assert.notMatch(err.trimEnd(), /(?!\n)[\p{Cc}\p{Cf}]/u)
    assert.isBelow(err.length, 600)
  })

  it("refuses a word together with a search, and a search for nothing", async () => {
    assert.deepInclude(await run("explain", "badCSR", "--search", "csr"), {
      code: 2,
      err: "explain takes a word or --search, not both.\n"
    })
    assert.strictEqual((await run("explain", "--search", " ")).code, 2)
    assert.strictEqual((await run("explain", "")).code, 2)
  })

  it("makes no file, and reads no configuration", async () => {
    await succeeds("explain", "badCSR")
    assert.deepStrictEqual(readdirSync(place.directory), [])
    const { code } = await Effect.runPromise(
      place.run(["explain", "badCSR"], { env: { ACME_SVC_DATABASE__URL: "nonsense", ACME_SVC_CONFIG: "/absent.toml" } })
    )
    assert.strictEqual(code, 0)
  })
})
