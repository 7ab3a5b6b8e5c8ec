import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { Entropy } from "../../crypto/Entropy.ts"
import { databaseScript } from "../../operations/operator/NewDatabase.ts"
import { databaseNames } from "../../store/DatabaseSql.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { initialize, printCreated } from "../Initialize.ts"
import { administratorFault, databaseNameFault, makeServiceDatabase, usualName } from "../ServiceDatabase.ts"
import * as Setup from "../Setup.ts"
import { administratorOf } from "./AdministratorInput.ts"
import { command } from "./Descriptor.ts"
import { optionalText, switchFlag } from "./Flags.ts"

const wrong = (message: string) => new CommandFailed({ code: 2, message })

interface Given {
  readonly database: string | undefined
  readonly databaseName: string | undefined
  readonly adminPasswordFile: string | undefined
  readonly print: boolean
}

/** Refuses values and combinations of the flags that cannot be carried out. */
const refuseFlags = ({ adminPasswordFile, database, databaseName, print }: Given) => {
  if (database === undefined) {
    const [needless] = [
      ...print ? ["--print"] : [],
      ...databaseName === undefined ? [] : ["--database-name"],
      ...adminPasswordFile === undefined ? [] : ["--admin-password-file"]
    ]
    return needless === undefined ? Effect.void : wrong(`${needless} requires --database.`)
  }
  const fault = administratorFault(database)
  if (fault !== undefined) return wrong(`--database ${fault}.`)
  const nameFault = databaseName === undefined ? undefined : databaseNameFault(databaseName)
  return nameFault === undefined ? Effect.void : wrong(`--database-name ${nameFault}.`)
}

const initProgram = (given: Given) =>
  Effect.gen(function*() {
    yield* refuseFlags(given)
    const { adminPasswordFile, database, databaseName, print } = given
    if (print) {
      const name = databaseName ?? usualName
      return yield* Console.log(databaseScript(databaseNames(name, name)))
    }
    const made = database === undefined
      ? undefined
      : yield* makeServiceDatabase(yield* administratorOf("--database", database, adminPasswordFile), databaseName)
    // These lines are printed at once, because a failure of the next steps does not undo this one.
    yield* printCreated(made?.lines ?? [])
    const { created, loaded } = yield* Setup.loadOrCreate
    const before = created === undefined ? [] : [`configuration ${created}`]
    // A configuration that nobody has changed may be left from a run that failed before it made an operator.
    const makesOperator = Setup.isInitial(loaded)
    const count = yield* initialize(loaded, { before, owned: made?.service, makesOperator })
    if (count + (made?.lines.length ?? 0) === 0) yield* Console.log("Nothing to do: everything exists.")
  }).pipe(Effect.provide(Entropy.layer))

/** `init`: creates everything that a first start needs. */
export const initCommand = command(
  "init",
  "Migrate the database and create what is missing: a first config.toml with the first operator, the CA, the TLS key and certificate. Nothing that exists is changed. With --database, also make a PostgreSQL database and its roles. Example: acme-svc init. Exit codes: 0, 1, 2, 3.",
  {
    database: optionalText(
      "database",
      "URL of an administrator of a PostgreSQL server, without a password: make the database there, and write its URL into the configuration. The password comes from --admin-password-file, PGPASSWORD or standard input."
    ),
    databaseName: optionalText(
      "database-name",
      `Name of the database and of the role that owns it. Without it, ${usualName}.`
    ),
    adminPasswordFile: optionalText(
      "admin-password-file",
      "File with the administrator's password, or - for standard input."
    ),
    print: switchFlag("print", "Print the statements for psql, and change nothing.")
  },
  initProgram
)
