import { Effect, Fiber, Layer } from "effect"
import * as Context from "effect/Context"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { derive } from "../../src/crypto/PasswordHash.ts"
import { ReverseNames } from "../../src/engine/net/ReverseNames.ts"
import { Database, transaction } from "../../src/engine/sql/Database.ts"
import type { Driver } from "../../src/engine/sql/Driver.ts"
import * as crl from "../../src/operations/work/crl/ListPublication.ts"
import { Notifier } from "../../src/services/notify/Notifier.ts"
import { Passwords } from "../../src/services/operators/Passwords.ts"
import { Policies } from "../../src/services/policy/Policies.ts"
import type { Decision } from "../../src/services/policy/Policy.ts"
import { Signers } from "../../src/services/signing/Signer.ts"
import { apiOf, signedIn } from "../support/Api.ts"
import { makeCsr } from "../support/Csr.ts"
import { databases, freshDirectory } from "../support/Databases.ts"
import type { World } from "../support/Graph.ts"
import { callerAt, configOf, count, profileOf, world } from "../support/Graph.ts"
import { at, bodyOf, headerOf, newClient, surfaceOf } from "../support/Handle.ts"
import { issueTo, profilesIn, work } from "../support/Issued.ts"
import { madeAt } from "../support/LocalCa.ts"
import { enrolled, enter, password } from "../support/Operators.ts"
import { useStore } from "../support/UseTests.ts"

/*
 * A transaction contains only statements: while it is open, it never waits for a host, a program, a signature or a hash
 * (docs/contribute/architecture.md, "Choices that are not obvious"). In this test, each call to the outside records
 * whether a transaction is open, while certificates and operators are created and removed.
 */

const config = configOf(`[profiles.other.signer]
backend = "custom"
custom.script_path = "sign"
[notify]
enabled = ["webhook"]
webhook_enabled = ["chat"]
[notify.webhook.chat]
url = "https://chat.example/secret"
`)

const isOpen = Context.Reference("acme/../test/operations/Outside.test/isOpen", { defaultValue: () => false })

/** A driver that marks the fibers in which a transaction is open. */
const marking = (driver: Driver): Driver => ({
  ...driver,
  transact: (body) => driver.transact((connection) => Effect.provideService(body(connection), isOpen, true))
})

const whatIsAsked = ["delivery", "hash", "list", "policy", "PTR name", "revocation", "signature", "validation"] as const

describe.each(databases)("no transaction is open on $name", (backend) => {
  const met = new Set<string>()
  const asked = (what: (typeof whatIsAsked)[number]) =>
    Effect.flatMap(isOpen, (isWithin) => {
      met.add(isWithin ? `${what} within a transaction` : what)
      return Effect.void
    })
  const allowed: Decision = { _tag: "Allowed", warned: [], asked: new Map(), rule: undefined, last: undefined }
  const policy = {
    connection: () => Effect.as(asked("policy"), allowed),
    identifiers: () => Effect.as(asked("policy"), allowed),
    hasScriptsForNames: false
  }
  /** The CA of the profile `default` publishes its own list. The profile `other` uses an external signer. */
  const signers = Layer.effect(
    Signers,
    Effect.gen(function*() {
      const real = yield* Signers
      const own = (yield* Effect.orDie(real.of("default"))).crls
      return {
        ...real,
        crlIssuers: real.crlIssuers.filter(({ id }) => id === own?.[0]?.id).map((issuer) => ({
          ...issuer,
          sign: (...given: Parameters<typeof issuer.sign>) => Effect.andThen(asked("list"), issuer.sign(...given))
        })),
        of: (profile: string) =>
          Effect.map(real.of(profile), (signer) =>
            signer.issue === undefined ? signer : {
              issue: (request: Parameters<typeof signer.issue>[0]) =>
                Effect.andThen(asked("signature"), signer.issue(request)),
              ...(profile === "default" && own !== undefined ? { crls: own } : { revoke: () => asked("revocation") })
            })
      }
    })
  )
  const names = Layer.succeed(ReverseNames, {
    look: () => asked("PTR name"),
    of: () => Effect.succeed(undefined)
  })
  const passwords = Passwords.layer({
    iterations: 2,
    recoveryIterations: 1,
    derive: (...given) => Effect.andThen(asked("hash"), derive(...given))
  })

  const { test } = useStore<void, World | Passwords | Notifier>(backend, {
    startsAt: madeAt,
    first: () => crl.initialize,
    layer: ({ name, records }) =>
      Layer.provideMerge(
        Layer.mergeAll(signers, names, passwords, Notifier.layer(() => config)),
        world({
          seed: name,
          records,
          profiles: [...profilesIn(freshDirectory()).slice(0, 1), ...profilesIn(freshDirectory()).slice(1)],
          policies: Layer.succeed(Policies, new Map(profilesIn(freshDirectory()).map(({ name }) => [name, policy]))),
          validate: () => asked("validation"),
          deliver: () => Effect.as(asked("delivery"), { answer: "taken" })
        })
      )
  })

  const asClient = Effect.gen(function*() {
    const { send } = yield* newClient(yield* surfaceOf(config))
    const order = yield* send(at("/newOrder"), { identifiers: [{ type: "dns", value: "a.example" }] })
    const { authorizations: [authorization = ""] = [], finalize = "" } = bodyOf(order) as {
      readonly authorizations?: ReadonlyArray<string>
      readonly finalize?: string
    }
    const { challenges: [challenge] = [] } = bodyOf(yield* send(authorization)) as {
      readonly challenges?: ReadonlyArray<{ readonly url: string }>
    }
    yield* send(challenge?.url ?? "", {})
    yield* work("challenge_validate")
    yield* send(finalize, { csr: makeCsr({ names: ["a.example"] }).csr.toString("base64url") })
    yield* work("signer_issue")
    const { certificate = "" } = bodyOf(yield* send(headerOf(order, "location"))) as { readonly certificate?: string }
    const chain = String((yield* send(certificate)).body)
    const leaf = Buffer.from(/-----BEGIN CERTIFICATE-----([^-]+)/.exec(chain)?.[1] ?? "", "base64")
    const revoked = yield* send(at("/revokeCert"), { certificate: leaf.toString("base64url") })
    assert.strictEqual(revoked.status, 200, String(revoked.body))
    yield* work("local_ca_crl_regenerate")
  })

  const asOperator = Effect.gen(function*() {
    const api = yield* apiOf(config)
    const held = yield* signedIn(api, "root", "admin")
    const change = (path: string, body: object) =>
      api.ask(path, { method: "POST", ...held, body: { password, ...body } })
    const { id } = (yield* change("/api/tokens", { name: "t", role: "viewer", expiresInDays: 1 })).json
    assert.strictEqual((yield* api.ask(`/api/tokens/${id}/revoke`, { method: "POST", ...held })).status, 204)
    const caller = yield* callerAt(profileOf(config, "other"))
    const { orderId } = yield* issueTo(caller, ["b.example"])
    const revoking = yield* Effect.forkChild(
      api.ask(`/api/orders/${orderId}/revoke`, { method: "POST", ...held, body: {} })
    )
    yield* Effect.repeat(
      Effect.andThen(Effect.yieldNow, count("SELECT count(*) FROM jobs WHERE kind = 'signer_revoke'")),
      { until: (found) => found === 1, times: 10_000 }
    )
    yield* work("signer_revoke")
    yield* TestClock.adjust("1 second")
    assert.isBelow((yield* Fiber.join(revoking)).status, 300)
    yield* enrolled((yield* enter("root")).identity)
  })

  test("while a client or an operator waits for a host, a program, a signature or a hash", () =>
    Effect.gen(function*() {
      met.clear()
      const driver = yield* Database
      const acts = Effect.all([asClient, asOperator, work("notify_deliver")], { discard: true })
      yield* Effect.provideService(acts, Database, marking(driver))
      assert.deepStrictEqual([...met].toSorted(), whatIsAsked.toSorted())
    }))

  test("unless a call is made within a transaction, and the check of this file then notices the call", () =>
    Effect.gen(function*() {
      met.clear()
      yield* Effect.provideService(transaction(asked("hash")), Database, marking(yield* Database))
      assert.deepStrictEqual([...met], ["hash within a transaction"])
    }))
})
