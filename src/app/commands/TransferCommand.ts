import * as Flag from "effect/cli/Flag"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { said } from "../../engine/host/KeyFile.ts"
import { Database } from "../../engine/sql/Database.ts"
import * as Migrations from "../../engine/sql/Migrations.ts"
import { urlsOfServers } from "../../engine/sql/PostgresUrl.ts"
import * as transfer from "../../operations/operator/Transfer.ts"
import { databaseUrl, maskedDatabaseUrl } from "../../settings/DatabaseUrl.ts"
import type { Counted } from "../../store/transfer/RowTransfer.ts"
import type { TransferRefused } from "../../store/transfer/Sides.ts"
import { stacked } from "../../surfaces/cli/Rendered.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { readGiven } from "../GivenFile.ts"
import { Host } from "../Host.ts"
import { database } from "../OpenDatabase.ts"
import type { Report } from "../Progress.ts"
import { Progress } from "../Progress.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { jsonOption } from "./Flags.ts"
import { print } from "./Print.ts"

const refused = {
  StillServed: ({ owners }: transfer.StillServed) =>
    new CommandFailed({
      code: 3,
      message: `Stop every server first: ${owners.join(", ")} runs, or was seen within the last 30 seconds.`
    }),
  SchemasDiffer: ({ isBehind, source, target }: transfer.SchemasDiffer) =>
    new CommandFailed({
      code: 3,
      message: `The schemas differ: the source is at ${source}, the target at ${target}. ${
        isBehind
          ? "Run `acme-svc migrate` with database.url set to the target."
          : "Use a version of the service that knows both schemas."
      }`
    }),
  SchemaUnusable: ({ detail }: Migrations.SchemaUnusable) => new CommandFailed({ code: 1, message: detail }),
  TransferRefused: ({ detail, reason }: TransferRefused) =>
    new CommandFailed({ code: reason === "differs" ? 1 : 3, message: detail })
}

/** Each table reports the number of its own rows. The bar shows the rows of all tables together. */
const summed = (report: Report) => {
  const copied = new Map<string, number>()
  return ({ rows, table }: Counted): Effect.Effect<void> => {
    copied.set(table, rows)
    return report([...copied.values()].reduce((sum, count) => sum + count, 0))
  }
}

interface Target {
  /** The name of the flag that contains the URL. */
  readonly name: string
  readonly url: Redacted.Redacted<string>
}

const program = ({ name, url }: Target, json: boolean) =>
  Effect.gen(function*() {
    const host = yield* Host
    const config = yield* Settings.forRecords
    const settings = { database: { ...config.database, url } }
    const target = Context.get(
      yield* Layer.build(database(settings, { name })),
      Database
    )
    const migrations = yield* Migrations.read(host.process.migrations, target.dialect)
    yield* Effect.provideService(Migrations.pending(migrations), Database, target) // an applied migration may have changed
    const known = migrations.map(({ name }) => name)
    const plan = yield* transfer.plan(target, known)
    const rows = plan.reduce((sum, counted) => sum + counted.rows, 0)
    const filled = plan.filter((counted) => counted.rows > 0).map((counted) => `${counted.table} ${counted.rows}`)
    const what = `${rows} row(s) (${filled.join(", ") || "every table is empty"})`
    yield* Confirmation.ask(`Stop every server first. Copy ${what} to ${maskedDatabaseUrl(url)}?`)
    const operator = yield* Operator
    const { tables, total } = yield* Progress.run(
      { title: "Copying rows", total: rows },
      (report) => transfer.run(operator, target, known, summed(report))
    )
    yield* print(json, { tables, total }, () =>
      stacked([
        renderTable(
          ["table", "rows", "sha256"],
          tables.map(({ rows, sha256, table }) => [table, String(rows), sha256]),
          tables.length
        ),
        `${total} row(s) copied. Set database.url to the target before a server starts.`
      ], "\n"))
  }).pipe(Effect.scoped, Effect.catchTags(refused))

const cannot = (message: string) => new CommandFailed({ code: 2, message })

/**
 * Returns the target: a URL without a password, or a file whose first line is a URL. A password in an argument is
 * refused, because every user can see arguments in the list of processes.
 */
const targetOf = Effect.fnUntraced(function*(to: Option.Option<string>, file: Option.Option<string>) {
  if (Option.isSome(to) === Option.isSome(file)) {
    return yield* cannot("Either --to or --to-file is needed, but not both.")
  }
  const [name, text] = Option.isSome(file)
    ? [
      "--to-file",
      yield* Effect.mapBoth(readGiven(file.value), {
        onFailure: (error) => cannot(`--to-file: ${file.value} cannot be read: ${said(error)}.`),
        onSuccess: (read) => read.text.trim()
      })
    ]
    : ["--to", Option.getOrElse(to, () => "")]
  const fault = databaseUrl.fault(text)
  if (fault !== undefined) return yield* cannot(`${name} ${fault}.`)
  const hasPassword = urlsOfServers(text).some((one) => URL.canParse(one) && new URL(one).password !== "")
  if (Option.isSome(to) && hasPassword) {
    return yield* cannot(
      "--to must not contain a password, because others on this host could read it. Put the URL into a file for --to-file, or the password into PGPASSWORD."
    )
  }
  return { name, url: Redacted.make(text) }
})

/** `transfer`: copies every row to another database. */
export const transferCommand = command(
  "transfer",
  "Copy every row of every table to another database. Example: acme-svc transfer --to postgres://acme@db.example/acme. Exit codes: 0, 1, 2, 3.",
  {
    to: Flag.String("to").pipe(
      Flag.optional,
      Flag.withDescription(
        "URL of a migrated and empty database, without a password. Set PGPASSWORD for the password."
      )
    ),
    file: Flag.String("to-file").pipe(
      Flag.optional,
      Flag.withDescription("File with that URL, which may contain the password; - for standard input.")
    ),
    json: jsonOption
  },
  ({ file, json, to }) => Effect.flatMap(targetOf(to, file), (target) => withRecords(program(target, json)))
)
