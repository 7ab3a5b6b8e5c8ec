import { Args } from "@effect/cli"
import { Console, Effect, Redacted } from "effect"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { isOperatorError, operatorProblemOf } from "../../domain/OperatorProblem.ts"
import { operatorRoles } from "../../domain/OperatorRole.ts"
import { readTextFile, said } from "../../kernel/host/KeyFile.ts"
import type { StorageFailed } from "../../kernel/sql/Database.ts"
import { Passwords } from "../../services/operators/Passwords.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { fromHere } from "../Here.ts"
import { Host } from "../Host.ts"
import { withRecords } from "../Records.ts"
import { optionalText } from "./Flags.ts"

/* What the commands about operators have in common. */

/** Tells a refusal as the API does: 3, or 1 where the service could not do it. */
const toldAs = (error: OperatorError | StorageFailed | CommandFailed): CommandFailed | StorageFailed => {
  if (!isOperatorError(error)) return error
  const { message, status } = operatorProblemOf(error)
  return new CommandFailed({ code: status >= 500 ? 1 : 3, message })
}

/** Runs over the configured database; what operations refuse is the command's own refusal. */
export const withOperators = <A, R>(program: Effect.Effect<A, OperatorError | StorageFailed | CommandFailed, R>) =>
  withRecords(Effect.provide(Effect.mapError(program, toldAs), Passwords.layer()))

/** The operator a command is about. */
export const nameArgument = Args.text({ name: "name" }).pipe(Args.withDescription("The operator's name."))

/** A role by its word; {@link operatorRoles} says which there are. */
export const roleOption = (text: string) => optionalText("role", `${operatorRoles.join(", ")}. ${text}`)

/** Where a new password is read from. */
export const passwordOption = optionalText(
  "password-file",
  "File with the password; without it, it is asked for or read from standard input."
)

const longestFile = 4096

const ofFile = Effect.fnUntraced(function*(path: string) {
  const { permissive, text } = yield* Effect.mapError(
    Effect.flatMap(fromHere(path), (file) => readTextFile(file, longestFile)),
    (error) => new CommandFailed({ code: 3, message: `--password-file: ${error.path} cannot be used: ${said(error)}.` })
  )
  if (permissive) yield* Console.error(`Warning: others may read ${path}.`)
  return text.replace(/\r?\n$/, "")
})

const typed = Effect.gen(function*() {
  const { stderr, stdin } = yield* Host
  const ask = (question: string) => Effect.zipRight(Effect.sync(() => stderr.write(question)), stdin.readHidden)
  const first = yield* ask("New password: ")
  if (first !== (yield* ask("The same again: "))) {
    return yield* new CommandFailed({ code: 3, message: "The two passwords differ; nothing was changed." })
  }
  return first
})

/** A new password: of a file, or typed twice at a terminal, or a line of standard input; never an argument. */
export const newPassword = Effect.fnUntraced(function*(file: string | undefined) {
  const { stdin } = yield* Host
  const given = yield* file !== undefined ? ofFile(file) : stdin.isTerminal ? typed : stdin.readLine
  return Redacted.make(given)
})

/** Whose things are listed, or made to end. */
export const userOption = optionalText("user", "Of this operator.")
