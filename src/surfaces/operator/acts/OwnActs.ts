import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { sessionObject } from "../../../operations/operator/identity/OperatorObjects.ts"
import * as ownAccount from "../../../operations/operator/identity/OwnAccount.ts"
import * as secondFactor from "../../../operations/operator/identity/SecondFactor.ts"
import * as sessions from "../../../operations/operator/identity/Sessions.ts"
import { act, noun } from "../Act.ts"
import { ActingSession, Asking, Configured, paged } from "../Acting.ts"
import { key, optional, paging, secret } from "../Field.ts"
import { pageOf } from "../schemas/Common.ts"
import { RecoveryCodes, SecondFactor, SessionRow, TotpSecret } from "../schemas/OperatorSchemas.ts"
import { mail } from "../TextFields.ts"

/*
 * Declares the acts about the caller's own account (docs/contribute/decisions/admin.md, "Sign-in"). They have no
 * commands. An act that requires the password checks it as part of the change.
 */

const password = secret("The caller's own password.")
const admin = Effect.map(Configured.config, ({ admin }) => admin)

const readSecondFactor = act({
  id: "readSecondFactor",
  does: "Show the caller's second factor",
  access: "own",
  input: {},
  output: SecondFactor,
  errors: [],
  run: () => Effect.flatMap(ActingSession, secondFactor.status),
  http: { route: "GET /api/mfa" }
})

/** Begins to enrol a second factor. */
export const beginEnrolment = act({
  id: "beginEnrolment",
  does: "Begin to enrol a new second factor; the present one stays valid until the enrolment is complete",
  access: "own",
  input: { password },
  output: TotpSecret,
  errors: ["step_up_failed", "mfa_not_pending"],
  run: ({ password }) =>
    Effect.gen(function*() {
      const { requester } = yield* Asking
      return yield* secondFactor.beginEnrolment(
        yield* admin,
        yield* ActingSession,
        Redacted.make(password),
        requester
      )
    }),
  http: { route: "POST /api/mfa/totp", status: 201 }
})

/** Completes the enrolment of a second factor. */
export const confirmEnrolment = act({
  id: "confirmEnrolment",
  does: "Complete the enrolment; new recovery codes are shown once",
  access: "own",
  input: { code: secret("A code of the authenticator, or a recovery code.") },
  output: RecoveryCodes,
  errors: ["invalid_code", "mfa_not_pending"],
  run: ({ code }) =>
    Effect.gen(function*() {
      const { requester } = yield* Asking
      return {
        recoveryCodes: yield* secondFactor.confirmEnrolment(yield* admin, yield* ActingSession, code, requester)
      }
    }),
  http: { route: "POST /api/mfa/totp/confirm" }
})

/** Turns the second factor off. */
export const disableSecondFactor = act({
  id: "disableSecondFactor",
  does: "Turn the caller's second factor off",
  access: "own",
  input: { password },
  output: Schema.Void,
  errors: ["step_up_failed", "mfa_required"],
  run: ({ password }) =>
    Effect.gen(function*() {
      const { requester } = yield* Asking
      yield* secondFactor.disable(yield* admin, yield* ActingSession, Redacted.make(password), requester)
    }),
  http: { route: "DELETE /api/mfa/totp", status: 204 }
})

/** Replaces the recovery codes. */
export const reissueRecoveryCodes = act({
  id: "reissueRecoveryCodes",
  does: "Replace the recovery codes; the new ones are shown once",
  access: "own",
  input: { password },
  output: RecoveryCodes,
  errors: ["step_up_failed", "mfa_not_enrolled"],
  run: ({ password }) =>
    Effect.gen(function*() {
      const { requester } = yield* Asking
      const given = Redacted.make(password)
      return {
        recoveryCodes: yield* secondFactor.reissueCodes(yield* admin, yield* ActingSession, given, requester)
      }
    }),
  http: { route: "POST /api/mfa/recovery-codes" }
})

/** Changes the caller's password. */
export const changeOwnPassword = act({
  id: "changeOwnPassword",
  does: "Change the caller's password, and end every other session",
  access: "own",
  input: { currentPassword: secret("The present password."), newPassword: secret("The new password.") },
  output: Schema.Void,
  errors: ["weak_password", "step_up_failed"],
  run: ({ currentPassword, newPassword }) =>
    Effect.gen(function*() {
      const { requester } = yield* Asking
      const passwords = { current: Redacted.make(currentPassword), chosen: Redacted.make(newPassword) }
      yield* ownAccount.changePassword(yield* Configured.config, yield* ActingSession, passwords, requester)
    }),
  http: { route: "POST /api/account/password", status: 204 }
})

/** Changes the caller's contact. */
export const changeOwnContact = act({
  id: "changeOwnContact",
  does: "Change the address for the caller's notifications, or remove it",
  access: "own",
  input: {
    password,
    contact: optional(
      mail("A mail address. If this member is absent, null or empty, the contact is removed.")
    )
  },
  output: Schema.Void,
  errors: ["step_up_failed"],
  run: ({ contact, password }) =>
    Effect.gen(function*() {
      const { requester } = yield* Asking
      const change = { password: Redacted.make(password), contact }
      yield* ownAccount.changeContact(yield* Configured.config, yield* ActingSession, change, requester)
    }),
  http: { route: "POST /api/account/contact", status: 204 }
})

const listOwnSessions = act({
  id: "listOwnSessions",
  does: "List the caller's sessions, newest first",
  access: "own",
  input: paging,
  output: pageOf(SessionRow),
  errors: [],
  run: (window) =>
    Effect.gen(function*() {
      const session = yield* ActingSession
      const settings = yield* admin
      return yield* paged(
        window,
        (page) =>
          Effect.map(sessions.listOwn(settings, session, page), ({ current, items, total }) => ({
            items: items.map((one) => sessionObject(one, current)),
            total
          })),
        (shown) => shown
      )
    }),
  http: { route: "GET /api/account/sessions" }
})

/** Ends one of the caller's sessions. */
export const revokeOwnSession = act({
  id: "revokeOwnSession",
  does: "End one of the caller's sessions",
  access: "own",
  input: { id: key("The id of the session.") },
  output: Schema.Struct({ isCurrent: Schema.Boolean }),
  errors: [],
  run: ({ id }) =>
    Effect.gen(function*() {
      const { end, requester } = yield* Asking
      const ended = yield* sessions.revokeOwn(yield* ActingSession, id, requester)
      if (ended.isCurrent) yield* end
      return ended
    }),
  http: { route: "POST /api/account/sessions/{id}/revoke", status: 204 }
})

/** The acts about the caller's own account (`/api/mfa` and `/api/account`). */
export const ownActs = noun({
  name: "own",
  description: "The caller's own account: password, contact, second factor, sessions.",
  commands: {},
  acts: [
    readSecondFactor,
    beginEnrolment,
    confirmEnrolment,
    disableSecondFactor,
    reissueRecoveryCodes,
    changeOwnPassword,
    changeOwnContact,
    listOwnSessions,
    revokeOwnSession
  ]
})
