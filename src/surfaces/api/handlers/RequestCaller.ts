import * as Effect from "effect/Effect"
import type { Operator } from "../../../operations/Operator.ts"
import type { Identity, Requester, SessionIdentity } from "../../../operations/operators/Identity.ts"
import { operatorOf } from "../../../operations/operators/Identity.ts"
import { CurrentCaller } from "../CurrentCaller.ts"

/* The sender of the request, in the forms that operations take. The checks have refused everybody else. */

const unexpected = (kind: string | undefined) =>
  Effect.die(new Error(`a request of ${kind ?? "nobody"} reached a handler that is not for it`))

/** The facts of the request about its sender. */
export const requester: Effect.Effect<Requester, never, CurrentCaller> = Effect.map(
  CurrentCaller,
  ({ client, held }) => ({ client, surface: "api", held })
)

/** The operator who is signed in. */
export const session: Effect.Effect<SessionIdentity, never, CurrentCaller> = Effect.flatMap(
  CurrentCaller,
  ({ sender }) => sender?.kind === "session" ? Effect.succeed(sender) : unexpected(sender?.kind)
)

/** The operator or the token that sent the request. */
const identity: Effect.Effect<Identity, never, CurrentCaller> = Effect.flatMap(
  CurrentCaller,
  ({ sender }) => sender === undefined || sender.kind === "half" ? unexpected(sender?.kind) : Effect.succeed(sender)
)

/** The operator who acts, in the form of operations and audit rows. */
export const operator: Effect.Effect<Operator, never, CurrentCaller> = Effect.zipWith(identity, requester, operatorOf)
