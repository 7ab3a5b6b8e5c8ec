import * as Effect from "effect/Effect"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { BadRequest, BodyRefused, Busy } from "../../../domain/OperatorError.ts"
import type { Request } from "../../../engine/http/Message.ts"
import { header, isUncoded } from "../../../engine/http/Message.ts"

/* Reads the octets of a request body, and checks which texts it may contain. */

/** Returns whether both kinds of database can store a text. One kind refuses U+0000 and half of a surrogate pair. */
export const isStorable = (text: string): boolean => !text.includes("\u0000") && !/\p{Surrogate}/u.test(text)

/**
 * Returns the fields of a form, or the parameters of a query. Returns undefined if the percent-encoded octets are not
 * UTF-8, because replacement characters would turn one name into a different one.
 */
export const readFields = (text: string): URLSearchParams | undefined => {
  try {
    for (const [octets] of text.matchAll(/(?:%[0-9a-f]{2})+/gi)) decodeURIComponent(octets)
  } catch {
    return undefined
  }
  return new URLSearchParams(text)
}

/**
 * Returns the octets of a body. If the body is longer than `maxBytes`, the refusal names that limit. `noun` is the word
 * for the body.
 */
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

/** Returns whether a body has this media type and is not compressed. */
export const isPlain = (request: Request, mediaType: RegExp): boolean =>
  isUncoded(request) && mediaType.test(header(request, "content-type") ?? "")
