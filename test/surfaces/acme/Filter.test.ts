import { Effect, Layer } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases, freshDirectory } from "../../support/Databases.ts"
import { column, configOf, count, fieldsOf, sql, world } from "../../support/Graph.ts"
import {
  acmeKey,
  at,
  bodyOf,
  byAccount,
  freshNonce,
  headerOf,
  newClient,
  posted,
  register,
  requestOf,
  signed,
  surfaceOf,
  urlOf
} from "../../support/Handle.ts"
import { policiesOf } from "../../support/Policies.ts"
import { shellScript } from "../../support/Script.ts"
import { onSystemClock, useStore } from "../../support/UseTests.ts"
import type { Making } from "../../support/UseTests.ts"

/* The filter is applied to every request of a profile, to newOrder and to finalize. */

const urn = "urn:ietf:params:acme:error:"

describe.each(databases)("the filter on $name", (backend) => {
  /** Each test sets its own policy, and gets the surface with it. */
  let config = configOf()
  const { records, test } = useStore(backend, {
    layer: ({ name, records, script = "" }: Making<string | (() => string)>) => {
      config = configOf(typeof script === "string" ? script : script())
      return world({ records, seed: name, policies: Layer.fresh(policiesOf(config)) })
    },
    first: () => surfaceOf(config),
    around: onSystemClock
  })

  type Surface = Effect.Success<ReturnType<typeof surfaceOf>>

  const someone = (surface: Surface, ip = "192.0.2.1") =>
    Effect.gen(function*() {
      const { send } = yield* newClient(surface, { clientIp: ip })
      const post = (path: string, payload?: object) => send(at(path), payload)
      const order = (...names: ReadonlyArray<string>) =>
        post("/newOrder", { identifiers: names.map((value) => ({ type: "dns", value })) })
      const ready = Effect.fnUntraced(function*(...names: ReadonlyArray<string>) {
        const location = headerOf(yield* order(...names), "location")
        yield* sql("UPDATE authorizations SET status = 'valid'")
        yield* sql("UPDATE orders SET status = 'ready'")
        const path = new URL(location).pathname.slice("/profile/default".length)
        return {
          finalize: (csr: Buffer) => post(`${path}/finalize`, { csr: csr.toString("base64url") }),
          status: Effect.map(post(path), (answer) => String(bodyOf(answer).status))
        }
      })
      return { post, order, ready }
    })

  const logged = (event: Record["event"]) => fieldsOf(records, event)
  const audited = Effect.map(
    sql("SELECT event, reason, detail, order_id FROM audit_log"),
    (rows) =>
      rows.map(({ detail, event, reason }): { readonly [name: string]: unknown } => ({
        event,
        reason,
        ...(JSON.parse(String(detail)) as object)
      }))
  )

  const internal = `filter.rules = ["relying", "inside"]
filter.check.lists = { type = "path", allow = ["/crl", "/ca.pem", "/issuer.cer", "/renewalInfo/*"] }
filter.check.office = { type = "allowed_ip", allow = ["192.0.2.0/24"], stages = ["connection"] }
filter.rule.relying = { when = "lists", then = "allow" }
filter.rule.inside = { when = "office", then = "allow" }
`
  test(
    "checks every request under the prefix at the connection stage, whatever the method",
    (surface) =>
      Effect.gen(function*() {
        const from = (clientIp: string, method: string, path: string) =>
          surface.handle(requestOf(method, at(path), { clientIp }))
        for (
          const [method, path] of [["GET", "/directory"], ["HEAD", "/newNonce"], ["PUT", "/newOrder"], ["GET", "/x"]]
        ) {
          const answer = yield* from("203.0.113.1", method ?? "", path ?? "")
          assert.strictEqual(answer.status, 403, path)
          assert.deepStrictEqual(answer.headers.link, [`<${urlOf(at("/directory"))}>;rel="index"`])
        }
        const refused = yield* from("203.0.113.1", "GET", "/directory")
        assert.deepStrictEqual(bodyOf(refused), {
          type: `${urn}unauthorized`,
          status: 403,
          detail: "the client address 203.0.113.1 is not among those allowed"
        })
        assert.strictEqual((yield* from("192.0.2.9", "GET", "/directory")).status, 200)
        // The policy has let this request through. The answer is 400 only because the path has no valid certID.
        assert.strictEqual((yield* from("203.0.113.1", "GET", "/renewalInfo/a.b")).status, 400)
        assert.deepInclude(logged("filter_request_blocked")[0] ?? {}, {
          profile: "default",
          stage: "connection",
          rule: undefined,
          check: "office",
          detail: "the client address 203.0.113.1 is not among those allowed"
        })
      }),
    internal
  )

  test(
    "answers a refused POST with a new nonce and does not use up the nonce of the request",
    (surface) =>
      Effect.gen(function*() {
        const key = acmeKey()
        const nonce = yield* freshNonce
        const target = at("/newAccount")
        const body = signed(key, { jwk: key.jwk, url: urlOf(target), nonce }, {})
        const answer = yield* surface.handle({ ...posted(target, body), clientIp: "203.0.113.1" })
        assert.strictEqual(answer.status, 403)
        assert.isString(headerOf(answer, "replay-nonce"))
        assert.strictEqual(yield* count("SELECT count(*) FROM accounts"), 0)
        assert.strictEqual((yield* surface.handle({ ...posted(target, body), clientIp: "192.0.2.1" })).status, 201)
      }),
    internal
  )

  test(
    "never refuses /health or a path outside every profile",
    (surface) =>
      Effect.gen(function*() {
        const from = (path: string) => surface.handle(requestOf("GET", path, { clientIp: "203.0.113.1" }))
        assert.strictEqual((yield* from("/health")).status, 200)
        assert.strictEqual((yield* from("/profile/none/directory")).status, 404)
        assert.strictEqual((yield* from("/profile/default")).status, 404)
        assert.strictEqual((yield* from("/profile/other/directory")).status, 403)
      }),
    internal
  )

  const names = `filter.rules = ["names"]
filter.check.own = { type = "identifiers", allow = ["*.example"] }
filter.rule.names = { when = "own", then = "allow" }
`
  test(
    "answers newOrder with a problem about the only refused name, or with a compound problem about several names",
    (surface) =>
      Effect.gen(function*() {
        const { order } = yield* someone(surface)
        const one = yield* order("a.example", "a.evil")
        assert.strictEqual(one.status, 403)
        assert.deepStrictEqual(bodyOf(one), {
          type: `${urn}rejectedIdentifier`,
          status: 403,
          detail: "not allowed: a.evil",
          identifier: { type: "dns", value: "a.evil" }
        })
        const several = bodyOf(yield* order("a.evil", "a.example", "b.evil"))
        assert.deepStrictEqual([several.type, several.status], [`${urn}compound`, 403])
        assert.deepStrictEqual(
          several.subproblems?.map(({ detail, identifier, type }) => [type, detail, identifier?.value]),
          [
            [`${urn}rejectedIdentifier`, "not allowed: a.evil", "a.evil"],
            [`${urn}rejectedIdentifier`, "not allowed: b.evil", "b.evil"]
          ]
        )
        assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 0)
        assert.deepStrictEqual(logged("filter_denied")[0], {
          profile: "default",
          stage: "identifiers",
          rule: undefined,
          check: "own",
          detail: "not allowed: a.evil"
        })
        assert.deepStrictEqual(logged("order_rejected").map(({ reason }) => reason), ["rejectedIdentifier", "compound"])
        assert.strictEqual((yield* order("a.example")).status, 201)
      }),
    names
  )

  test(
    "keeps the answer about 100 refused names shorter than four times these names",
    (surface) =>
      Effect.gen(function*() {
        const { order } = yield* someone(surface)
        const long = Array.from({ length: 100 }, (_, index) => `${`${"x".repeat(60)}.`.repeat(3)}n${index}.evil`)
        const answer = yield* order(...long)
        assert.strictEqual(bodyOf(answer).subproblems?.length, 100)
        assert.isBelow(String(answer.body).length, 4 * long.join().length)
      }),
    names
  )

  const messages = `filter.rules = ["no"]
filter.default = "allow"
filter.check.evil = { type = "identifiers", allow = ["*.evil"] }
filter.rule.no = { when = "evil", then = "deny", message = "ask <the> \\"owner\\"" }
`
  test(
    "sends the message of a rule unchanged and without the name of an identifier",
    (surface) =>
      Effect.gen(function*() {
        const { order } = yield* someone(surface)
        assert.deepStrictEqual(bodyOf(yield* order("a.evil")), {
          type: `${urn}rejectedIdentifier`,
          status: 403,
          detail: "ask <the> \"owner\""
        })
        assert.deepInclude(logged("filter_denied")[0] ?? {}, {
          rule: "no",
          check: undefined,
          detail: "ask <the> \"owner\""
        })
      }),
    messages
  )

  test("names in the answer the deny rule that has no message", (surface) =>
    Effect.gen(function*() {
      const { order } = yield* someone(surface)
      assert.strictEqual(bodyOf(yield* order("a.evil")).detail, "refused by rule no")
      assert.deepInclude(logged("filter_denied")[0] ?? {}, { rule: "no", check: undefined })
    }), messages.replace(/, message = .*\}/, " }"))

  test(
    "gives a general reason if a refusal has neither a message nor a failing check",
    (surface) =>
      Effect.gen(function*() {
        const { order } = yield* someone(surface)
        assert.strictEqual(bodyOf(yield* order("a.example")).detail, "request refused by policy")
      }),
    messages.replace("filter.default = \"allow\"", "filter.default = \"deny\"")
  )

  const teams = `filter.rules = ["printers", "sites"]
filter.check.print = { type = "identifiers", allow = ["*.print.example"] }
filter.check.web = { type = "identifiers", allow = ["*.web.example"] }
filter.rule.printers = { when = "print", then = "allow" }
filter.rule.sites = { when = "web", then = "allow" }
`
  test("does not count a name among the refused names if some rule permits it", (surface) =>
    Effect.gen(function*() {
      const { order } = yield* someone(surface)
      for (const permitted of ["a.web.example", "a.print.example"]) {
        const body = bodyOf(yield* order(permitted, "x.other"))
        assert.deepStrictEqual([body.detail, body.identifier?.value, body.subproblems], [
          "not allowed: x.other",
          "x.other",
          undefined
        ])
      }
      const mixed = bodyOf(yield* order("a.web.example", "a.print.example"))
      assert.strictEqual(mixed.type, `${urn}rejectedIdentifier`)
      assert.strictEqual(mixed.detail, "no rule allows these names together: a.web.example, a.print.example")
      assert.isUndefined(mixed.identifier)
    }), teams)

  test("logs the refusal and lets the request through in mode warn", (surface) =>
    Effect.gen(function*() {
      const { order } = yield* someone(surface)
      assert.strictEqual((yield* order("a.evil")).status, 201)
      assert.deepStrictEqual(logged("filter_rule_warned"), [
        { profile: "default", listener: undefined, stage: "identifiers", rule: "no" }
      ])
    }), messages.replace("deny\"", "deny\", mode = \"warn\""))

  const lost = `filter.rules = ["r"]
filter.check.gone = { type = "custom", script_path = "/nowhere", stages = ["identifiers"] }
filter.rule.r = { when = "gone", then = "allow" }
`
  test(
    "answers newOrder with 500 serverInternal and without the cause if a check is undecided",
    (surface) =>
      Effect.gen(function*() {
        const { order } = yield* someone(surface)
        const answer = yield* order("a.example")
        assert.deepStrictEqual([answer.status, bodyOf(answer).type], [500, `${urn}serverInternal`])
        assert.notInclude(String(answer.body), "ENOENT")
        assert.deepStrictEqual(logged("filter_undecided"), [
          {
            profile: "default",
            listener: undefined,
            stage: "identifiers",
            rule: "r",
            check: "gone",
            error: "could not be started: there is no /nowhere (ENOENT)"
          }
        ])
        assert.isString(headerOf(answer, "replay-nonce"))
      }),
    lost
  )

  test(
    "answers with 500 serverInternal if a check of the connection is undecided",
    (surface) =>
      Effect.gen(function*() {
        const answer = yield* surface.handle(requestOf("GET", at("/directory")))
        assert.deepStrictEqual([answer.status, bodyOf(answer).type], [500, `${urn}serverInternal`])
        assert.deepInclude(logged("filter_undecided")[0] ?? {}, { stage: "connection", check: "gone" })
      }),
    lost.replace("\"identifiers\"", "\"connection\"")
  )

  const atCsr = (verdict: string) => () => {
    const path = shellScript(`test "$ACME_FILTER_STAGE" != CSR || { echo "not $ACME_FILTER_IDENTIFIERS"; ${verdict}; }`)
    return `filter.rules = ["r"]
filter.check.late = { type = "custom", script_path = "${path}", stages = ["identifiers"], timeout_ms = 2000 }
filter.rule.r = { when = "late", then = "allow" }
`
  }
  test("refuses finalize with badCSR and leaves the order ready", (surface) =>
    Effect.gen(function*() {
      const { ready } = yield* someone(surface)
      const { finalize, status } = yield* ready("a.example")
      const answer = yield* finalize(makeCsr({ names: ["a.example"], commonNames: ["A host"] }).csr)
      assert.deepStrictEqual(bodyOf(answer), {
        type: `${urn}badCSR`,
        status: 400,
        detail: "not a.example,A host"
      })
      assert.strictEqual(yield* status, "ready")
      assert.deepStrictEqual(yield* audited, [
        {
          event: "certificate_issue_failed",
          reason: "badCSR",
          cause: "filter_denied",
          error: "not a.example,A host (the script ended with 1)"
        }
      ])
      assert.deepStrictEqual(logged("order_finalize_rejected").map(({ reason }) => reason), ["filter"])
      assert.strictEqual(logged("filter_denied")[0]?.["detail"], "not a.example,A host (the script ended with 1)")
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 0)
    }), atCsr("exit 1"))

  test(
    "answers finalize with 500 and leaves the order ready if a check is undecided",
    (surface) =>
      Effect.gen(function*() {
        const { ready } = yield* someone(surface)
        const { finalize, status } = yield* ready("a.example")
        const answer = yield* finalize(makeCsr({ names: ["a.example"] }).csr)
        assert.deepStrictEqual([answer.status, bodyOf(answer).type], [500, `${urn}serverInternal`])
        assert.strictEqual(yield* status, "ready")
        assert.deepStrictEqual(yield* audited, [{
          event: "certificate_issue_failed",
          reason: "serverInternal",
          cause: "filter_undecided",
          error: "did not end within 2000 ms",
          rule: "r"
        }])
      }),
    atCsr("sleep 1000")
  )

  test("lets a certificate be issued if the finalize request passes", (surface) =>
    Effect.gen(function*() {
      const { ready } = yield* someone(surface)
      const { finalize, status } = yield* ready("a.example")
      assert.strictEqual((yield* finalize(makeCsr({ names: ["a.example"] }).csr)).status, 200)
      assert.strictEqual(yield* status, "processing")
    }), names)

  let ran = ""
  test(
    "answers badCSR before any script starts if the names cannot be passed to a script",
    (surface) =>
      Effect.gen(function*() {
        const { ready } = yield* someone(surface)
        const { finalize, status } = yield* ready("a.example")
        for (const name of ["Example, Inc.", "a\nb", "a\u0000b", "a\u2028b", "\u00e9".repeat(66_000)]) {
          const answer = yield* finalize(makeCsr({ names: ["a.example"], commonNames: [name] }).csr)
          assert.strictEqual(bodyOf(answer).type, `${urn}badCSR`, JSON.stringify(name.slice(0, 20)))
        }
        assert.isFalse(existsSync(ran))
        assert.strictEqual(yield* status, "ready")
        const longest = makeCsr({ names: ["a.example"], commonNames: ["x".repeat(129_990)] }).csr
        assert.strictEqual((yield* finalize(longest)).status, 200)
        assert.isTrue(existsSync(ran))
      }),
    () => {
      ran = join(freshDirectory(), "ran")
      const path = shellScript(`test "$ACME_FILTER_STAGE" = newOrder || touch ${ran}`)
      return `filter.rules = ["r"]
filter.check.late = { type = "custom", script_path = "${path}", stages = ["identifiers"] }
filter.rule.r = { when = "late", then = "allow" }
`
    }
  )

  test("accepts free text with a comma if the policy has no script", (surface) =>
    Effect.gen(function*() {
      const { ready } = yield* someone(surface)
      const { finalize } = yield* ready("a.example")
      const { csr } = makeCsr({ names: ["a.example"], commonNames: ["Example, Inc."] })
      assert.strictEqual((yield* finalize(csr)).status, 200)
    }), names)

  const labelled = `eab.enabled = true
filter.rules = ["team"]
filter.check.team = { type = "eab", allow = ["team-*"] }
filter.rule.team = { when = "team", then = "allow" }
`
  test(
    "applies an eab check to the credential of the account until the credential is deleted",
    (surface) =>
      Effect.gen(function*() {
        const key = acmeKey()
        const kid = backend.dialect === "sqlite" ? `x'${"0".repeat(31)}1'` : `'\\x${"0".repeat(31)}1'`
        yield* sql(`INSERT INTO eab_keys (kid, secret, label, profile, status, created_at)
        VALUES (${kid}, ${backend.dialect === "sqlite" ? "x'00'" : "'\\x00'"}, 'Team-a', NULL, 'revoked', 0)`)
        const open = yield* surfaceOf(configOf())
        const account = yield* register(open, key)
        const order = Effect.flatMap(
          byAccount(key, account, at("/newOrder"), { identifiers: [{ type: "dns", value: "a.example" }] }),
          surface.handle
        )
        assert.strictEqual(bodyOf(yield* order).detail, "the account has no external account binding")
        yield* sql(`UPDATE accounts SET eab_kid = ${kid}`)
        assert.strictEqual((yield* order).status, 201)
        yield* sql("UPDATE eab_keys SET label = 'other'")
        assert.match(
          String(bodyOf(yield* order).detail),
          /^the account's credential 0{8}-0{4}-0{4}-0{4}-0{11}1 is not among those allowed$/
        )
        assert.match(String(logged("filter_denied").at(-1)?.["detail"]), / \(its label is other\)$/)
        yield* sql("DELETE FROM eab_keys")
        assert.strictEqual(bodyOf(yield* order).detail, "the account has no external account binding")
      }),
    labelled
  )

  test("runs a check once for all rules of a stage", (surface) =>
    Effect.gen(function*() {
      assert.strictEqual((yield* surface.handle(requestOf("GET", at("/directory")))).status, 200)
      // The second run of the script fails, as its file says.
      assert.strictEqual((yield* surface.handle(requestOf("GET", at("/directory")))).status, 403)
    }), () => {
    const file = join(freshDirectory(), "runs")
    const path = shellScript(`echo x >> ${file}; test $(wc -l < ${file}) -lt 2`)
    return `filter.rules = ["a", "b", "c"]
filter.check.once = { type = "custom", script_path = "${path}", stages = ["connection"] }
filter.rule.a = { when = "not once", then = "deny" }
filter.rule.b = { when = "not once and not once", then = "deny" }
filter.rule.c = { when = "once", then = "allow" }
`
  })

  const proxied = `filter.trusted_proxies = ["10.0.0.0/8"]
[profiles.other.filter]
trusted_proxies = []
`
  test(
    "determines the client's address with the settings of the requested profile",
    (surface) =>
      Effect.sync(() => {
        const of = (target: string, forwarded: string) =>
          surface.route(
            requestOf("GET", target, { clientIp: "10.0.0.1", headers: { "x-forwarded-for": forwarded } })
          ).clientIp
        assert.strictEqual(of(at("/directory"), "203.0.113.7"), "203.0.113.7")
        assert.strictEqual(of("/health", "203.0.113.7"), "203.0.113.7")
        assert.strictEqual(of("/profile/other/directory", "203.0.113.7"), "10.0.0.1")
      }),
    proxied
  )

  test(
    "stores the client's address in the order and in the audit row",
    (surface) =>
      Effect.gen(function*() {
        const { ready } = yield* someone(surface, "203.0.113.7")
        const { finalize } = yield* ready("a.example")
        yield* finalize(Buffer.from("x"))
        assert.deepStrictEqual(yield* column("SELECT client_ip FROM audit_log"), ["203.0.113.7"])
        assert.deepStrictEqual(yield* column("SELECT created_ip FROM orders"), ["203.0.113.7"])
      }),
    names
  )
})
