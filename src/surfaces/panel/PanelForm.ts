import * as Effect from "effect/Effect"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { BadRequest, MediaTypeRefused } from "../../domain/OperatorError.ts"
import type { Request } from "../../engine/http/Message.ts"
import { isPlain, isStorable, octetsOf, readFields } from "../operator/gate/OperatorBody.ts"

/* The fields of a form and the parameters of a page, as a browser sends them. */

const formType = /^application\/x-www-form-urlencoded[ \t]*(?:;|$)/i
const mostFields = 50

const unstorable = (what: string, name: string) =>
  new BadRequest({ detail: `The ${what} ${JSON.stringify(name.slice(0, 64))} has a character that cannot be stored.` })

/** Returns the parameters in a request target with this path. Refuses a parameter that not every database can store. */
export const readQuery = (target: string, path: string): Effect.Effect<URLSearchParams, BadRequest> => {
  const query = readFields(target.slice(path.length))
  if (query === undefined) return new BadRequest({ detail: "The query is not UTF-8." })
  const refused = [...query].find(([name, value]) => !isStorable(name) || !isStorable(value))
  return refused === undefined ? Effect.succeed(query) : unstorable("parameter", refused[0])
}

/** Reads the form of a request. The form may have at most `maxBytes`. A field that occurs twice is refused. */
export const readForm = (request: Request, maxBytes: number): Effect.Effect<URLSearchParams, OperatorError> =>
  Effect.gen(function*() {
    const octets = yield* octetsOf(request, maxBytes, "form")
    if (octets.length === 0) return new URLSearchParams()
    if (!isPlain(request, formType)) return yield* new MediaTypeRefused()
    const refused = new BadRequest({ detail: "The form is not UTF-8." })
    const text = yield* Effect.try({
      try: () => new TextDecoder("utf-8", { fatal: true }).decode(octets),
      catch: () => refused
    })
    const form = readFields(text)
    if (form === undefined) return yield* refused
    const seen = new Set<string>()
    for (const [name, value] of form) {
      if (seen.has(name) || seen.size >= mostFields) {
        return yield* new BadRequest({
          detail: `The field ${JSON.stringify(name.slice(0, 64))} is there twice, or too much.`
        })
      }
      if (!isStorable(name) || !isStorable(value)) {
        return yield* unstorable("field", name)
      }
      seen.add(name)
    }
    return form
  })

/** Returns the trimmed text of a field. A blank field counts as absent. */
export const field = (form: URLSearchParams, name: string): string | undefined => {
  const text = form.get(name)?.trim()
  return text === undefined || text === "" ? undefined : text
}

/** Returns a secret field exactly as it was typed. */
export const secret = (form: URLSearchParams, name: string): string => form.get(name) ?? ""
