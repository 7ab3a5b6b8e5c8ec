import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Scope } from "effect"
import type { Database } from "../../src/kernel/sql/Database.ts"
import type { Record } from "../../src/kernel/telemetry/EventLog.ts"
import { finalize } from "../../src/operations/order/Finalize.ts"
import type { CsrRejected, Issued, IssueRequest, Relaying, SigningFailed } from "../../src/services/signing/Signer.ts"
import { ProfileNotMounted, Signers } from "../../src/services/signing/Signer.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import { makeCsr } from "./Csr.ts"
import type { Backend } from "./Databases.ts"
import { useDatabase } from "./Databases.ts"
import type { World } from "./Graph.ts"
import { callerAt, column, configOf, orderOf, profileOf, signsAtOnce, sql, world } from "./Graph.ts"
import { work } from "./Issued.ts"

/* Orders that are relayed, at an upstream that is played by a function. */

/** Every profile relays. */
export const relaying: Config = configOf(`
[challenge]
enabled = ["http-01", "dns-01"]
[signer]
backend = "relay"
relay.directory_url = "https://ca.example/directory"
`)

/** What a relay is asked: for which profile, and what it is told of attempts before. */
export interface Asked<E> extends Relaying<E> {
  readonly profile: string
  readonly request: IssueRequest
}

/** How an upstream takes an order. */
export type Upstream = <E>(asked: Asked<E>) => Effect.Effect<Issued, CsrRejected | SigningFailed | E>

/** Relays orders of these profiles as a function says. */
export const relaysBy = (upstream: Upstream, profiles = ["default", "other"]): Layer.Layer<Signers> =>
  Layer.succeed(Signers, {
    bySection: new Map(),
    crlIssuers: [],
    of: (profile) =>
      profiles.includes(profile)
        ? Effect.succeed({
          relay: (request, of) => upstream({ profile, request, ...of }),
          revoke: () => Effect.void
        })
        : new ProfileNotMounted({ profile })
  })

/** An order whose certificate is asked for: only its validation is left out. */
export const finalized = Effect.fnUntraced(
  function*(profile = "default", names: ReadonlyArray<string> = ["a.example"]) {
    const caller = yield* callerAt(profileOf(relaying, profile))
    const order = yield* orderOf(caller, ...names)
    yield* sql("UPDATE authorizations SET status = 'valid' WHERE status = 'pending'")
    yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
    const { csr } = makeCsr({ names })
    yield* finalize(caller, order.id, csr.toString("base64url"))
    return { caller, order, id: order.id, csr }
  }
)

/** Runs whatever relaying is due. */
export const relay = work("signer_relay_issue")

/** The jobs of relaying, oldest first. */
export const relayJobs = column("SELECT status FROM jobs WHERE kind = 'signer_relay_issue' ORDER BY id")

/** What is known of the upstream's orders: where they are, and why. */
export const upstreamRows = Effect.map(
  sql("SELECT status, error FROM upstream_orders ORDER BY order_id"),
  (found) => found.map(({ error, status }) => [status, error])
)

/** The trail: event, reason, detail. */
export const trail = Effect.map(
  sql("SELECT event, reason, detail FROM audit_log ORDER BY id"),
  (found) => found.map(({ detail, event, reason }) => ({ event, reason, detail: JSON.parse(String(detail)) as object }))
)

/** A describe block's database, and an upstream that signs at once until a test has it do something else. */
export const useRelays = (backend: Backend) => {
  const database = useDatabase(backend)
  const records: Array<Record> = []
  const asked: Array<Asked<unknown>> = []
  const honest: Upstream = ({ request }) => signsAtOnce(request)
  let upstream = honest
  const signers = relaysBy((one) =>
    Effect.suspend(() => {
      asked.push(one)
      return upstream(one)
    })
  )
  return {
    database,
    /** Takes every log record of the test. */
    records,
    /** What the upstream was asked in the test. */
    asked,
    /** How the upstream goes on. */
    play: (next: Upstream) => {
      upstream = next
    },
    test: (name: string, body: () => Effect.Effect<void, unknown, Database | Signers | World | Scope.Scope>) =>
      it.scoped(name, () => {
        records.length = 0
        asked.length = 0
        upstream = honest
        return database.use(Effect.provide(Effect.suspend(body), Layer.merge(world({ records, seed: name }), signers)))
      })
  }
}
