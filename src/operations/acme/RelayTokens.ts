import * as Effect from "effect/Effect"
import { currentSeconds } from "../../engine/Time.ts"
import * as http01Tokens from "../../store/upstream/Http01Tokens.ts"

/** Returns the key authorization for a token of the relay's http01 strategy, or `undefined` for an unknown token. */
export const keyAuthorization = (token: string) =>
  /^[\w-]{1,512}$/.test(token)
    ? Effect.flatMap(currentSeconds, (now) => http01Tokens.find(token, now))
    : Effect.succeed(undefined)
