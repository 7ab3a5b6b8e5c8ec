import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { ScriptOutcome, Scripts } from "../../engine/host/Scripts.ts"
import { wordsOf } from "../../engine/host/Scripts.ts"
import type { FairSemaphore } from "../../engine/net/FairSemaphore.ts"
import type { Check, CheckAnswer, CheckConfig, Question } from "./Check.ts"
import { passed, refused, undecided } from "./Check.ts"

/** The highest number of bytes that are read from a script's standard output, and from its standard error. */
export const maxScriptOutput = 1_048_576

const usualTimeout = 5000

/** The service that runs filter scripts, and the semaphore whose turns the scripts wait for. */
export interface ScriptHost {
  readonly scripts: Scripts["Service"]
  readonly turns: FairSemaphore
}

const environment = (name: string, question: Question): { readonly [name: string]: string } => {
  const common = {
    ACME_FILTER_HOOK: question.stage,
    ACME_FILTER_CHECK_NAME: name,
    ACME_FILTER_CLIENT_IP: question.client?.text ?? ""
  }
  if (question.stage === "connection") {
    return { ...common, ACME_FILTER_METHOD: question.method, ACME_FILTER_PATH: question.path }
  }
  return {
    ...common,
    ACME_FILTER_ACCOUNT_ID: question.accountId,
    ACME_FILTER_STAGE: question.at,
    ACME_FILTER_CERTIFICATE_KIND: question.kind,
    ACME_FILTER_IDENTIFIERS: question.identifiers.map(({ value }) => value).join(",")
  }
}

const document = (question: Question): string => {
  const common = { hook: question.stage, client_ip: question.client?.text ?? null }
  return JSON.stringify(
    question.stage === "connection"
      ? { ...common, method: question.method, path: question.path }
      : {
        ...common,
        account_id: question.accountId,
        stage: question.at,
        certificate_kind: question.kind,
        identifiers: question.identifiers
      }
  )
}

const judge = (outcome: ScriptOutcome): CheckAnswer =>
  outcome.exit === 0
    ? passed
    : refused(wordsOf(outcome) ?? "refused by a script", `the script ended with ${outcome.exit}`)

/** Makes a check of type `custom`, whose verdict is the exit code of a program. */
export const customScript = (name: string, config: CheckConfig, { scripts, turns }: ScriptHost): Check => ({
  _tag: "Looking",
  ask: (question) =>
    scripts.run({
      path: config.script_path,
      args: Redacted.value(config.args),
      env: environment(name, question),
      stdin: config.pass_stdin ? document(question) : undefined,
      timeoutMillis: config.timeout_ms ?? usualTimeout,
      maxOutputBytes: maxScriptOutput,
      turns
    }).pipe(Effect.match({ onSuccess: judge, onFailure: ({ detail }) => undecided(detail) }))
})
