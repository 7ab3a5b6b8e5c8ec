import * as Data from "effect/Data"
import type { NotificationBackend, Payload, Scope } from "../../domain/Notification.ts"

/** What one entry is to be told. */
export interface Delivery {
  readonly scope: Scope
  readonly backend: NotificationBackend
  readonly entry: string
  readonly fields: Payload
}

/** The receiver's answer, in a few words that are safe to show. */
export interface Receipt {
  readonly answer: string
  readonly status?: number | undefined
}

/** The receiver was not told. `detail` holds no path, query, header value or password. */
export class DeliveryRefused extends Data.TaggedError("DeliveryRefused")<{
  readonly detail: string
  /** `retry`: it may be told later. `never`: another attempt is refused too. `ended`: some recipients were told, and the others never will be. */
  readonly hope: "retry" | "never" | "ended"
  readonly status?: number | undefined
  readonly exitCode?: number | undefined
  /** How long the receiver asked to be left alone. */
  readonly afterSeconds?: number | undefined
}> {}

/** The configuration of this process has no such entry. */
export class TargetMissing extends Data.TaggedError("TargetMissing") {}

/** The failure for a template that cannot be rendered. Another attempt would fail in the same way. */
export const unrendered = ({ message }: { readonly message: string }): DeliveryRefused =>
  new DeliveryRefused({ detail: message, hope: "never" })
