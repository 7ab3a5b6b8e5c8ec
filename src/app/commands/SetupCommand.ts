import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Entropy } from "../../crypto/Entropy.ts"
import { everyRole } from "../../domain/Role.ts"
import { fileVariable } from "../../engine/config/KeyPath.ts"
import { isTaken, removeFile, said, writeNewFile } from "../../engine/host/KeyFile.ts"
import { emptyFile, fillEmptyFile, isEmptyFile } from "../../engine/host/RewrittenFile.ts"
import { Resolver } from "../../engine/net/Resolver.ts"
import { requestAuthority } from "../../operations/operator/authority/AuthorityRequest.ts"
import { accepted } from "../../operations/operator/identity/NewPassword.ts"
import * as operators from "../../operations/operator/identity/Operators.ts"
import { planDatabase } from "../../operations/operator/NewDatabase.ts"
import { Passwords } from "../../services/operators/Passwords.ts"
import { maskedDatabaseUrl } from "../../settings/DatabaseUrl.ts"
import type { Loaded } from "../../settings/Load.ts"
import { escapedLines } from "../../surfaces/cli/Escaped.ts"
import { refuseFaults, tellAdvisories, tellServed } from "../CheckReport.ts"
import { CommandFailed, filesFailed, refusedFor } from "../CommandFailed.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { administratorIn, existingUrl } from "../DatabaseQuestions.ts"
import type { Given } from "../Dialogue.ts"
import { answersIn, askAll } from "../Dialogue.ts"
import { web } from "../Graph.ts"
import { fromHere, seenFromHere } from "../Here.ts"
import { Host } from "../Host.ts"
import { initialize, printCreated } from "../Initialize.ts"
import * as Logging from "../Logging.ts"
import { withRecords } from "../Records.ts"
import type { Administrator } from "../ServiceDatabase.ts"
import { carryOut, databaseFailed, newServiceUrl, wantedOf } from "../ServiceDatabase.ts"
import { Settings } from "../Settings.ts"
import { setupQuestions } from "../SetupQuestions.ts"
import { nextSteps, restSteps } from "../SetupSteps.ts"
import { setupText } from "../SetupText.ts"
import { command } from "./Descriptor.ts"
import { textIn } from "./FileInput.ts"
import { optionalText, switchFlag } from "./Flags.ts"

const cannot = (message: string) => new CommandFailed({ code: 3, message })

/** Returns the file that is to be written. Refuses a file that has a content, before anything is asked. */
const placeOf = Effect.fnUntraced(function*(out: string | undefined) {
  const { env } = yield* Host
  const usual = env[fileVariable] === undefined || env[fileVariable] === "" ? "config.toml" : env[fileVariable]
  const path = yield* fromHere(out ?? usual)
  if ((yield* isTaken(path)) && !(yield* isEmptyFile(path))) {
    return yield* cannot(
      out === undefined
        ? `${path} exists, and setup never changes a configuration. Edit it, or name another file with --out.`
        : `${path} exists already. Name a new file with --out.`
    )
  }
  return { path, isUsual: path === (yield* fromHere(usual)) }
})

const answersOf = Effect.fnUntraced(function*(file: string | undefined) {
  if (file !== undefined) return yield* answersIn(setupQuestions, "--answers", yield* textIn("--answers", file))
  const { stdin } = yield* Host
  if (!stdin.isTerminal) {
    return yield* new CommandFailed({
      code: 2,
      message: "There is no terminal to ask questions: name a file with the answers by --answers."
    })
  }
  return yield* askAll(setupQuestions)
})

/** The database that the answers name, and the administrator if it has to be made. */
interface ChosenDatabase {
  readonly url: Redacted.Redacted
  readonly administrator?: Administrator
}

const databaseOf = (given: Given): Effect.Effect<ChosenDatabase, never, Host | Entropy> =>
  Effect.gen(function*() {
    const { answers } = given
    if (answers["database"] === "postgres") return { url: existingUrl(given) }
    if (answers["database"] !== "new-postgres") return { url: Redacted.make("sqlite://sqlite.db") }
    const administrator = yield* administratorIn(given)
    return { administrator, url: yield* newServiceUrl(administrator, answers["database_name"] ?? "") }
  })

/** Writes the file. Returns what makes the place as it was before. */
const write = Effect.fnUntraced(function*(path: string, content: string) {
  const suffix = yield* (yield* Entropy).token
  const isFilled = yield* isEmptyFile(path)
  yield* Effect.mapError(
    isFilled ? fillEmptyFile({ path, content }) : writeNewFile({ path, content, mode: 0o600, suffix }),
    (error) => new CommandFailed({ code: 1, message: `${path} cannot be written: ${said(error)}.` })
  )
  return isFilled ? Effect.ignore(emptyFile(path)) : removeFile(path)
})

/** Makes the database if the answers say so. If this fails, the configuration that names it is removed again. */
const makeChosen = Effect.fnUntraced(function*(
  { administrator, url }: ChosenDatabase,
  undo: Effect.Effect<void>
) {
  if (administrator === undefined) return
  const wanted = wantedOf(administrator, url, false)
  const made = yield* Effect.mapError(planDatabase(wanted), databaseFailed).pipe(
    Effect.flatMap((plan) => carryOut(wanted, plan)),
    Effect.onExit((exit) => Exit.isSuccess(exit) ? Effect.void : undo)
  )
  yield* printCreated(made)
})

/** Makes the request for the certificate of a CA below a root that is elsewhere, in the working directory. */
const requestCa = Effect.fnUntraced(function*({ config }: Loaded) {
  const { process } = yield* Host
  const [profile] = config.profiles
  if (profile === undefined) return yield* cannot("There is no profile whose CA could be requested.")
  const out = yield* fromHere("issuing.csr")
  const made = yield* requestAuthority(profile.signer.local_ca, { keyType: undefined, out }).pipe(
    Effect.mapError(filesFailed),
    Effect.provide(Layer.provide(web(config, process.version), Resolver.layer(config.dns.resolver)))
  )
  yield* printCreated([
    ...made.keyPath === undefined ? [] : [`CA key        ${yield* seenFromHere(made.keyPath)}`],
    `request       ${yield* seenFromHere(out)}`
  ])
  return yield* seenFromHere(out)
})

const passwordOf = ({ secrets }: Given): Redacted.Redacted | undefined => {
  const password = secrets["operator_password"]
  return password === undefined || Redacted.value(password) === "" ? undefined : password
}

/** Makes the first operator. Returns whether one was made. */
const makeOperator = Effect.fnUntraced(function*(given: Given, loaded: Loaded) {
  const password = passwordOf(given)
  const username = given.answers["operator"]?.toLowerCase()
  if (password === undefined || username === undefined) return false
  const operator = yield* Operator
  const settings = yield* Settings
  yield* operators.create(loaded.config, operator, { username, password, role: "admin", contact: undefined }).pipe(
    Effect.provide(Passwords.layer()),
    withRecords,
    Effect.provideService(Settings, {
      ...settings,
      loaded: Effect.succeed(loaded),
      forRecords: Effect.succeed(loaded.config)
    })
  )
  yield* printCreated([`operator      ${username}`])
  return true
})

/** Removes the configuration again if the rest fails, so that setup can be repeated when the fault is corrected. */
const orUndone = <R>(rest: Effect.Effect<void, CommandFailed, R>, undo: Effect.Effect<void>, shown: string) =>
  rest.pipe(
    Effect.onExit((exit) => Exit.isSuccess(exit) ? Effect.void : undo),
    Effect.mapError(({ code, message }) =>
      new CommandFailed({ code, message: `${message}\n${shown} was removed again, so setup can be repeated.` })
    )
  )

/** Says how to go on if the rest fails. A database that was made cannot be made again, so everything is kept. */
const orKept = <R>(rest: Effect.Effect<void, CommandFailed, R>, shown: string, next: () => ReadonlyArray<string>) =>
  Effect.mapError(
    rest,
    ({ code, message }) =>
      new CommandFailed({
        code,
        message: `${message}\n${shown} and the database are kept. When the fault is corrected, go on with: ${
          next().join("; ")
        }`
      })
  )

interface Flags {
  readonly answers: string | undefined
  readonly out: string | undefined
  readonly systemd: boolean
}

const setupProgram = ({ answers, out, systemd }: Flags) =>
  Effect.gen(function*() {
    const { cwd } = yield* Host
    const { isUsual, path } = yield* placeOf(out)
    const given = yield* answersOf(answers)
    const chosen = yield* databaseOf(given)
    const content = setupText(given, cwd, Redacted.value(chosen.url))
    const { fresh } = yield* Settings
    const loaded = yield* fresh(new Set(everyRole), { path, text: content })
    yield* refuseFaults(loaded)
    const password = passwordOf(given)
    if (password !== undefined) {
      yield* Effect.mapError(
        Effect.fromResult(accepted(loaded.config, given.answers["operator"] ?? "", password)),
        refusedFor
      )
    }
    yield* Console.log(escapedLines(setupText(given, cwd, maskedDatabaseUrl(chosen.url))))
    yield* Confirmation.ask(`Write this to ${path}?`)
    const undo = yield* write(path, content)
    yield* printCreated([`configuration ${yield* seenFromHere(path)}`])
    yield* makeChosen(chosen, undo)
    const lacksCa = given.answers["ca"] === "corporate"
    const shown = yield* seenFromHere(path)
    const named = isUsual || systemd ? undefined : shown
    const { administrator } = chosen
    let request: string | undefined
    const rest = Effect.gen(function*() {
      yield* tellAdvisories(loaded)
      yield* tellServed(loaded)
      yield* initialize(loaded, { lacksCa, owned: administrator === undefined ? undefined : chosen.url })
      request = lacksCa ? yield* Effect.provide(requestCa(loaded), Logging.quiet(loaded)) : undefined
      const hasOperator = yield* makeOperator(given, loaded)
      yield* Console.log(escapedLines(nextSteps(given, { named, isUnit: systemd, request, hasOperator })))
    })
    // Only the file has the password of the owner of a new database.
    yield* administrator === undefined
      ? orUndone(rest, undo, shown)
      : orKept(rest, shown, () => restSteps(given, { named, lacksCa, request, administratorUrl: administrator.shown }))
  }).pipe(Effect.provide(Entropy.layer))

/** `setup`: asks what a first configuration has to say, writes it, and does what `init` does. */
export const setupCommand = command(
  "setup",
  "Ask what a first configuration needs, write it, check it, and create everything for a start. An existing configuration is never changed. Example: acme-svc setup --answers answers.toml --yes. Exit codes: 0, 1, 2, 3.",
  {
    answers: optionalText(
      "answers",
      "TOML file with the answers, or - for standard input. Without it, they are asked at the terminal."
    ),
    out: optionalText("out", "Write the configuration to this new file."),
    systemd: switchFlag(
      "systemd",
      "Print the next steps for the units of systemd. The command of an installation sets this flag."
    )
  },
  setupProgram
)
