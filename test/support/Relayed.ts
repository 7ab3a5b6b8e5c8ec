import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Scope } from "effect"
import { Entropy } from "../../src/crypto/Entropy.ts"
import type { Database } from "../../src/engine/sql/Database.ts"
import type { Record } from "../../src/engine/telemetry/EventLog.ts"
import { finalize } from "../../src/operations/acme/Finalize.ts"
import * as orders from "../../src/operations/acme/Orders.ts"
import type { Caller } from "../../src/operations/Caller.ts"
import * as LocalCa from "../../src/services/signing/LocalCa.ts"
import type {
  CsrRejected,
  Issued,
  IssueRequest,
  Relaying,
  RelaySigner,
  SigningFailed
} from "../../src/services/signing/Signer.ts"
import { ProfileNotMounted, Signers } from "../../src/services/signing/Signer.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import { makeCsr } from "./Csr.ts"
import type { Backend } from "./Databases.ts"
import { freshDirectory, useDatabase } from "./Databases.ts"
import type { World } from "./Graph.ts"
import { callerAt, column, configOf, profileOf, signsAtOnce, sql, world } from "./Graph.ts"
import { work } from "./Issued.ts"
import { settingsIn } from "./LocalCa.ts"
import { offline } from "./Offline.ts"

/* Relayed orders with an upstream that a function simulates. */

/** A configuration in which every profile relays. */
export const relaying: Config = configOf(`
[challenge]
enabled = ["http-01", "dns-01"]
[signer]
backend = "relay"
relay.directory_url = "https://ca.example/directory"
`)

/** What a relay gets for an order: the profile, the request, and the record of earlier attempts. */
export interface Asked<E> extends Relaying<E> {
  readonly profile: string
  readonly request: IssueRequest
}

/** How an upstream reacts to an order. */
export type Upstream = <E>(asked: Asked<E>) => Effect.Effect<Issued, CsrRejected | SigningFailed | E>

/** Signs with a real CA, so that the certificate is readable. */
export const signsByCa = (request: IssueRequest) =>
  Effect.flatMap(LocalCa.make(settingsIn(freshDirectory())), (ca) => ca.issue(request)).pipe(
    Effect.provide(Layer.merge(Entropy.layerSeeded("ca"), offline)),
    Effect.orDie
  )

/** How an upstream answers a request for renewal information. */
export type Suggests = RelaySigner["renewal"]

const suggestsNothing: Suggests = () => Effect.succeed({ window: undefined, retryAfter: undefined })

/** Relays orders of these profiles as a function decides. */
export const relaysBy = (
  upstream: Upstream,
  profiles = ["default", "other"],
  {
    leftOver = () => Effect.succeed(undefined),
    renewal = suggestsNothing,
    revoke = () => Effect.void
  }: Partial<Pick<RelaySigner, "leftOver" | "renewal" | "revoke">> = {}
): Layer.Layer<Signers> =>
  Layer.succeed(Signers, {
    bySection: new Map(),
    crlIssuers: [],
    troubles: Effect.succeed(new Map()),
    of: (profile) =>
      profiles.includes(profile)
        ? Effect.succeed({
          relay: (request, of) => upstream({ profile, request, ...of }),
          renewal,
          revoke,
          leftOver
        })
        : new ProfileNotMounted({ profile })
  })

/** Makes a finalized order, without validation. */
export const finalized = Effect.fnUntraced(
  function*(
    profile = "default",
    names: ReadonlyArray<string> = ["a.example"],
    replaces?: { readonly caller: Caller; readonly certId: string }
  ) {
    const caller = replaces?.caller ?? (yield* callerAt(profileOf(relaying, profile)))
    const order = yield* orders.create(caller, {
      identifiers: names.map((value) => ({ type: "dns", value })),
      notBefore: undefined,
      notAfter: undefined,
      replaces: replaces?.certId
    })
    yield* sql("UPDATE authorizations SET status = 'valid' WHERE status = 'pending'")
    yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
    const { csr } = makeCsr({ names })
    yield* finalize(caller, order.id, csr.toString("base64url"))
    return { caller, order, id: order.id, csr }
  }
)

/** Runs the relay jobs that are due. */
export const relay = work("signer_relay_issue")

/** The jobs of relaying, oldest first. */
export const relayJobs = column("SELECT status FROM jobs WHERE kind = 'signer_relay_issue' ORDER BY id")

/** The status and the error of each record of an upstream order. */
export const upstreamRows = Effect.map(
  sql("SELECT status, error FROM upstream_orders ORDER BY order_id"),
  (found) => found.map(({ error, status }) => [status, error])
)

/** The rows of the audit trail: event, reason, detail. */
export const trail = Effect.map(
  sql("SELECT event, reason, detail FROM audit_log ORDER BY id"),
  (found) => found.map(({ detail, event, reason }) => ({ event, reason, detail: JSON.parse(String(detail)) as object }))
)

/** Provides the database of a describe block, with an upstream that signs at once unless a test changes this. */
export const useRelays = (backend: Backend) => {
  const database = useDatabase(backend)
  const records: Array<Record> = []
  const asked: Array<Asked<unknown>> = []
  const honest: Upstream = ({ request }) => signsAtOnce(request)
  let upstream = honest
  let suggests = suggestsNothing
  const revoked: Array<Uint8Array> = []
  const revokesAll: RelaySigner["revoke"] = () => Effect.void
  const leavesNothing: RelaySigner["leftOver"] = () => Effect.succeed(undefined)
  let revokes = revokesAll
  let leaves = leavesNothing
  const signers = relaysBy(
    (one) =>
      Effect.suspend(() => {
        asked.push(one)
        return upstream(one)
      }),
    undefined,
    {
      renewal: (certificate) => suggests(certificate),
      revoke: (leaf, reason) =>
        Effect.suspend(() => {
          revoked.push(leaf)
          return revokes(leaf, reason)
        }),
      leftOver: (url) => leaves(url)
    }
  )
  return {
    database,
    /** Every log record of the test. */
    records,
    /** The requests that the upstream got in the test. */
    asked,
    /** The leaves that the upstream was asked to revoke in the test. */
    revoked,
    /** Sets how the upstream answers revocations from now on. */
    revokeBy: (next: RelaySigner["revoke"]) => {
      revokes = next
    },
    /** Sets the certificate that the upstream issued for an order that the relay does not continue. */
    leave: (next: RelaySigner["leftOver"]) => {
      leaves = next
    },
    /** Sets the reaction of the upstream from now on. */
    play: (next: Upstream) => {
      upstream = next
    },
    /** Sets what the upstream suggests for renewals from now on. */
    suggest: (next: Suggests) => {
      suggests = next
    },
    test: (name: string, body: () => Effect.Effect<void, unknown, Database | Signers | World | Scope.Scope>) =>
      it.effect(name, () => {
        records.length = 0
        asked.length = 0
        upstream = honest
        suggests = suggestsNothing
        revoked.length = 0
        revokes = revokesAll
        leaves = leavesNothing
        return database.use(Effect.provide(Effect.suspend(body), Layer.merge(world({ records, seed: name }), signers)))
      })
  }
}
