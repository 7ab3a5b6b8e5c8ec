import * as Effect from "effect/Effect"
import { BadRequest } from "../../../domain/OperatorError.ts"
import { operatorDetailObject, sessionObject } from "../../../operations/operator/identity/OperatorObjects.ts"
import * as operators from "../../../operations/operator/identity/Operators.ts"
import * as sessions from "../../../operations/operator/identity/Sessions.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import {
  beginEnrolment,
  changeOwnContact,
  changeOwnPassword,
  confirmEnrolment,
  disableSecondFactor,
  reissueRecoveryCodes,
  revokeOwnSession
} from "../../operator/acts/OwnActs.ts"
import { clearSession } from "../../operator/gate/Credentials.ts"
import { submitted } from "../PanelActs.ts"
import { qrCode } from "../QrCode.ts"
import { forRole, moved, page, requesterOf } from "../Route.ts"
import { mint, revoked, tokensView } from "../TokenList.ts"

/* The page of the sender's own account. */

const path = "/ui/account"
/** The highest number of sessions that the page shows. The command line lists older sessions. */
const mostSessions = 25
const done = (code: string) => moved(`${path}?done=${code}`)
const signedOut = moved("/ui/login?why=out", { "set-cookie": clearSession })
const own = forRole("own")

/** Returns the routes of the page of the sender's own account. */
export const ownRoutes = (config: Config) => {
  const { admin } = config
  return [
    own("GET", path, ({ query, sender }) =>
      Effect.gen(function*() {
        const found = yield* sessions.listOwn(admin, sender, { limit: mostSessions, offset: 0 })
        return page("own-account", "Your account", {
          operator: operatorDetailObject(yield* operators.show(admin, sender.username)),
          sessions: found.items.map((one) => sessionObject(one, found.current)),
          hiddenSessions: found.total - found.items.length,
          tokens: yield* tokensView(sender.username, sender.role, `${path}/tokens`),
          requiresFactor: admin.require_mfa,
          revoking: query.get("revoke") ?? "",
          done: query.get("done") ?? ""
        })
      })),
    own("POST", `${path}/password`, (given) =>
      Effect.gen(function*() {
        const { form } = given
        if (form.get("newPassword") !== form.get("repeated")) {
          return yield* new BadRequest({ detail: "The new password and its repetition differ." })
        }
        const named = new URLSearchParams()
        for (const [name, text] of form) named.append(name === "password" ? "currentPassword" : name, text)
        yield* submitted(changeOwnPassword, { ...given, form: named }, ["repeated"])
        return done("password-changed")
      })),
    own("POST", `${path}/contact`, (given) => Effect.as(submitted(changeOwnContact, given), done("contact-changed"))),
    own("POST", `${path}/sessions/{id}/revoke`, (given) =>
      Effect.map(
        submitted(revokeOwnSession, given),
        ({ isCurrent }) => isCurrent ? signedOut : done("session-revoked")
      )),
    own(
      "POST",
      `${path}/sign-out-everywhere`,
      (given) => Effect.as(sessions.signOut(given.sender, { all: true }, requesterOf(given)), signedOut)
    ),
    own("POST", `${path}/factor/begin`, (given) =>
      Effect.map(
        submitted(beginEnrolment, given),
        ({ secret, uri }) => page("factor", "Second factor", { secret, uri, qr: qrCode(uri) })
      )),
    own("POST", `${path}/factor/confirm`, (given) =>
      Effect.map(
        submitted(confirmEnrolment, given),
        ({ recoveryCodes }) =>
          page("own-codes", "Recovery codes", { recoveryCodes, next: `${path}?done=factor-enrolled` })
      )),
    own(
      "POST",
      `${path}/factor/disable`,
      (given) => Effect.as(submitted(disableSecondFactor, given), done("factor-disabled"))
    ),
    own("POST", `${path}/factor/codes`, (given) =>
      Effect.map(
        submitted(reissueRecoveryCodes, given),
        ({ recoveryCodes }) =>
          page("own-codes", "Recovery codes", { recoveryCodes, next: `${path}?done=codes-replaced` })
      )),
    own("POST", `${path}/tokens`, (given) => mint(given, given.sender.username, path)),
    own(
      "POST",
      `${path}/tokens/{id}/revoke`,
      (given) => Effect.as(revoked(given, given.sender.username), done("token-revoked"))
    )
  ]
}
