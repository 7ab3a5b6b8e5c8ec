import type { OperatorCode } from "../../domain/OperatorProblem.ts"
import { operatorCodes } from "../../domain/OperatorProblem.ts"

/*
 * The error responses of the document. Each set of codes is one response, and every route that may answer with these
 * codes refers to that response.
 */

const titles: { readonly [status: string]: string } = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  409: "Conflict",
  413: "BodyTooLarge",
  415: "UnsupportedMediaType",
  429: "RateLimited",
  500: "Internal",
  502: "SignerFailed",
  503: "Busy"
}

const camel = (code: string): string => code.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())

const isCode = (text: unknown): text is OperatorCode => operatorCodes.some(({ code }) => code === text)

/** Returns all codes that a schema of errors names, at any depth. */
const codesIn = (schema: unknown): ReadonlyArray<OperatorCode> => {
  if (Array.isArray(schema)) return schema.flatMap(codesIn)
  if (isCode(schema)) return [schema]
  return typeof schema === "object" && schema !== null ? Object.values(schema).flatMap(codesIn) : []
}

const retryAfter = {
  "Retry-After": { required: true, schema: { type: "integer" }, description: "Try again after this many seconds." }
} as const

const responseOf = (status: string, codes: ReadonlyArray<OperatorCode>) => ({
  description: codes.join(", "),
  ...(status === "429" || status === "503" ? { headers: retryAfter } : {}),
  content: {
    "application/json": {
      schema: {
        type: "object",
        required: ["error", "message"],
        properties: {
          error: { type: "string", enum: codes },
          message: { type: "string", description: "A sentence for people. It may change." }
        },
        additionalProperties: false
      },
      example: { error: codes[0], message: "A sentence that says what was wrong." }
    }
  }
})

/** Collects the error responses of a document. */
export const makeErrorResponses = () => {
  const known = new Map<string, ReturnType<typeof responseOf>>()
  return {
    /** Returns the reference to a response. `usual` lists the codes that every route may send with this status. */
    referTo: (status: string, schema: unknown, usual: ReadonlyArray<OperatorCode>): { readonly $ref: string } => {
      const codes = [...new Set(codesIn(schema))].sort()
      const own = codes.filter((code) => !usual.includes(code))
      const name = [titles[status] ?? `Status${status}`, ...own.map(camel)].join("")
      known.set(name, responseOf(status, codes))
      return { $ref: `#/components/responses/${name}` }
    },
    all: () => Object.fromEntries([...known].sort(([one], [other]) => one < other ? -1 : 1))
  }
}
