import * as Data from "effect/Data"

/** How long a link with which an operator sets a password is good, in seconds. */
export const linkSeconds = 900

/**
 * Why a link is refused. `elsewhere`: the request came from another machine. `proxied`: a proxy has passed it on.
 * `unknown`: no operator has such a link, or a newer one has replaced it. `used` and `expired`: it was good. `disabled`:
 * its operator is disabled.
 */
export type LinkRefusal = "elsewhere" | "proxied" | "unknown" | "used" | "expired" | "disabled"

/** A link was refused. `username` is the operator's name, if the link is that of an operator. */
export class LinkRefused extends Data.TaggedError("LinkRefused")<{
  readonly reason: LinkRefusal
  readonly username: string | undefined
}> {}
