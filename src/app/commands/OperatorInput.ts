import * as Argument from "effect/cli/Argument"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { isOperatorError, operatorProblemOf } from "../../domain/OperatorProblem.ts"
import { operatorRoles } from "../../domain/OperatorRole.ts"
import { said } from "../../kernel/host/KeyFile.ts"
import type { StorageFailed } from "../../kernel/sql/Database.ts"
import { Passwords } from "../../services/operators/Passwords.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { readGiven } from "../GivenFile.ts"
import { Host } from "../Host.ts"
import { withRecords } from "../Records.ts"
import { optionalText } from "./Flags.ts"

/* The parts that the commands about operators share. */

/** Ends the command as a refusal of the API would: exit code 3, or 1 if the service itself failed. */
const toldAs = (error: OperatorError | StorageFailed | CommandFailed): CommandFailed | StorageFailed => {
  if (!isOperatorError(error)) return error
  const { message, status } = operatorProblemOf(error)
  return new CommandFailed({ code: status >= 500 ? 1 : 3, message })
}

/** Runs over the configured database. A refusal of an operation is the refusal of the command. */
export const withOperators = <A, R>(program: Effect.Effect<A, OperatorError | StorageFailed | CommandFailed, R>) =>
  withRecords(Effect.provide(Effect.mapError(program, toldAs), Passwords.layer()))

/** The name of the operator. */
export const nameArgument = Argument.String("name").pipe(Argument.withDescription("The operator's name."))

/** A role by its word. {@link operatorRoles} lists the roles. */
export const roleOption = (text: string) => optionalText("role", `${operatorRoles.join(", ")}. ${text}`)

/** The file with a new password. */
export const passwordOption = optionalText(
  "password-file",
  "File with the password, or - for standard input. Without it, it is typed twice or read from standard input."
)

const longestFile = 4096

const ofFile = Effect.fnUntraced(function*(path: string) {
  const { permissive, text } = yield* Effect.mapError(
    readGiven(path, longestFile),
    (error) => new CommandFailed({ code: 3, message: `--password-file: ${error.path} cannot be used: ${said(error)}.` })
  )
  if (permissive) yield* Console.error(`Warning: others may read ${path}.`)
  return text.replace(/\r?\n$/, "")
})

const typed = Effect.gen(function*() {
  const { stderr, stdin } = yield* Host
  const ask = (question: string) => Effect.andThen(Effect.sync(() => stderr.write(question)), stdin.readHidden)
  const first = yield* ask("New password: ")
  if (first !== (yield* ask("The same password again: "))) {
    return yield* new CommandFailed({ code: 3, message: "The two passwords differ; nothing was changed." })
  }
  return first
})

/** A new password: from a file, typed twice at a terminal, or a line of standard input. It is never an argument. */
export const newPassword = Effect.fnUntraced(function*(file: string | undefined) {
  const { stdin } = yield* Host
  const given = yield* file !== undefined ? ofFile(file) : stdin.isTerminal ? typed : stdin.readLine
  return Redacted.make(given)
})

/** The operator whose records are listed or ended. */
export const userOption = optionalText("user", "Only those of this operator.")
