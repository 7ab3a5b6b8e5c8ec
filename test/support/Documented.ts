import addFormats from "ajv-formats"
import { Ajv2020 } from "ajv/dist/2020.js"

/* Compares answers with an OpenAPI document, by a JSON Schema validator of a third party. */

/** An OpenAPI document, parsed. */
export interface OpenApiDocument {
  readonly paths: { readonly [pattern: string]: { readonly [method: string]: Operation } }
  readonly components: { readonly [kind: string]: { readonly [name: string]: unknown } }
}

/** What the document says about a route. */
export interface Operation {
  readonly operationId: string
  readonly responses: { readonly [status: string]: unknown }
}

/** An answer as it was received. */
export interface Received {
  readonly method: string
  /** The path in the form of the document: `/api/orders/{id}`. */
  readonly pattern: string
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly text: string
}

interface Response {
  readonly headers?: { readonly [name: string]: { readonly required?: boolean; readonly schema: object } }
  readonly content?: { readonly [mediaType: string]: unknown }
}

const escaped = (step: string): string => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1"))

/** Returns a place in a document, in the form that references have. */
const pointer = (steps: ReadonlyArray<string>): string => `#${steps.map((step) => `/${escaped(step)}`).join("")}`

const methods = new Set(["get", "post", "put", "patch", "delete"])

/** Returns the places of all schemas in a document, wherever OpenAPI allows a schema. */
export const schemasOf = (document: OpenApiDocument): ReadonlyArray<ReadonlyArray<string>> => {
  const found: Array<ReadonlyArray<string>> = Object.keys(document.components["schemas"] ?? {}).map((name) => [
    "components",
    "schemas",
    name
  ])
  const look = (value: unknown, steps: ReadonlyArray<string>): void => {
    if (typeof value !== "object" || value === null) return
    for (const [name, member] of Object.entries(value)) {
      if (name === "schema") found.push([...steps, name])
      else look(member, [...steps, name])
    }
  }
  look(document.paths, ["paths"])
  look(document.components["responses"], ["components", "responses"])
  return found
}

/** Returns all routes of a document. */
export const operationsOf = ({ paths }: OpenApiDocument) =>
  Object.entries(paths).flatMap(([pattern, of]) =>
    Object.entries(of).filter(([method]) => methods.has(method)).map(([method, operation]) => ({
      method: method.toUpperCase(),
      pattern,
      operation
    }))
  )

const name = "document"

/** Compiles the schemas of a document. An unknown keyword, or an id that occurs twice, is an error. */
export const makeDocumented = (document: OpenApiDocument) => {
  const ajv = new Ajv2020({ strict: true, allErrors: true })
  // The module is CommonJS, and its types do not describe all that it exports.
  const formats = addFormats as unknown as typeof addFormats.default
  formats(ajv)
  // The validator treats the document as one large schema, in which the members of the document have no meaning.
  ajv.addVocabulary(Object.keys(document))
  ajv.addSchema(document, name)

  const compile = (steps: ReadonlyArray<string>) => {
    const known = ajv.getSchema(`${name}${pointer(steps)}`)
    if (known === undefined) throw new Error(`there is no schema at ${pointer(steps)}`)
    return known
  }
  const misfit = (steps: ReadonlyArray<string>, value: unknown): string | undefined => {
    const check = compile(steps)
    return check(value) === true ? undefined : ajv.errorsText(check.errors)
  }
  const resolved = (value: unknown, steps: ReadonlyArray<string>): readonly [Response, ReadonlyArray<string>] => {
    const reference = (value as { readonly $ref?: string }).$ref
    if (reference === undefined) return [value as Response, steps]
    const to = reference.slice(2).split("/")
    return [document.components[to[1] ?? ""]?.[to[2] ?? ""] as Response, to]
  }

  /** Returns the parts of an answer that the document does not describe. */
  const faultOf = ({ headers, method, pattern, status, text }: Received): string | undefined => {
    const word = method.toLowerCase()
    const declared = document.paths[pattern]?.[word === "head" ? "get" : word]?.responses[status]
    if (declared === undefined) return `the status ${status} is not declared`
    const [response, steps] = resolved(declared, ["paths", pattern, word, "responses", String(status)])
    for (const [header, { required = false, schema }] of Object.entries(response.headers ?? {})) {
      const given = headers[header.toLowerCase()]
      if (given === undefined) {
        if (required) return `the header ${header} is missing`
        continue
      }
      const value = (schema as { readonly type?: string }).type === "integer" ? Number(given) : given
      const fault = misfit([...steps, "headers", header, "schema"], value)
      if (fault !== undefined) return `the header ${header}: ${fault}`
    }
    if (response.content === undefined) return text === "" ? undefined : "a body is not declared"
    if (word === "head") return text === "" ? undefined : "HEAD has a body"
    const mediaType = headers["content-type"]?.split(";")[0]?.trim() ?? "none"
    if (!(mediaType in response.content)) return `the media type ${mediaType} is not declared`
    const value: unknown = mediaType === "application/json" ? JSON.parse(text) : text
    return misfit([...steps, "content", mediaType, "schema"], value)
  }

  return { compile, faultOf, misfit }
}
