import * as Effect from "effect/Effect"
import { Host } from "../Host.ts"
import { administratorWith } from "../ServiceDatabase.ts"
import { readKnownSecret } from "./SecretInput.ts"

/**
 * Returns an administrator. The password comes from the file, from `PGPASSWORD`, or from standard input. An empty
 * password means that the server asks for none.
 */
export const administratorOf = Effect.fnUntraced(function*(
  name: string,
  url: string,
  passwordFile: string | undefined
) {
  const { env } = yield* Host
  const given = passwordFile === undefined ? env["PGPASSWORD"] : undefined
  const password = given ??
    (yield* passwordFile === undefined
      ? readKnownSecret("administrator's password", undefined)
      : readKnownSecret("admin-password", passwordFile))
  return administratorWith(name, url, password)
})
