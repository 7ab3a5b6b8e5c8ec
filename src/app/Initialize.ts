import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { Resolver } from "../engine/net/Resolver.ts"
import { Database } from "../engine/sql/Database.ts"
import { grantRights, namesIn } from "../operations/operator/NewDatabase.ts"
import type { Loaded } from "../settings/Load.ts"
import { rolesOf } from "../store/DatabaseSql.ts"
import * as Graph from "./Graph.ts"
import { Host } from "./Host.ts"
import * as Logging from "./Logging.ts"
import { database } from "./OpenDatabase.ts"
import { placing } from "./Places.ts"
import { migrate } from "./Schema.ts"
import { databaseFailed, patienceMs } from "./ServiceDatabase.ts"
import * as Setup from "./Setup.ts"

/** Prints what was created, one line for each thing. */
export const printCreated = (lines: ReadonlyArray<string>): Effect.Effect<void> =>
  lines.length === 0 ? Effect.void : Console.log(lines.map((line) => `created ${line}`).join("\n"))

const granted = (service: Redacted.Redacted) =>
  Effect.map(
    Effect.mapError(grantRights(service, patienceMs), databaseFailed),
    (isNew) => isNew ? [`rights        ${rolesOf(namesIn(service)).slice(1).join(", ")}`] : []
  )

/** What `init` has done already, and what it must leave out. */
interface Around {
  /** Lines about what was created before. */
  readonly before?: ReadonlyArray<string>
  /** The URL of the owner of a database that has a role for each process. These roles get their rights. */
  readonly owned?: Redacted.Redacted | undefined
  /** Whether the CA comes from elsewhere, so that none is made. */
  readonly lacksCa?: boolean
  /** Whether a first operator is made. Only whoever still has the first configuration gets one. */
  readonly makesOperator?: boolean
}

/**
 * Creates everything that a first start needs: the tables, the CA, TLS keys and certificates, accounts at upstreams.
 * Prints a line for each. Nothing that exists is changed.
 */
export const initialize = (
  loaded: Loaded,
  { before = [], lacksCa = false, makesOperator = false, owned }: Around = {}
) => {
  const { config } = loaded
  const program = Effect.gen(function*() {
    const { process } = yield* Host
    const applied = yield* Effect.flatMap(Database, ({ dialect }) => migrate(process, dialect))
    // This comes before the files, because a later run makes no operator if the configuration was changed meanwhile.
    const operator = makesOperator ? yield* Setup.createOperator(config) : undefined
    const first = [
      ...before,
      ...(applied.length === 0 ? [] : [`schema        ${applied.length} migration(s)`]),
      ...owned === undefined ? [] : yield* granted(owned),
      ...yield* Setup.createFiles(config, { lacksCa })
    ]
    yield* printCreated(first)
    if (operator !== undefined) {
      yield* printCreated([`operator      ${operator}, whose password a link of serve sets`])
    }
    const accounts = yield* Effect.provide(
      Setup.createAccounts(config),
      Layer.provide(Graph.web(config, process.version), Resolver.layer(config.dns.resolver))
    )
    yield* printCreated(accounts)
    return first.length + accounts.length
  })
  return program.pipe(
    Effect.provide(database(config, { creates: true })),
    Effect.provide(Logging.quiet(loaded)),
    Effect.catchTag("CommandFailed", placing(loaded))
  )
}
