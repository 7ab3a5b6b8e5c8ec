import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as mfaSignIn from "../../../operations/operator/identity/MfaSignIn.ts"
import { halfSessionBody, sessionBody } from "../../../operations/operator/identity/OperatorObjects.ts"
import * as sessions from "../../../operations/operator/identity/Sessions.ts"
import * as signInOperation from "../../../operations/operator/identity/SignIn.ts"
import { act, noun } from "../Act.ts"
import { ActingHalf, ActingSession, Asking, Configured } from "../Acting.ts"
import { flag, or, secret } from "../Field.ts"
import { EnrolledSession, HalfSession, Session, Step, TotpSecret } from "../schemas/OperatorSchemas.ts"

/*
 * Declares the acts of sign-in, its second factor, and sign-out (docs/contribute/decisions/admin.md, "Sign-in"). They
 * have no commands.
 */

const code = secret("A code of the authenticator, or a recovery code.")
const admin = Effect.map(Configured.config, ({ admin }) => admin)

const signIn = act({
  id: "signIn",
  does: "Sign in",
  access: "public",
  input: { username: secret("The name of the operator."), password: secret("The password.") },
  output: Schema.Union([Session, HalfSession]),
  errors: ["invalid_credentials"],
  run: ({ password, username }) =>
    Effect.gen(function*() {
      const { begin, requester } = yield* Asking
      const given = { username, password: Redacted.make(password) }
      const signedIn = yield* signInOperation.signIn(yield* admin, given, requester)
      yield* begin(signedIn.token)
      return signedIn._tag === "Active" ? sessionBody(signedIn.identity) : halfSessionBody(signedIn.identity)
    }),
  http: { route: "POST /api/session", isWithoutCsrf: true }
})

const readSession = act({
  id: "readSession",
  does: "Show who is signed in",
  access: "own",
  input: {},
  output: Session,
  errors: [],
  run: () => Effect.map(ActingSession, sessionBody),
  http: { route: "GET /api/session" }
})

const signOut = act({
  id: "signOut",
  does: "Sign out of this session, or of all sessions",
  access: "own",
  input: { all: or(flag("Whether every session of the operator ends."), false) },
  output: Schema.Void,
  errors: [],
  run: ({ all }) =>
    Effect.gen(function*() {
      const { end, requester } = yield* Asking
      yield* sessions.signOut(yield* ActingSession, { all }, requester)
      yield* end
    }),
  http: { route: "DELETE /api/session", status: 204 }
})

const readStep = act({
  id: "readStep",
  does: "Say whether a session has to give or to enrol a second factor",
  access: "half",
  input: {},
  output: Schema.Struct({ step: Step }),
  errors: [],
  run: () => Effect.map(ActingHalf, ({ step }) => ({ step })),
  http: { route: "GET /api/session/mfa" }
})

const verifyCode = act({
  id: "verifyCode",
  does: "Complete a sign-in with a code",
  access: "half",
  input: { code },
  output: Session,
  errors: ["invalid_credentials", "mfa_not_enrolled"],
  run: ({ code }) =>
    Effect.gen(function*() {
      const { begin, requester } = yield* Asking
      const verified = yield* mfaSignIn.verify(yield* admin, yield* ActingHalf, code, requester)
      yield* begin(verified.token)
      return sessionBody(verified.identity)
    }),
  http: { route: "POST /api/session/mfa", isWithoutCsrf: true }
})

const abandonSignIn = act({
  id: "abandonSignIn",
  does: "Abandon a sign-in that has not given its second factor",
  access: "half",
  input: {},
  output: Schema.Void,
  errors: [],
  run: () =>
    Effect.gen(function*() {
      yield* sessions.abandonHalf(yield* ActingHalf)
      yield* Effect.flatMap(Asking, ({ end }) => end)
    }),
  http: { route: "DELETE /api/session/mfa", status: 204 }
})

const beginForcedEnrolment = act({
  id: "beginForcedEnrolment",
  does: "Begin the enrolment that this sign-in needs",
  access: "half",
  input: {},
  output: TotpSecret,
  errors: [],
  run: () =>
    Effect.gen(function*() {
      return yield* mfaSignIn.beginEnrolment(yield* admin, yield* ActingHalf)
    }),
  http: { route: "POST /api/session/mfa/totp", status: 201 }
})

const confirmForcedEnrolment = act({
  id: "confirmForcedEnrolment",
  does: "Complete the enrolment and the sign-in",
  access: "half",
  input: { code },
  output: EnrolledSession,
  errors: ["invalid_credentials", "mfa_not_pending"],
  run: ({ code }) =>
    Effect.gen(function*() {
      const { begin, requester } = yield* Asking
      const { active, recoveryCodes } = yield* mfaSignIn.confirmEnrolment(
        yield* admin,
        yield* ActingHalf,
        code,
        requester
      )
      yield* begin(active.token)
      return { ...sessionBody(active.identity), recoveryCodes }
    }),
  http: { route: "POST /api/session/mfa/totp/confirm" }
})

/** The acts of sign-in and sign-out (`/api/session`). */
export const sessionActs = noun({
  name: "session",
  description: "Sign-in and sign-out.",
  commands: {},
  acts: [
    signIn,
    readSession,
    signOut,
    readStep,
    verifyCode,
    abandonSignIn,
    beginForcedEnrolment,
    confirmForcedEnrolment
  ]
})
