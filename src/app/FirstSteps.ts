import * as Effect from "effect/Effect"
import type { Entropy } from "../crypto/Entropy.ts"
import type { Database } from "../engine/sql/Database.ts"
import type { AtKeyboard } from "../operations/Operator.ts"
import * as links from "../operations/operator/identity/PasswordLinks.ts"
import type { Config } from "../settings/AppConfig.ts"
import * as users from "../store/operators/Users.ts"
import type { SignInState } from "../surfaces/cli/Welcome.ts"

/**
 * Finds out whether somebody can sign in to the panel. If nobody knows the password of the first operator, makes a link
 * that sets it, but only for a terminal: any other output may be kept as a log. If the database does not answer,
 * returns undefined.
 */
export const signInState = (
  config: Config,
  { isTerminal, operator }: { readonly isTerminal: boolean; readonly operator: AtKeyboard }
): Effect.Effect<SignInState | undefined, never, Database | Entropy> =>
  Effect.gen(function*(): Effect.fn.Return<SignInState, { readonly _tag: string }, Database | Entropy> {
    const username = yield* links.owed
    if (username === undefined) {
      const total = yield* users.count({ status: "active", role: undefined })
      return { _tag: total === 0 ? "nobody" : "somebody" }
    }
    if (!isTerminal || links.faultOfLinks(config.admin) !== undefined) return { _tag: "needsLink", username }
    const { url } = yield* links.make(config, operator, username)
    return { _tag: "link", username, url }
  }).pipe(Effect.catch(() => Effect.undefined))
