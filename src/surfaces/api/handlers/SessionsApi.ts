import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Redacted from "effect/Redacted"
import type { SessionToken } from "../../../operations/operators/Identity.ts"
import * as mfaSignIn from "../../../operations/operators/MfaSignIn.ts"
import { halfSessionBody, sessionBody } from "../../../operations/operators/OperatorObjects.ts"
import * as sessions from "../../../operations/operators/Sessions.ts"
import * as signIn from "../../../operations/operators/SignIn.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { clearSession, setSession } from "../../admin/Credentials.ts"
import { Api } from "../Api.ts"
import { answering } from "../ApiRefusals.ts"
import { half, requester, session } from "./RequestCaller.ts"

const withCookie = (cookie: string) =>
  HttpEffect.appendPreResponseHandler((_, response) =>
    Effect.succeed(HttpServerResponse.setHeader(response, "set-cookie", cookie))
  )

/** Sets the session cookie in the browser. */
const begun = (token: SessionToken) => withCookie(setSession(Redacted.value(token)))

/** Removes the session cookie from the browser. */
export const ended = withCookie(clearSession)

/** Sign-in and sign-out. */
export const sessionHandlers = ({ admin }: Config) =>
  HttpApiBuilder.group(Api, "session", (handlers) =>
    handlers
      .handle("signIn", ({ payload: { password, username } }) =>
        answering(Effect.gen(function*() {
          const given = { username, password: Redacted.make(password) }
          const signedIn = yield* signIn.signIn(admin, given, yield* requester)
          yield* begun(signedIn.token)
          return signedIn._tag === "Active" ? sessionBody(signedIn.identity) : halfSessionBody(signedIn.identity)
        })))
      .handle("readSession", () => Effect.map(session, sessionBody))
      .handle("signOut", ({ query: { all = "false" } }) =>
        answering(Effect.gen(function*() {
          yield* sessions.signOut(yield* session, { all: all === "true" }, yield* requester)
          yield* ended
        })))
      .handle("readStep", () => Effect.map(half, ({ step }) => ({ step })))
      .handle("verifyCode", ({ payload: { code } }) =>
        answering(Effect.gen(function*() {
          const verified = yield* mfaSignIn.verify(admin, yield* half, code, yield* requester)
          yield* begun(verified.token)
          return sessionBody(verified.identity)
        })))
      .handle("abandonSignIn", () => answering(Effect.andThen(Effect.flatMap(half, sessions.abandonHalf), ended)))
      .handle(
        "beginForcedEnrolment",
        () => answering(Effect.flatMap(half, (sender) => mfaSignIn.beginEnrolment(admin, sender)))
      )
      .handle("confirmForcedEnrolment", ({ payload: { code } }) =>
        answering(Effect.gen(function*() {
          const { active, recoveryCodes } = yield* mfaSignIn.confirmEnrolment(
            admin,
            yield* half,
            code,
            yield* requester
          )
          yield* begun(active.token)
          return { ...sessionBody(active.identity), recoveryCodes }
        }))))
