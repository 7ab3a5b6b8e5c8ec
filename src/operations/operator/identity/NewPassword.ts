import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { Guessable } from "../../../domain/PasswordRules.ts"
import { checkPassword } from "../../../domain/PasswordRules.ts"
import { Passwords } from "../../../services/operators/Passwords.ts"
import type { Config } from "../../../settings/AppConfig.ts"

/** The parts of a configuration with texts that an attacker would try as passwords. */
export type PasswordSettings = Pick<Config, "admin" | "profiles" | "server" | "signer">

const productNames = ["acme-svc", "ACME Service"]

/** Returns the texts that an attacker of this installation would try first as passwords. */
const guessable = ({ admin, profiles, server, signer }: PasswordSettings, username: string): Guessable => ({
  username,
  texts: [
    ...productNames,
    ...[server, admin].map(({ base_url }) => new URL(base_url).hostname),
    ...[signer, ...profiles.map((profile) => profile.signer)].flatMap(({ local_ca }) =>
      Object.values(local_ca.subject)
    ),
    ...profiles.map(({ name }) => name)
  ]
})

/** Checks a new password. Returns the password in the form that is hashed. Fails if an attacker would guess it. */
export const accepted = (config: PasswordSettings, username: string, chosen: Redacted.Redacted<string>) =>
  Result.map(checkPassword(Redacted.value(chosen), guessable(config, username)), Redacted.make)

/** Returns the hash of a new password. */
export const hashNew = Effect.fnUntraced(function*(
  config: PasswordSettings,
  username: string,
  chosen: Redacted.Redacted<string>
) {
  const password = yield* Effect.fromResult(accepted(config, username, chosen))
  return yield* (yield* Passwords).hash(Redacted.value(password))
})
