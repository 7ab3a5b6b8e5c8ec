import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { BadRequest, NoSuch } from "../../../domain/OperatorError.ts"
import { operatorDetailObject, sessionObject } from "../../../operations/operators/OperatorObjects.ts"
import * as operators from "../../../operations/operators/Operators.ts"
import * as ownAccount from "../../../operations/operators/OwnAccount.ts"
import * as secondFactor from "../../../operations/operators/SecondFactor.ts"
import * as sessions from "../../../operations/operators/Sessions.ts"
import * as tokens from "../../../operations/operators/Tokens.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { clearSession } from "../../admin/Credentials.ts"
import { field, secret } from "../PanelForm.ts"
import { qrCode } from "../QrCode.ts"
import { forRole, moved, operatorIn, page, requesterOf } from "../Route.ts"
import { passwordIn } from "../StepUpPage.ts"
import { mint, tokensView } from "../TokenList.ts"

/* The sender's own account. */

const path = "/ui/account"
/** As many sessions are shown; older ones are listed at the command line. */
const mostSessions = 25
const done = (code: string) => moved(`${path}?done=${code}`)
const signedOut = moved("/ui/login?why=out", { "set-cookie": clearSession })
const own = forRole("own")

/** The routes of one's own account. */
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
        const chosen = secret(given.form, "newPassword")
        if (chosen !== secret(given.form, "repeated")) {
          return yield* new BadRequest({ detail: "The new password and its repetition differ." })
        }
        const passwords = { current: passwordIn(given), chosen: Redacted.make(chosen) }
        yield* ownAccount.changePassword(config, given.sender, passwords, requesterOf(given))
        return done("password-changed")
      })),
    own("POST", `${path}/contact`, (given) =>
      Effect.as(
        ownAccount.changeContact(
          config,
          given.sender,
          { password: passwordIn(given), contact: field(given.form, "contact") },
          requesterOf(given)
        ),
        done("contact-changed")
      )),
    own("POST", `${path}/sessions/{id}/revoke`, (given) =>
      Effect.map(
        sessions.revokeOwn(given.sender, given.parameters["id"] ?? "", requesterOf(given)),
        ({ isCurrent }) => isCurrent ? signedOut : done("session-revoked")
      )),
    own(
      "POST",
      `${path}/sign-out-everywhere`,
      (given) => Effect.as(sessions.signOut(given.sender, { all: true }, requesterOf(given)), signedOut)
    ),
    own("POST", `${path}/factor/begin`, (given) =>
      Effect.map(
        secondFactor.beginEnrolment(admin, given.sender, passwordIn(given), requesterOf(given)),
        ({ secret: key, uri }) => page("factor", "Second factor", { secret: key, uri, qr: qrCode(uri) })
      )),
    own("POST", `${path}/factor/confirm`, (given) =>
      Effect.map(
        secondFactor.confirmEnrolment(admin, given.sender, secret(given.form, "code"), requesterOf(given)),
        (recoveryCodes) => page("own-codes", "Recovery codes", { recoveryCodes, next: `${path}?done=factor-enrolled` })
      )),
    own("POST", `${path}/factor/disable`, (given) =>
      Effect.as(
        secondFactor.disable(admin, given.sender, passwordIn(given), requesterOf(given)),
        done("factor-disabled")
      )),
    own("POST", `${path}/factor/codes`, (given) =>
      Effect.map(
        secondFactor.reissueCodes(admin, given.sender, passwordIn(given), requesterOf(given)),
        (recoveryCodes) => page("own-codes", "Recovery codes", { recoveryCodes, next: `${path}?done=codes-replaced` })
      )),
    own("POST", `${path}/tokens`, (given) => mint(config, given, given.sender.username, path)),
    own("POST", `${path}/tokens/{id}/revoke`, (given) =>
      Effect.gen(function*() {
        const { id = "" } = given.parameters
        const token = yield* tokens.find(id)
        if (token.username !== given.sender.username) return yield* new NoSuch({ noun: "token", id })
        yield* tokens.revoke(operatorIn(given), id)
        return done("token-revoked")
      }))
  ]
}
