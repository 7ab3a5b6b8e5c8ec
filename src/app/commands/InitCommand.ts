import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Entropy } from "../../crypto/Entropy.ts"
import { Resolver } from "../../engine/net/Resolver.ts"
import { Database } from "../../engine/sql/Database.ts"
import * as Graph from "../Graph.ts"
import { Host } from "../Host.ts"
import * as Logging from "../Logging.ts"
import { database } from "../OpenDatabase.ts"
import { placing } from "../Places.ts"
import { migrate } from "../Schema.ts"
import * as Setup from "../Setup.ts"
import { command } from "./Descriptor.ts"

const initProgram = Effect.gen(function*() {
  const { process } = yield* Host
  const { created, loaded } = yield* Setup.loadOrCreate
  const { config } = loaded
  const program = Effect.gen(function*() {
    const applied = yield* Effect.flatMap(Database, ({ dialect }) => migrate(process, dialect))
    const files = yield* Setup.createFiles(config)
    const print = (lines: ReadonlyArray<string>) =>
      lines.length === 0 ? Effect.void : Console.log(lines.map((line) => `created ${line}`).join("\n"))
    const first = [
      ...(created === undefined ? [] : [`configuration ${created}`]),
      ...(applied.length === 0 ? [] : [`schema        ${applied.length} migration(s)`]),
      ...files
    ]
    yield* print(first)
    // Only whoever has just got a first configuration gets an operator too.
    const operator = created === undefined ? undefined : yield* Setup.createOperator(config)
    if (operator !== undefined) yield* print([`operator      ${operator}, whose password a link of serve sets`])
    const accounts = yield* Effect.provide(
      Setup.createAccounts(config),
      Layer.provide(Graph.web(config, process.version), Resolver.layer(config.dns.resolver))
    )
    yield* print(accounts)
    if (first.length + accounts.length === 0) yield* Console.log("Nothing to do: everything exists.")
  })
  yield* program.pipe(
    Effect.provide(database(config, { creates: true })),
    Effect.provide(Logging.quiet(loaded)),
    Effect.catchTag("CommandFailed", placing(loaded))
  )
}).pipe(Effect.provide(Entropy.layer))

/** `init`: creates everything that a first start needs. */
export const initCommand = command(
  "init",
  "Migrate the database and create what is missing: a first config.toml with the first operator, the CA, the TLS key and certificate. Nothing that exists is changed. Example: acme-svc init. Exit codes: 0, 1, 3.",
  {},
  () => initProgram
)
