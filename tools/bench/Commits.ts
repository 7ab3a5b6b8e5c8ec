import { Effect, Exit, ManagedRuntime, Redacted, Scope } from "effect"
import { Client } from "pg"
import { makeAnnouncer } from "../../src/engine/queue/Announcer.ts"
import { wakeChannel } from "../../src/engine/queue/Job.ts"
import * as Postgres from "../../src/engine/sql/Postgres.ts"
import type { Extent } from "./Load.ts"

/*
 * Commits small transactions on many connections at once. A commit does not notify, notifies within its transaction, or
 * is announced afterwards by the service's own announcer.
 */

/** Whether the commits notify, and how. */
export type Notifying = "none" | "within" | "after"

/** What was done in a window. Times are in milliseconds. */
export interface Done {
  readonly count: number
  readonly elapsedMs: number
  /** The duration of each commit or issuance. */
  readonly durations: ReadonlyArray<number>
  /** How many notifications a listening session got. */
  readonly heard: number
}

/** Clients that commit. */
export interface Committers {
  readonly run: (notifying: Notifying, extent: Extent) => Promise<Done>
  readonly close: () => Promise<void>
}

const announced = "signer_issue bench"
const insert = "INSERT INTO committed DEFAULT VALUES"
const statements: { readonly [N in Notifying]: string } = {
  none: insert,
  // One message of the simple protocol is one transaction.
  within: `${insert}; SELECT pg_notify('${wakeChannel}', '${announced}')`,
  after: insert
}

const connect = async (connectionString: string): Promise<Client> => {
  const client = new Client({ connectionString })
  client.on("error", () => undefined) // The statement that fails reports this.
  await client.connect()
  return client
}

const openAnnouncer = async (databaseUrl: string) => {
  const runtime = ManagedRuntime.make(
    Postgres.layer({ url: Redacted.make(databaseUrl), pool_max: 2, acquire_timeout_ms: 5000 })
  )
  const scope = await runtime.runPromise(Scope.make())
  const announce = await runtime.runPromise(Scope.provide(makeAnnouncer, scope))
  return {
    announce: () => Effect.runSync(announce(announced)),
    close: async () => {
      await runtime.runPromise(Scope.close(scope, Exit.void))
      await runtime.dispose()
    }
  }
}

/** Opens connections to an empty database, and one more that listens for notifications. */
export const openCommitters = async (databaseUrl: string, concurrency: number): Promise<Committers> => {
  const listener = await connect(databaseUrl)
  await listener.query("CREATE TABLE committed (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)")
  await listener.query(`LISTEN ${wakeChannel}`)
  let heard = 0
  listener.on("notification", () => heard++)
  const clients = await Promise.all(Array.from({ length: concurrency }, () => connect(databaseUrl)))
  const { announce, close } = await openAnnouncer(databaseUrl)
  return {
    run: async (notifying, { issuances, seconds }) => {
      const durations: Array<number> = []
      let left = issuances ?? Number.POSITIVE_INFINITY
      const heardBefore = heard
      const begun = performance.now()
      const end = begun + (seconds ?? Number.POSITIVE_INFINITY) * 1000
      await Promise.all(clients.map(async (client) => {
        while (left-- > 0 && performance.now() < end) {
          const asked = performance.now()
          await client.query(statements[notifying])
          if (notifying === "after") announce()
          durations.push(performance.now() - asked)
        }
      }))
      const elapsedMs = performance.now() - begun
      return { count: durations.length, elapsedMs, durations, heard: heard - heardBefore }
    },
    close: async () => {
      await close()
      await Promise.all([listener, ...clients].map((client) => client.end()))
    }
  }
}
