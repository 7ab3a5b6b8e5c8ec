import { Effect } from "effect"
import { assert, describe } from "vitest"
import { SignerFailed } from "../../../src/domain/JobFailure.ts"
import { mostAlike } from "../../../src/operations/operator/Jobs.ts"
import { signedIn, useApi } from "../../support/Api.ts"
import { databases } from "../../support/Databases.ts"
import { column, idLiteral, sql } from "../../support/Graph.ts"
import { startsAt } from "../../support/Operators.ts"

/* Runs all jobs with the same error over the API. */

describe.each(databases)("the jobs with one error on $name", (backend) => {
  const { test } = useApi(backend)
  let made = 0

  /** Adds a job, and returns its id. */
  const job = Effect.fnUntraced(function*(
    status: string,
    error: string,
    { kind = "signer_issue", key = `key-${made}`, runAt = startsAt + 900 } = {}
  ) {
    const id = `01890a5d-ac96-774b-bcce-${String(++made).padStart(12, "0")}`
    const mark = (number: number) => backend.dialect === "sqlite" ? "?" : `$${number}`
    yield* sql(
      `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at,
         last_error) VALUES (${
        idLiteral(backend.dialect, id)
      }, '${kind}', '${key}', '{}', '${status}', ${runAt}, 1, 3, 1,
         1, ${mark(1)})`,
      [error]
    )
    return id
  })
  const due = column(`SELECT count(*) FROM jobs WHERE status = 'ready' AND run_at <= ${startsAt}`)

  test("are due at once if they have failed or wait, and other jobs are left alone", (api) =>
    Effect.gen(function*() {
      const held = yield* signedIn(api, "otto", "operator")
      const stored = new SignerFailed({ cause: "script_failed", detail: "exit 1 \u202Efdp" }).row
      const error = "script_failed: exit 1 \u202Efdp"
      yield* job("failed", stored)
      yield* job("ready", stored)
      yield* job("ready", stored, { runAt: startsAt })
      yield* job("running", stored)
      yield* job("done", stored)
      yield* job("failed", "another error")
      yield* job("failed", stored, { kind: "signer_revoke" })
      const twin = yield* job("failed", stored, { key: "twin" })
      yield* job("ready", "", { key: "twin" })
      const run = (body: object) => api.ask("/api/jobs/run", { method: "POST", ...held, body })
      const told = yield* run({ kind: "signer_issue", error })
      assert.strictEqual(told.status, 200, told.text)
      assert.deepInclude(told.json, { due: 2, remaining: 0 })
      assert.deepInclude(told.json.refused[0], { id: twin, error: "job_not_runnable" })
      assert.deepStrictEqual(yield* due, ["3"], "one was due before")
      assert.deepStrictEqual(yield* column("SELECT count(*) FROM audit_log WHERE event = 'job_advanced'"), ["2"])
      assert.deepInclude((yield* run({ kind: "signer_issue", error: "none" })).json, { due: 0, remaining: 0 })
      for (
        const [body, code] of [
          [{ kind: "signer_issue", error: " " }, "bad_request"],
          [{ kind: "signer_issue" }, "bad_request"],
          [{ kind: "bogus", error }, "invalid_status"]
        ] as const
      ) assert.strictEqual((yield* run(body)).json.error, code)
    }))

  test("are found by an error without the address that the list of deliveries hides", (api) =>
    Effect.gen(function*() {
      const held = yield* signedIn(api, "otto", "operator")
      yield* job("failed", "550 no ann@a.example here", { kind: "notify_deliver" })
      const body = { kind: "notify_deliver", error: "550 no *** here" }
      const told = yield* api.ask("/api/jobs/run", { method: "POST", ...held, body })
      assert.deepInclude(told.json, { due: 1 })
    }))

  test("are run in parts if they are many", (api) =>
    Effect.gen(function*() {
      const held = yield* signedIn(api, "otto", "operator")
      for (let many = 0; many < mostAlike + 2; many++) yield* job("failed", "planted")
      const run = Effect.map(
        api.ask("/api/jobs/run", { method: "POST", ...held, body: { kind: "signer_issue", error: "planted" } }),
        ({ json }) => [json.due, json.remaining]
      )
      assert.deepStrictEqual(yield* run, [mostAlike, 2])
      assert.deepStrictEqual(yield* run, [2, 0])
    }))
})
