import * as Effect from "effect/Effect"
import type { ClientFacts } from "../domain/words/JobKind.ts"
import { emit } from "../domain/words/Log.ts"

/** The surfaces that an operator can use. */
export type OperatorSurface = "api" | "ui" | "cli"

/**
 * Who acts for the organisation: a person at the command line or in the panel. `id` is the name that this person
 * claims, not a proof of identity.
 */
export interface Operator {
  readonly kind: "cli" | "admin"
  readonly id: string | undefined
  /** The facts about the sender of the request. At the command line there is no request. */
  readonly client?: ClientFacts
  /** The name of the API token of the request. */
  readonly token?: string
  /** The surface that the operator uses. Absent at the command line. */
  readonly surface?: OperatorSurface
}

/** An operator at the command line. */
export interface AtKeyboard extends Operator {
  readonly kind: "cli"
}

/** The operator as recorded in an audit row. */
export type Actor = ReturnType<typeof actorOf<Operator>>

/**
 * Returns the {@link Actor}. If there is no request, the members about the request are left out, so that they do not
 * overwrite other facts of the row.
 */
export const actorOf = <O extends Operator>({ client, id, kind, token }: O) => ({
  actorKind: kind as O["kind"],
  actorId: id,
  ...(client === undefined ? {} : {
    clientIp: client.ip,
    clientPtr: client.ptr,
    userAgent: client.user_agent,
    requestId: client.request_id
  }),
  ...(token === undefined ? {} : { token })
})

/** Returns the operator in the form that log records use. */
export const actorFields = ({ id, surface = "cli" }: Operator) => ({ username: id, surface })

/** What an operator wants to delete. */
interface Deletable {
  readonly account_id?: string
  readonly kid?: string
  readonly order_id?: string
}

/** Adds a log record to a deletion that is refused because certificates can still be used. */
export const tellingRefusal =
  (operator: Operator, { account_id, kid, order_id }: Deletable) =>
  <A, E extends { readonly _tag: string }, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.tapError(self, ({ _tag }) =>
      _tag === "LiveCertificates"
        ? emit("admin_delete_refused", {
          ...actorFields(operator),
          account_id,
          order_id,
          kid,
          reason: "live_certificates"
        })
        : Effect.void)
