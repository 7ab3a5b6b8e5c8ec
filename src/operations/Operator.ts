import type { ClientFacts } from "../kernel/queue/Job.ts"

/** The ways an operator acts by. */
export type OperatorSurface = "api" | "ui" | "cli"

/** Who acts for the organisation: a person at the command line or in the panel. `id` is a claim, not a proof. */
export interface Operator {
  readonly kind: "cli" | "admin"
  readonly id: string | undefined
  /** What the request said of its sender; there is none at the command line. */
  readonly client?: ClientFacts
  /** The name of the API token it came with. */
  readonly token?: string
  /** By which way; the command line where nothing is said. */
  readonly surface?: OperatorSurface
}

/** An operator at the command line. */
export interface AtKeyboard extends Operator {
  readonly kind: "cli"
}

/** The operator as recorded in an audit row. */
export type Actor = ReturnType<typeof actorOf<Operator>>

/** See {@link Actor}. Without a request nothing is said of one: what else is known of the row stays. */
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

/** The operator as a log record names it. */
export const actorFields = ({ id, surface = "cli" }: Operator) => ({ username: id, surface })
