import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Redacted from "effect/Redacted"
import type { Operator } from "../../../operations/Operator.ts"
import {
  operatorDetailObject,
  operatorObject,
  sessionObject,
  tokenObject
} from "../../../operations/operators/OperatorObjects.ts"
import * as operators from "../../../operations/operators/Operators.ts"
import * as operatorSessions from "../../../operations/operators/OperatorSessions.ts"
import { stepUp } from "../../../operations/operators/StepUp.ts"
import * as tokens from "../../../operations/operators/Tokens.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { Api } from "../Api.ts"
import { answering } from "../ApiRefusals.ts"
import { paged, windowOf } from "./Paging.ts"
import { operator, requester, session } from "./RequestCaller.ts"

/** Operators. Each change needs the caller's password first. */
export const operatorsHandlers = ({ admin }: Config) => {
  const afterStepUp = <E extends { readonly _tag: string; readonly message: string }, R>(
    password: string,
    act: (by: Operator) => Effect.Effect<unknown, E, R>
  ) =>
    answering(Effect.gen(function*() {
      yield* stepUp(admin, yield* session, Redacted.make(password), yield* requester)
      yield* act(yield* operator)
    }))
  return HttpApiBuilder.group(Api, "operators", (handlers) =>
    handlers
      .handle("listOperators", ({ query: { role, status, ...page } }) => {
        const window = windowOf(page, admin.page_size_max)
        return answering(
          Effect.map(operators.list({ role, status }, window), (found) => paged(found, operatorObject, window))
        )
      })
      .handle("readOperator", ({ params: { username } }) =>
        answering(Effect.map(operators.show(admin, username), operatorDetailObject)))
      .handle("listSessionsOf", ({ params: { username }, query }) => {
        const window = windowOf(query, admin.page_size_max)
        return answering(Effect.map(operatorSessions.sessionsOf(admin, username, window), (found) =>
          paged(found, (one) =>
            sessionObject(one), window)))
      })
      .handle("disableOperator", ({ params: { username }, payload: { password } }) =>
        afterStepUp(password, (by) =>
          operators.disable(by, username)))
      .handle("enableOperator", ({ params: { username }, payload: { password } }) =>
        afterStepUp(password, (by) =>
          operators.enable(by, username)))
      .handle("resetSecondFactor", ({ params: { username }, payload: { password } }) =>
        afterStepUp(password, (by) =>
          operators.resetTotp(by, username)))
      .handle("changeRole", ({ params: { username }, payload: { password, role } }) =>
        afterStepUp(password, (by) =>
          operators.setRole(by, username, role)))
      .handle("changeContact", ({ params: { username }, payload: { contact, password } }) =>
        afterStepUp(password, (by) =>
          operators.setContact(by, username, contact ?? undefined)))
      .handle("revokeSessionOf", ({ params: { id, username }, payload: { password } }) =>
        afterStepUp(password, (by) =>
          operatorSessions.revokeSessions(by, username, id)))
      .handle("revokeSessionsOf", ({ params: { username }, payload: { password } }) =>
        afterStepUp(password, (by) =>
          operatorSessions.revokeSessions(by, username))))
}

/** Tokens for programs. */
export const tokensHandlers = ({ admin }: Config) =>
  HttpApiBuilder.group(Api, "tokens", (handlers) =>
    handlers
      .handle("listTokens", ({ query: { user, ...page } }) => {
        const window = windowOf(page, admin.page_size_max)
        return answering(Effect.gen(function*() {
          const owner = yield* tokens.ownerListed(yield* session, user)
          return paged(yield* tokens.list(owner, window), tokenObject, window)
        }))
      })
      .handle("createToken", ({ payload: { allowedAddresses, password, user, ...asked } }) =>
        answering(Effect.gen(function*() {
          const { username } = yield* session
          // A stolen session must not become a token that lasts a year.
          yield* stepUp(admin, yield* session, Redacted.make(password), yield* requester)
          const made = yield* tokens.create(yield* operator, {
            ...asked,
            allowedAddresses: allowedAddresses ?? [],
            username: user ?? username
          })
          return { ...tokenObject(made.record), token: made.token }
        })))
      .handle(
        "revokeToken",
        ({ params: { id } }) =>
          answering(Effect.asVoid(Effect.flatMap(operator, (by) => tokens.revoke(by, id))))
      ))
