import { Effect } from "effect"
import type { Operator } from "../../../operations/Operator.ts"
import type { HalfIdentity, Identity, Requester, SessionIdentity } from "../../../operations/operators/Identity.ts"
import { operatorOf } from "../../../operations/operators/Identity.ts"
import { CurrentCaller } from "../CurrentCaller.ts"

/* Who sent the request, as operations take it. The checks let nobody else come this far. */

const unexpected = (kind: string | undefined) => Effect.dieMessage(`a handler was reached by ${kind ?? "nobody"}`)

/** What the request says of its sender. */
export const requester: Effect.Effect<Requester, never, CurrentCaller> = Effect.map(
  CurrentCaller,
  ({ client }) => ({ client, surface: "api" })
)

/** Who is half signed in. */
export const half: Effect.Effect<HalfIdentity, never, CurrentCaller> = Effect.flatMap(
  CurrentCaller,
  ({ sender }) => sender?.kind === "half" ? Effect.succeed(sender) : unexpected(sender?.kind)
)

/** Who is signed in. */
export const session: Effect.Effect<SessionIdentity, never, CurrentCaller> = Effect.flatMap(
  CurrentCaller,
  ({ sender }) => sender?.kind === "session" ? Effect.succeed(sender) : unexpected(sender?.kind)
)

/** An operator or a token of one. */
export const identity: Effect.Effect<Identity, never, CurrentCaller> = Effect.flatMap(
  CurrentCaller,
  ({ sender }) => sender === undefined || sender.kind === "half" ? unexpected(sender?.kind) : Effect.succeed(sender)
)

/** The operator who acts, as operations and audit rows name them. */
export const operator: Effect.Effect<Operator, never, CurrentCaller> = Effect.zipWith(identity, requester, operatorOf)
