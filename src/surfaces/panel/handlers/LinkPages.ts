import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { BadRequest } from "../../../domain/OperatorError.ts"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { operatorProblemOf } from "../../../domain/OperatorProblem.ts"
import { LinkRefused } from "../../../domain/PasswordLink.ts"
import * as links from "../../../operations/operator/identity/PasswordLinks.ts"
import { signIn } from "../../../operations/operator/identity/SignIn.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { setSession } from "../../operator/gate/Credentials.ts"
import { urlOf } from "../Listing.ts"
import { notFromHere } from "../OwnMachine.ts"
import { orRefusal } from "../PanelActs.ts"
import { field, secret } from "../PanelForm.ts"
import type { Given } from "../Route.ts"
import { moved, open, page, requesterOf } from "../Route.ts"

/*
 * The pages of a link with which an operator sets a password. The token is in the fragment of the link. The script of
 * the first page puts it into a form, or the operator pastes it there, so that no target of a request contains it.
 */

const title = "Set your password"

/** What each refusal says, and its status. */
const refusals = {
  elsewhere: [403, "A link works only in a browser on the machine on which the service runs."],
  proxied: [403, "A link works only in a browser that reaches the service without a proxy."],
  unknown: [404, "There is no such link. A newer link may have replaced it."],
  used: [410, "This link was used already. A link is good once."],
  expired: [410, "This link has ended. A link is good for 15 minutes."],
  disabled: [403, "The operator of this link is disabled."]
} as const satisfies { readonly [R in LinkRefused["reason"]]: readonly [status: number, message: string] }

const refusedPage = ({ reason, username = "NAME" }: LinkRefused) => {
  const [status, message] = refusals[reason]
  return page("link", title, { refusal: { message, username, isDisabled: reason === "disabled" } }, { status })
}

/** Shows a form again, with the error. */
const again = (data: object, error: OperatorError) => {
  const { code, message, retryAfter, status } = operatorProblemOf(error)
  const headers = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }
  return page("link", title, { ...data, problem: { code, message, status } }, { status, headers })
}

/** Returns the token in a field, where somebody may have pasted the whole link. */
const tokenOf = ({ form }: Given) => Redacted.make((field(form, "token") ?? "").replace(/^.*#/, ""))

/** Returns the routes of the pages that a link leads to. */
export const linkRoutes = (config: Config) => {
  const { admin } = config
  /** Refuses a request from elsewhere, and shows a refusal of the link as a page. */
  const here = <A, E, R>(given: Given, answer: Effect.Effect<A, E, R>) => {
    const reason = notFromHere(given.request, admin.filter.forwarded_header)
    const checked: Effect.Effect<A, E | LinkRefused, R> = reason === undefined
      ? answer
      : links.refuseFromElsewhere(reason, requesterOf(given))
    return Effect.catchIf(
      checked,
      (error): error is LinkRefused => error instanceof LinkRefused,
      (refused) => Effect.succeed(refusedPage(refused))
    )
  }
  return [
    open("GET", "/ui/link", (given) => here(given, Effect.succeed(page("link", title, { asksForToken: true })))),
    open("POST", "/ui/link", (given) =>
      here(
        given,
        Effect.gen(function*() {
          const token = tokenOf(given)
          const opened = yield* orRefusal(links.open(admin, token, requesterOf(given)))
          return Result.isFailure(opened)
            ? again({ asksForToken: true }, opened.failure)
            : page("link", title, { token: Redacted.value(token), username: opened.success })
        })
      )),
    open("POST", "/ui/link/password", (given) =>
      here(
        given,
        Effect.gen(function*() {
          const [token, requester] = [tokenOf(given), requesterOf(given)]
          const typed = secret(given.form, "newPassword")
          const shown = { token: Redacted.value(token), username: field(given.form, "username") ?? "" }
          if (typed !== secret(given.form, "repeated")) {
            return again(shown, new BadRequest({ detail: "The new password and its repetition differ." }))
          }
          const password = Redacted.make(typed)
          const set = yield* orRefusal(links.setPassword(config, { token, password }, requester))
          if (Result.isFailure(set)) return again(shown, set.failure)
          // The password is set. If the sign-in is refused now, the operator can sign in later.
          const signedIn = yield* orRefusal(signIn(admin, { username: set.success, password }, requester))
          if (Result.isFailure(signedIn)) return moved(urlOf("/ui/login", { why: "set" }))
          const { identity, token: session } = signedIn.success
          const to = identity.kind === "session"
            ? "/ui/"
            : identity.step === "enrol"
            ? "/ui/login/enrol"
            : "/ui/login/verify"
          return moved(to, { "set-cookie": setSession(Redacted.value(session)) })
        })
      ))
  ]
}
