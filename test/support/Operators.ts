import { Effect, Layer, Redacted } from "effect"
import type { Derive } from "../../src/crypto/PasswordHash.ts"
import { derive } from "../../src/crypto/PasswordHash.ts"
import { totpCode } from "../../src/crypto/Totp.ts"
import type { OperatorRole } from "../../src/domain/OperatorRole.ts"
import { currentSeconds } from "../../src/engine/Time.ts"
import type { AtKeyboard } from "../../src/operations/Operator.ts"
import type { Requester, SessionIdentity } from "../../src/operations/operator/identity/Identity.ts"
import * as operators from "../../src/operations/operator/identity/Operators.ts"
import * as secondFactor from "../../src/operations/operator/identity/SecondFactor.ts"
import { signIn } from "../../src/operations/operator/identity/SignIn.ts"
import { Notifier } from "../../src/services/notify/Notifier.ts"
import { Passwords } from "../../src/services/operators/Passwords.ts"
import { secretOf } from "./Authenticator.ts"
import type { Backend } from "./Databases.ts"
import { column, configOf, fieldsOf } from "./Graph.ts"
import { useStore } from "./UseTests.ts"

/* Operators in a database of the test, with hashes that cost almost nothing and are counted. */

/** The epoch second at which tests of operators begin, in the middle of a step of thirty seconds. */
export const startsAt = 1_800_000_015

/** The configuration of tests of operators. */
export const config = configOf()

/** The same configuration, with a second factor required. */
export const strict = configOf("[admin]\nrequire_mfa = true\n")

/** The actor that makes operators. */
export const keyboard: AtKeyboard = { kind: "cli", id: "tester" }

/** The password of every operator unless a test says otherwise. */
export const password = "Wrocław tramway, 4 stops"

/** A new password for operators who change theirs. */
export const chosen = "Gdańsk shipyard, 9 cranes"

/** A password that no operator has. */
export const wrong = "Kraków tramway, 5 stops"

/** Paging with room for every row of a test. */
export const all = { limit: 50, offset: 0 }

/** The keys with counted attempts that were not given back. */
export const counted = column("SELECT key FROM login_attempts WHERE attempts > 0")

/** Returns the tag of an effect's failure. */
export const tagOf = <A, E extends { readonly _tag: string }, R>(self: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(self), ({ _tag }) => _tag)

/** Returns a request that comes from an address. */
export const from = (ip: string, more: Partial<Requester> = {}): Requester => ({
  client: { ip, user_agent: "test/1", request_id: "request-1" },
  surface: "api",
  ...more
})

/** The address of requests, unless a test names another one. */
export const here = from("192.0.2.1")

const iterations = 4

/** Returns a password in the form in which it is typed. */
export const typed = (text: string) => Redacted.make(text)

/** Tests of operators. `rounds` counts the iterations of PBKDF2. */
export const useOperators = (backend: Backend) => {
  const rounds = { ofPasswords: 0 }
  const counted: Derive = (text, salt, count) =>
    Effect.andThen(Effect.sync(() => void (rounds.ofPasswords += count)), derive(text, salt, count))
  const store = useStore(backend, {
    startsAt,
    layer: () =>
      Layer.merge(Passwords.layer({ iterations, recoveryIterations: 1, derive: counted }), Notifier.layerNone)
  })
  return {
    ...store,
    /** The fields of every log record of an event in the running test. */
    fieldsOf: (event: Parameters<typeof fieldsOf>[1]) => fieldsOf(store.records, event),
    /** Returns the number of password hashes that an effect computes. */
    hashesOf: <A, E, R>(self: Effect.Effect<A, E, R>) =>
      Effect.suspend(() => {
        const before = rounds.ofPasswords
        return Effect.map(Effect.exit(self), () => (rounds.ofPasswords - before) / iterations)
      })
  }
}

/** Makes an operator. */
export const made = (username: string, role: OperatorRole = "viewer") =>
  operators.create(config, keyboard, { username, password: typed(password), role, contact: undefined })

/** Signs an operator in without a second factor. */
export const enter = (username: string, requester: Requester = here) =>
  Effect.flatMap(
    signIn(config.admin, { username, password: typed(password) }, requester),
    (signedIn) => signedIn._tag === "Active" ? Effect.succeed(signedIn) : Effect.die(new Error("a factor is asked for"))
  )

/** Signs an operator in up to the second factor. */
export const half = (username: string, requester: Requester = here, settings = config.admin) =>
  Effect.flatMap(
    signIn(settings, { username, password: typed(password) }, requester),
    (signedIn) =>
      signedIn._tag === "Pending" ? Effect.succeed(signedIn) : Effect.die(new Error("no factor is asked for"))
  )

/** Returns the code that an authenticator shows `later` seconds from now. */
export const codeOf = (secret: Uint8Array, later = 0) =>
  Effect.map(currentSeconds, (now) => totpCode(secret, now + later))

/** Enrols an authenticator in an operator's session. This uses up the step of its code. */
export const enrolled = Effect.fnUntraced(function*(identity: SessionIdentity) {
  const enrolment = yield* secondFactor.beginEnrolment(config.admin, identity, typed(password), here)
  const secret = secretOf(enrolment.secret)
  const codes = yield* secondFactor.confirmEnrolment(config.admin, identity, yield* codeOf(secret), here)
  return { secret, codes }
})
