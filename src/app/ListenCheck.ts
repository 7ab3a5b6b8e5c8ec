import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { Entropy } from "../crypto/Entropy.ts"
import { Database } from "../engine/sql/Database.ts"
import { listensElsewhere } from "../engine/sql/PostgresListen.ts"
import type { Config } from "../settings/AppConfig.ts"
import type { CommandFailed } from "./CommandFailed.ts"
import type { Host } from "./Host.ts"
import { database } from "./OpenDatabase.ts"

/** Why no notification arrives. */
interface Deaf {
  readonly detail: string
}

const notifiedMillis = 10_000

/**
 * Checks whether a notification that is sent at `database.url` arrives at `database.listen_url`. Uses a channel of its
 * own. Succeeds with a sentence for the operator.
 */
export const tryListening = (config: Config): Effect.Effect<string, Deaf | CommandFailed, Entropy | Host> =>
  Effect.scoped(Effect.gen(function*() {
    const { bytes } = yield* Entropy
    const { describe, listen, single } = Context.get(yield* Layer.build(database(config)), Database)
    if (listen === undefined) return yield* Effect.fail<Deaf>({ detail: "is for PostgreSQL alone" })
    const channel = `acme_check_${Buffer.from(yield* bytes(16)).toString("hex")}`
    const ask = (text: string) =>
      Effect.mapError(single({ text, order: [], reads: false }, []), (error): Deaf => ({
        detail: describe(error).detail
      }))
    const [listening, heard] = [yield* Deferred.make<void, Deaf>(), yield* Deferred.make<void>()]
    yield* listen(channel, {
      heard: () => Deferred.doneUnsafe(heard, Effect.void),
      listening: Effect.asVoid(Deferred.succeed(listening, undefined))
    }).pipe(
      Effect.catch((error) => Deferred.fail(listening, { detail: describe(error).detail })),
      Effect.forkChild
    )
    yield* Deferred.await(listening)
    const [row] = yield* ask(listensElsewhere(channel))
    if (row?.["isElsewhere"] === true) {
      return yield* Effect.fail<Deaf>({ detail: "leads to another database than database.url" })
    }
    yield* ask(`NOTIFY ${channel}`)
    const arrived = yield* Effect.timeoutOption(Deferred.await(heard), notifiedMillis)
    return Option.isSome(arrived)
      ? "hears what is sent at database.url"
      : yield* Effect.fail<Deaf>({
        detail: "does not hear what is sent at database.url: let it lead past a proxy that pools transactions"
      })
  }))
