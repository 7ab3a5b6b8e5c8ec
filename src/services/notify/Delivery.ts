import * as Data from "effect/Data"
import type { NotificationBackend, Payload, Scope } from "../../domain/Notification.ts"

/** What an entry has to deliver. */
export interface Delivery {
  readonly scope: Scope
  readonly backend: NotificationBackend
  readonly entry: string
  readonly fields: Payload
  /** The only recipients of a mail, because the others have it. */
  readonly to?: ReadonlyArray<string> | undefined
}

/** The receiver's answer, in a few words that are safe to show. */
export interface Receipt {
  readonly answer: string
  readonly status?: number | undefined
}

/** The delivery failed. `detail` never contains a path, a query, a header value or a password. */
export class DeliveryRefused extends Data.TaggedError("DeliveryRefused")<{
  readonly detail: string
  /**
   * `retry` means that a later attempt may succeed, and `never` that another attempt would fail too. `ended` means that
   * some recipients have received the message, and the others will never receive it, except those in `left`.
   */
  readonly hope: "retry" | "never" | "ended"
  /** The recipients of a mail that may receive it later, while the others have it. */
  readonly left?: ReadonlyArray<string>
  readonly status?: number | undefined
  readonly exitCode?: number | undefined
  /** The number of seconds that the receiver asked to wait before the next attempt. */
  readonly afterSeconds?: number | undefined
}> {}

/** The configuration of this process has no such entry. */
export class TargetMissing extends Data.TaggedError("TargetMissing") {}

/** Returns the failure for a template that cannot be rendered. Another attempt would fail in the same way. */
export const unrendered = ({ message }: { readonly message: string }): DeliveryRefused =>
  new DeliveryRefused({ detail: message, hope: "never" })
