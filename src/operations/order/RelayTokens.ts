import { Effect } from "effect"
import { currentSeconds } from "../../kernel/Time.ts"
import * as http01Tokens from "../../store/upstream/Http01Tokens.ts"

/** What a token of the relay's http01 strategy is answered with; `undefined` for one nobody knows. */
export const keyAuthorization = (token: string) =>
  /^[\w-]{1,512}$/.test(token)
    ? Effect.flatMap(currentSeconds, (now) => http01Tokens.find(token, now))
    : Effect.succeed(undefined)
