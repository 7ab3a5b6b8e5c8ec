import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { emit } from "../../domain/words/Log.ts"
import type { Scripts } from "../../engine/host/Scripts.ts"
import { restOf, wordsOf } from "../../engine/host/Scripts.ts"
import { currentMillis } from "../../engine/Time.ts"

/** The keys of `signer.custom`. */
export interface CustomSettings {
  readonly script_path: string
  readonly args: Redacted.Redacted<ReadonlyArray<string>>
  readonly timeout_ms: number
  readonly supports_crl: boolean
  readonly supports_renewal_info: boolean
}

/** One call of the operator's program. */
export interface Hook {
  readonly name: "issue" | "revoke" | "crl" | "renewal_info"
  /** The members of the document on standard input. The member `hook` is added to them. */
  readonly input: { readonly [member: string]: unknown }
  /** The environment variables. `ACME_SIGNER_HOOK` is added to them. */
  readonly env?: { readonly [name: string]: string }
  /**
   * How many bytes of output are read. If there is more output, the hook fails, with two exceptions. The output of
   * `revoke` is ignored. For `issue` one more byte is returned, which tells the caller that there was too much.
   */
  readonly maxBytes: number
}

/**
 * The script failed. `exit` says how the script ended, if it ended by itself. `detail` is the script's own first line,
 * or says what happened.
 */
export class HookFailed extends Data.TaggedError("HookFailed")<{
  readonly exit: number | string | undefined
  readonly detail: string
  /** Whether the script was killed at its time limit. */
  readonly isTimedOut?: boolean
  /** What the script had printed before it failed, up to the limit of the hook. */
  readonly printed?: Buffer | undefined
}> {}

/** The exit code that says that the CSR is at fault. Only the hook `issue` may use this code. */
export const badCsrExit = 3

/** Runs a hook (docs/configure/signers.md, "A program"). Returns the standard output of the hook. */
export const ask = (
  scripts: Scripts["Service"],
  settings: CustomSettings,
  hook: Hook
): Effect.Effect<Buffer, HookFailed> =>
  Effect.gen(function*() {
    const { args, script_path: path, timeout_ms: timeoutMillis } = settings
    const begun = yield* currentMillis
    const failed = (event: "signer_script_failed" | "signer_script_timeout", error: HookFailed, output?: string) =>
      Effect.flatMap(currentMillis, (now) =>
        Effect.andThen(
          emit(event, {
            hook: hook.name,
            exit_code: typeof error.exit === "number" ? error.exit : undefined,
            elapsed_ms: now - begun,
            error: error.detail,
            output
          }),
          error
        ))
    const outcome = yield* scripts.run({
      path,
      args: Redacted.value(args),
      env: { ACME_SIGNER_HOOK: hook.name, ...hook.env },
      stdin: JSON.stringify({ hook: hook.name, ...hook.input }),
      timeoutMillis,
      maxOutputBytes: hook.maxBytes + 1,
      discardsRest: true,
      turns: undefined
    }).pipe(Effect.catch(({ detail, reason, stdout: printed }) =>
      failed(
        reason === "timeout" ? "signer_script_timeout" : "signer_script_failed",
        new HookFailed({ exit: undefined, detail: `the script ${detail}`, isTimedOut: reason === "timeout", printed })
      )
    ))
    const { exit, stdout } = outcome
    // The output of `revoke` is ignored. The caller of `issue` searches for a certificate even if the output is too
    // long.
    const mayExceed = hook.name === "revoke" || hook.name === "issue"
    if (exit === 0 && (mayExceed || stdout.length <= hook.maxBytes)) return stdout
    const detail = exit === 0 ? "the script printed too much" : wordsOf(outcome) ?? `the script ended with ${exit}`
    const error = new HookFailed({ exit, detail, printed: stdout })
    return yield* exit === badCsrExit && hook.name === "issue" ?
      error
      : failed("signer_script_failed", error, exit === 0 ? undefined : restOf(outcome))
  })
