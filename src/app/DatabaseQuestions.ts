import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Entropy } from "../crypto/Entropy.ts"
import { urlsOfServers } from "../engine/sql/PostgresUrl.ts"
import type { DatabaseRefused } from "../operations/operator/NewDatabase.ts"
import { planDatabase, tryDatabase } from "../operations/operator/NewDatabase.ts"
import type { Given, Question } from "./Dialogue.ts"
import { answerTo, unusable } from "./Dialogue.ts"
import { Host } from "./Host.ts"
import {
  administratorFault,
  administratorWith,
  databaseNameFault,
  databaseUserFault,
  newServiceUrl,
  patienceMs,
  usualName,
  wantedOf,
  withPassword
} from "./ServiceDatabase.ts"

/* The questions of `setup` about the database, whose answers are tried at the server at once. */

const secretOf = ({ secrets }: Given, name: string): string => Redacted.value(secrets[name] ?? Redacted.make(""))

const databaseFault = (self: Effect.Effect<unknown, DatabaseRefused>) =>
  Effect.match(self, { onFailure: unusable, onSuccess: () => undefined })

/**
 * Checks that a server answers. Its refusal of the user does not matter yet, because the password is asked for next.
 */
const serverFault = (url: string) =>
  Effect.match(tryDatabase("the server", Redacted.make(url), patienceMs), {
    onFailure: (error) => error.mayPass && !/SASL|password/.test(error.message) ? unusable(error) : undefined,
    onSuccess: () => undefined
  })

const givenPassword = (given: Given, name: string) =>
  Effect.map(Host, ({ env }) => {
    const typed = secretOf(given, name)
    return typed === "" ? env["PGPASSWORD"] ?? "" : typed
  })

/** Returns the administrator of the answers. */
export const administratorIn = (given: Given) =>
  Effect.map(
    givenPassword(given, "database_admin_password"),
    (password) => administratorWith("database_admin_url", answerTo(given, "database_admin_url"), password)
  )

/** Returns the URL of the existing database of the answers, with its password. */
export const existingUrl = (given: Given): Redacted.Redacted => {
  const url = answerTo(given, "database_url")
  const user = decodeURIComponent(new URL(urlsOfServers(url)[0] ?? url).username)
  return withPassword(url, user, secretOf(given, "database_password"))
}

const planFault = (name: string, given: Given) =>
  Effect.gen(function*() {
    const fault = databaseNameFault(name)
    if (fault !== undefined) return fault
    const administrator = yield* administratorIn(given)
    const service = yield* Effect.provide(newServiceUrl(administrator, name), Entropy.layer)
    return yield* databaseFault(planDatabase(wantedOf(administrator, service, false)))
  })

/** The questions about the database, in their order. */
export const databaseQuestions: ReadonlyArray<Question> = [
  {
    name: "database",
    asks: "Where accounts, orders and certificates are kept.",
    words: [
      ["sqlite", "in a file here, for one host"],
      ["postgres", "in a PostgreSQL database that exists"],
      ["new-postgres", "in a PostgreSQL database that is made now, as an administrator of the server"]
    ],
    usual: () => "sqlite"
  },
  {
    name: "database_url",
    of: ["database", "postgres"],
    asks: "The URL of the database, without the password.",
    usual: () => "postgres://acme@localhost/acme",
    isNeeded: true,
    check: (answer) => {
      const fault = databaseUserFault(answer, "the role", "postgres://acme@host/acme")
      return fault === undefined ? serverFault(answer) : Effect.succeed(fault)
    }
  },
  {
    name: "database_password",
    kind: "secret",
    of: ["database", "postgres"],
    asks: "The password of that role; it is written into the configuration, which only the service can read.",
    usual: () => "",
    check: (answer, given) =>
      databaseFault(tryDatabase(
        "the database",
        existingUrl({ ...given, secrets: { database_password: Redacted.make(answer) } }),
        patienceMs
      ))
  },
  {
    name: "database_admin_url",
    of: ["database", "new-postgres"],
    asks: "The URL of an administrator of the server, without the password. It is not kept.",
    usual: () => "postgres://postgres@localhost/postgres",
    isNeeded: true,
    check: (answer) => {
      const fault = administratorFault(answer)
      return fault === undefined ? serverFault(answer) : Effect.succeed(fault)
    }
  },
  {
    name: "database_admin_password",
    kind: "secret",
    of: ["database", "new-postgres"],
    asks: "The password of the administrator. It is not kept.",
    usual: () => "",
    check: (answer, given) =>
      Effect.gen(function*() {
        const secrets = { database_admin_password: Redacted.make(answer) }
        const { url } = yield* administratorIn({ ...given, secrets })
        return yield* databaseFault(tryDatabase("the server", url, patienceMs))
      })
  },
  {
    name: "database_name",
    of: ["database", "new-postgres"],
    asks: "The name of the database that is made, and of the role that owns it.",
    usual: () => usualName,
    check: planFault
  }
]
