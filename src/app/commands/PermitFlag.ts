import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { isWildcard, normalizeIdentifier } from "../../domain/Identifier.ts"
import { refusal, repeatedFlag } from "./Flags.ts"

/** Returns a permitted DNS name in its usual form, or says what is wrong with it. */
const permittedName = (text: string): Result.Result<string, string> =>
  Result.match(normalizeIdentifier(text, { dns01Enabled: false }), {
    onFailure: ({ detail }) => Result.fail(`--permit: ${JSON.stringify(text)} cannot be permitted. ${detail}`),
    onSuccess: (name) =>
      isWildcard(name)
        ? Result.fail(`--permit: ${name} cannot be permitted. A name without *. covers every name below it too.`)
        : Result.succeed(name)
  })

/** The flag for the names that a CA may issue for. A repeated name counts once. */
export const permitFlag: Flag.Flag<ReadonlyArray<string>> = repeatedFlag("permit", "name").pipe(
  Flag.mapEffect((given) =>
    Effect.mapError(Effect.fromResult(Result.all(given.map(permittedName))), (fault) => refusal(fault))
  ),
  Flag.map((names) => [...new Set(names)]),
  Flag.withDescription(
    "A DNS name that the CA may issue for, with every name below it. May be given several times. Without it, every name."
  )
)
