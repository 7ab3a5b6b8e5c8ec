import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { operatorProblemOf } from "../../../domain/OperatorProblem.ts"
import type { SessionToken } from "../../../operations/operator/identity/Identity.ts"
import * as mfaSignIn from "../../../operations/operator/identity/MfaSignIn.ts"
import * as sessions from "../../../operations/operator/identity/Sessions.ts"
import { signIn } from "../../../operations/operator/identity/SignIn.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { clearSession, setSession } from "../../operator/gate/Credentials.ts"
import { urlOf } from "../Listing.ts"
import { orRefusal } from "../PanelActs.ts"
import { field, secret } from "../PanelForm.ts"
import { ownPath } from "../Presenting.ts"
import { qrCode } from "../QrCode.ts"
import { forRole, halfway, moved, open, page, requesterOf } from "../Route.ts"

/* The pages for signing in and out. Their forms work without a script. */

const withCookie = (token: SessionToken) => ({ "set-cookie": setSession(Redacted.value(token)) })

const wrongCode = "The code is wrong or was used before."

/** Shows the form again, with the error. */
const again = (template: string, title: string, data: object, error: OperatorError) => {
  const { code, message: usual, retryAfter, status } = operatorProblemOf(error)
  // An operator who has reached the step for the code has already given the right password, so only the code can be
  // wrong.
  const message = error._tag === "InvalidCredentials" && template !== "login" ? wrongCode : usual
  const headers = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }
  return page(template, title, { ...data, problem: { code, message, status } }, { status, headers })
}

const title = "Sign in"

/** Returns the routes of sign-in. */
export const signInRoutes = ({ admin }: Config) => [
  open("GET", "/ui/login", ({ query }) =>
    Effect.succeed(page("login", title, {
      next: ownPath(query.get("next")) ?? "",
      isEnded: query.get("why") === "ended",
      isSignedOut: query.get("why") === "out",
      isPasswordSet: query.get("why") === "set"
    }))),
  open("POST", "/ui/login", (given) =>
    Effect.gen(function*() {
      const next = ownPath(given.form.get("next"))
      const username = field(given.form, "username") ?? ""
      const credentials = { username, password: Redacted.make(secret(given.form, "password")) }
      const signedIn = yield* orRefusal(signIn(admin, credentials, requesterOf(given)))
      if (Result.isFailure(signedIn)) return again("login", title, { username, next: next ?? "" }, signedIn.failure)
      const { identity, token } = signedIn.success
      const to = identity.kind === "session"
        ? next ?? "/ui/"
        : urlOf(identity.step === "enrol" ? "/ui/login/enrol" : "/ui/login/verify", { next })
      return moved(to, withCookie(token))
    })),
  halfway("GET", "/ui/login/verify", ({ query, sender }) => {
    const next = ownPath(query.get("next"))
    return Effect.succeed(
      sender.step === "enrol"
        ? moved(urlOf("/ui/login/enrol", { next }))
        : page("verify", title, { next: next ?? "" })
    )
  }),
  halfway("POST", "/ui/login/verify", (given) =>
    Effect.gen(function*() {
      const next = ownPath(given.form.get("next"))
      const verified = yield* orRefusal(
        mfaSignIn.verify(admin, given.sender, secret(given.form, "code"), requesterOf(given))
      )
      return Result.isFailure(verified)
        ? again("verify", title, { next: next ?? "" }, verified.failure)
        : moved(next ?? "/ui/", withCookie(verified.success.token))
    })),
  halfway(
    "GET",
    "/ui/login/enrol",
    ({ query, sender }) =>
      Effect.map(
        mfaSignIn.isEnrolling(sender),
        (isPending) => page("enrol", "Second factor", { next: ownPath(query.get("next")) ?? "", isPending })
      )
  ),
  halfway(
    "POST",
    "/ui/login/enrol",
    (given) =>
      Effect.map(mfaSignIn.beginEnrolment(admin, given.sender), ({ secret, uri }) =>
        page("enrol", "Second factor", {
          next: ownPath(given.form.get("next")) ?? "",
          enrolment: { secret, uri, qr: qrCode(uri) }
        }))
  ),
  halfway("POST", "/ui/login/enrol/confirm", (given) =>
    Effect.gen(function*() {
      const next = ownPath(given.form.get("next"))
      const confirmed = yield* orRefusal(
        mfaSignIn.confirmEnrolment(admin, given.sender, secret(given.form, "code"), requesterOf(given))
      )
      if (Result.isFailure(confirmed)) {
        const isPending = confirmed.failure._tag !== "MfaNotPending"
        return again("enrol", "Second factor", { next: next ?? "", isPending }, confirmed.failure)
      }
      const { active, recoveryCodes } = confirmed.success
      return page("codes", "Recovery codes", { recoveryCodes, next: next ?? "/ui/" }, {
        headers: withCookie(active.token)
      })
    })),
  halfway(
    "POST",
    "/ui/login/abandon",
    ({ sender }) => Effect.as(sessions.abandonHalf(sender), moved("/ui/login", { "set-cookie": clearSession }))
  ),
  forRole("own")("POST", "/ui/logout", (given) =>
    Effect.as(
      sessions.signOut(given.sender, { all: false }, requesterOf(given)),
      moved("/ui/login?why=out", { "set-cookie": clearSession })
    ))
]
