import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Redacted from "effect/Redacted"
import { sessionObject } from "../../../operations/operators/OperatorObjects.ts"
import * as ownAccount from "../../../operations/operators/OwnAccount.ts"
import * as secondFactor from "../../../operations/operators/SecondFactor.ts"
import * as sessions from "../../../operations/operators/Sessions.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { Api } from "../Api.ts"
import { answering } from "../ApiRefusals.ts"
import { paged, windowOf } from "./Paging.ts"
import { requester, session } from "./RequestCaller.ts"
import { ended } from "./SessionsApi.ts"

/** The caller's own account. */
export const ownHandlers = (config: Config) => {
  const { admin } = config
  return HttpApiBuilder.group(Api, "own", (handlers) =>
    handlers
      .handle("readSecondFactor", () => answering(Effect.flatMap(session, secondFactor.status)))
      .handle("beginEnrolment", ({ payload: { password } }) =>
        answering(Effect.gen(function*() {
          return yield* secondFactor.beginEnrolment(admin, yield* session, Redacted.make(password), yield* requester)
        })))
      .handle("confirmEnrolment", ({ payload: { code } }) =>
        answering(Effect.gen(function*() {
          const recoveryCodes = yield* secondFactor.confirmEnrolment(admin, yield* session, code, yield* requester)
          return { recoveryCodes }
        })))
      .handle("disableSecondFactor", ({ payload: { password } }) =>
        answering(Effect.gen(function*() {
          yield* secondFactor.disable(admin, yield* session, Redacted.make(password), yield* requester)
        })))
      .handle("reissueRecoveryCodes", ({ payload: { password } }) =>
        answering(Effect.gen(function*() {
          const by = yield* requester
          return { recoveryCodes: yield* secondFactor.reissueCodes(admin, yield* session, Redacted.make(password), by) }
        })))
      .handle("changeOwnPassword", ({ payload: { currentPassword, newPassword } }) =>
        answering(Effect.gen(function*() {
          const passwords = { current: Redacted.make(currentPassword), chosen: Redacted.make(newPassword) }
          yield* ownAccount.changePassword(config, yield* session, passwords, yield* requester)
        })))
      .handle("changeOwnContact", ({ payload: { contact, password } }) =>
        answering(Effect.gen(function*() {
          const change = { password: Redacted.make(password), contact: contact ?? undefined }
          yield* ownAccount.changeContact(config, yield* session, change, yield* requester)
        })))
      .handle("listOwnSessions", ({ query }) => {
        const window = windowOf(query, admin.page_size_max)
        return answering(Effect.map(
          Effect.flatMap(session, (identity) => sessions.listOwn(admin, identity, window)),
          (found) => paged(found, (one) => sessionObject(one, found.current), window)
        ))
      })
      .handle("revokeOwnSession", ({ params: { id } }) =>
        answering(Effect.gen(function*() {
          const { isCurrent } = yield* sessions.revokeOwn(yield* session, id, yield* requester)
          if (isCurrent) yield* ended
        }))))
}
