import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { nearest } from "../engine/config/KeyPath.ts"
import { readToml } from "../engine/config/Source.ts"
import { readSecretFile, said } from "../engine/host/KeyFile.ts"
import { escapedLines } from "../surfaces/cli/Escaped.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { fromHere } from "./Here.ts"
import { Host } from "./Host.ts"

/* Asks questions at a terminal, or takes the answers from a TOML file. Both ways have the same names and checks. */

/** The answers so far. Secrets are apart, so that no text shows them by mistake. */
export interface Given {
  readonly answers: { readonly [name: string]: string }
  readonly secrets: { readonly [name: string]: Redacted.Redacted }
}

/** One question. */
export interface Question {
  /** The name of the answer in a file. The answer to a secret is `<name>_file`, the file with the secret. */
  readonly name: string
  /** What the answer means, in one line. */
  readonly asks: string
  /** The answers that are accepted, each with what it means. Absent for a text. */
  readonly words?: ReadonlyArray<readonly [word: string, says: string]>
  /** `secret` is typed unseen, and `newSecret` twice. `list` is an array in a file, and is typed with commas. */
  readonly kind?: "list" | "newSecret" | "secret"
  /** The answer to an earlier question with which this one is asked. Absent if it is always asked. */
  readonly of?: readonly [name: string, answer: string]
  /** Returns the answer that Enter takes. */
  readonly usual: (given: Given) => string
  /** Whether a file must answer, because the usual answer is only a suggestion. */
  readonly isNeeded?: boolean
  /** Returns what is wrong with an answer, as a sentence without a subject. */
  readonly check?: (answer: string, given: Given) => Effect.Effect<string | undefined, never, Host>
}

const isSecret = ({ kind }: Question): boolean => kind === "secret" || kind === "newSecret"

const isAsked = ({ of }: Question, { answers }: Given): boolean => of === undefined || answers[of[0]] === of[1]

const withAnswer = (question: Question, given: Given, answer: string): Given =>
  isSecret(question)
    ? { ...given, secrets: { ...given.secrets, [question.name]: Redacted.make(answer) } }
    : { ...given, answers: { ...given.answers, [question.name]: answer } }

const faultOf = (question: Question, answer: string, given: Given): Effect.Effect<string | undefined, never, Host> => {
  const { check, words } = question
  if (words !== undefined && !words.some(([word]) => word === answer)) {
    return Effect.succeed(`must be one of ${words.map(([word]) => word).join(", ")}`)
  }
  return check === undefined ? Effect.undefined : check(answer, given)
}

const nothing: Given = { answers: {}, secrets: {} }

/** Runs the questions in their order. `answer` returns the answer to a question that is asked. */
const each = <R>(
  questions: ReadonlyArray<Question>,
  answer: (question: Question, given: Given) => Effect.Effect<string, CommandFailed, R>
) =>
  Effect.gen(function*() {
    let given = nothing
    for (const question of questions) {
      if (isAsked(question, given)) given = withAnswer(question, given, yield* answer(question, given))
    }
    return given
  })

const inputEnded = new CommandFailed({
  code: 3,
  message: "\nThe input ended before the last answer. Nothing was written."
})

const askOnce = Effect.fnUntraced(function*({ kind, name, usual }: Question, given: Given) {
  const { stderr, stdin } = yield* Host
  const say = (text: string) => Effect.sync(() => stderr.write(escapedLines(text)))
  if (kind === "secret" || kind === "newSecret") {
    const first = yield* stdin.readHidden(`${name}: `)
    if (first === undefined) return yield* inputEnded
    if (kind === "secret") return first
    const again = yield* stdin.readHidden(`${name} again: `)
    if (again === undefined) return yield* inputEnded
    return first === again ? first : undefined
  }
  const offered = usual(given)
  yield* say(`${name} [${offered}]: `)
  const line = yield* stdin.nextLine
  if (line === undefined) return yield* inputEnded
  return line.trim() === "" ? offered : line.trim()
})

/** Asks at the terminal, and asks a question again until its answer can be used. */
export const askAll = (questions: ReadonlyArray<Question>): Effect.Effect<Given, CommandFailed, Host> =>
  each(questions, (question, given) =>
    Effect.gen(function*() {
      const { stderr } = yield* Host
      const { asks, name, words = [] } = question
      const width = Math.max(0, ...words.map(([word]) => word.length))
      const lines = ["", asks, ...words.map(([word, says]) => `  ${word.padEnd(width)}  ${says}`)]
      stderr.write(`${lines.join("\n")}\n`)
      for (;;) {
        const answer = yield* askOnce(question, given)
        const fault = answer === undefined
          ? "was typed in two ways"
          : yield* faultOf(question, answer, given)
        if (answer !== undefined && fault === undefined) return answer
        stderr.write(`${escapedLines(`${name} ${fault}.`)}\n`)
      }
    }))

const wrong = (message: string) => new CommandFailed({ code: 2, message })

const quoted = (text: string): string => JSON.stringify(text)

/** The name under which a file has the answer. */
const keyOf = (question: Question): string => isSecret(question) ? `${question.name}_file` : question.name

/** Returns the text of a value of the file, or undefined if it has a type that the question does not take. */
const textOf = ({ kind, words }: Question, value: unknown): string | undefined => {
  if (typeof value === "string") return value.trim()
  if (typeof value === "boolean" && words?.some(([word]) => word === "yes") === true) return value ? "yes" : "no"
  return kind === "list" && Array.isArray(value) && value.every((item) => typeof item === "string")
    ? value.join(", ")
    : undefined
}

const secretIn = (key: string, path: string) =>
  Effect.flatMap(fromHere(path), readSecretFile).pipe(
    Effect.mapBoth({
      onFailure: (error) => wrong(`${key}: ${error.path} cannot be used: ${said(error)}.`),
      onSuccess: ({ text }) => text
    })
  )

/** Takes the answers from the text of a TOML file. The refusal of an answer names it. */
export const answersIn = Effect.fnUntraced(function*(questions: ReadonlyArray<Question>, name: string, text: string) {
  const table = yield* Effect.mapError(
    Effect.fromResult(readToml(text)),
    (fault) => wrong(`${name} ${fault}.`)
  )
  const keys = questions.map(keyOf)
  for (const key of Object.keys(table)) {
    if (!keys.includes(key)) {
      return yield* wrong(`${name} answers ${quoted(key)}, which is not asked; the nearest is ${nearest(key, keys)}.`)
    }
  }
  const given = yield* each(questions, (question, given) =>
    Effect.gen(function*() {
      const key = keyOf(question)
      const value = table[key]
      if (value === undefined) {
        if (question.isNeeded === true) {
          const [of = "", answer = ""] = question.of ?? []
          return yield* wrong(`${key} is not answered, and ${of} = ${quoted(answer)} needs it.`)
        }
      }
      const usual = isSecret(question) ? "" : question.usual(given)
      const answer = value === undefined ? usual : textOf(question, value)
      if (answer === undefined) {
        return yield* wrong(
          `${key} must be ${question.kind === "list" ? "an array of texts" : "a text in quotes"}.`
        )
      }
      const used = isSecret(question) && value !== undefined ? yield* secretIn(key, answer) : answer
      const fault = yield* faultOf(question, used, given)
      if (fault === undefined) return used
      if (value !== undefined) return yield* wrong(`${key} ${fault}.`)
      return yield* wrong(
        isSecret(question)
          ? `${question.name} ${fault}; ${key} is not answered.`
          : `${key} is not answered, and its usual answer ${quoted(answer)} ${fault}.`
      )
    }))
  for (const question of questions) {
    const key = keyOf(question)
    const [of = "", answer = ""] = question.of ?? []
    if (key in table && !isAsked(question, given)) {
      return yield* wrong(
        `${key} is answered, but it belongs to ${of} = ${quoted(answer)}, and ${of} is ${
          given.answers[of] === undefined ? "not asked" : quoted(given.answers[of])
        }.`
      )
    }
  }
  return given
})

/** Returns the items of the answer to a list. */
export const itemsOf = (answer: string): ReadonlyArray<string> =>
  answer.split(",").map((item) => item.trim()).filter((item) => item !== "")

/** Returns the answer to a question, or an empty text if it was not asked. */
export const answerTo = ({ answers }: Given, name: string): string => answers[name] ?? ""

/** Returns what is wrong with an answer with which something failed, as a sentence without a subject. */
export const unusable = ({ message }: { readonly message: string }): string =>
  `cannot be used: ${message.replace(/\.$/, "")}`
