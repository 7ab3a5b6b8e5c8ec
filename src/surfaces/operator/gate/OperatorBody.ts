import * as Effect from "effect/Effect"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { BadRequest, BodyRefused, Busy } from "../../../domain/OperatorError.ts"
import type { Request } from "../../../engine/http/Message.ts"
import { header } from "../../../engine/http/Message.ts"

/* The body of a request, before anybody reads what is in it, and the texts that may be in it. */

/** Whether both databases store a text. One of them refuses U+0000 and half of a surrogate pair. */
export const isStorable = (text: string): boolean => !text.includes("\u0000") && !/\p{Surrogate}/u.test(text)

/**
 * The fields of a form, or the parameters of a query. Undefined if the octets behind its percent signs are not UTF-8: nobody has typed
 * such a name, and what would stand in its place is another one.
 */
export const readFields = (text: string): URLSearchParams | undefined => {
  try {
    for (const [octets] of text.matchAll(/(?:%[0-9a-f]{2})+/gi)) decodeURIComponent(octets)
  } catch {
    return undefined
  }
  return new URLSearchParams(text)
}

/** The octets of a body. `maxBytes` is the bound that the refusal of a longer one names; `noun` is what the body is called. */
export const octetsOf = (
  { body }: Request,
  maxBytes: number,
  noun: "body" | "form"
): Effect.Effect<Buffer, OperatorError> =>
  Effect.mapError(body, ({ _tag }) => {
    if (_tag === "BodyTooLarge") return new BodyRefused({ maxBytes })
    return _tag === "BodyTooSlow"
      ? new BadRequest({ detail: `The ${noun} did not arrive in time.` })
      : new Busy({ retryAfter: 5 })
  })

/** Whether a body has this media type and is not compressed. */
export const isPlain = (request: Request, mediaType: RegExp): boolean => {
  const encoding = request.headers["content-encoding"]
  return (encoding === undefined || encoding === "identity") && mediaType.test(header(request, "content-type") ?? "")
}
