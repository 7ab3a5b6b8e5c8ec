import { documentOf } from "../../src/surfaces/operator/OpenApiDocument.ts"
import { tableOf } from "./Markdown.ts"

/* The reference of the API, made from the document that the service serves. */

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly description?: string
  readonly default?: unknown
  readonly enum?: ReadonlyArray<string | boolean>
  readonly items?: Schema
  readonly anyOf?: ReadonlyArray<Schema>
  readonly properties?: { readonly [member: string]: Schema }
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: boolean
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly description?: string
  readonly schema: Schema
}

interface Response {
  readonly $ref?: string
  readonly headers?: { readonly [name: string]: unknown }
  readonly content?: { readonly [mediaType: string]: { readonly schema: Schema } }
}

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: ReadonlyArray<string>
  readonly parameters: ReadonlyArray<Parameter>
  readonly requestBody?: {
    readonly required: boolean
    readonly content: { readonly [mediaType: string]: { readonly schema: Schema } }
  }
  readonly responses: { readonly [status: string]: Response }
}

interface Document {
  readonly tags: ReadonlyArray<{ readonly name: string; readonly description: string }>
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } }
  readonly components: {
    readonly schemas: { readonly [name: string]: Schema }
    readonly responses: { readonly [name: string]: { readonly description: string } }
  }
}

const document: Document = JSON.parse(JSON.stringify(documentOf("", "")))

const nameOf = (reference: string): string => reference.slice(reference.lastIndexOf("/") + 1)

/** Names that the platform gives to types that are not objects of this service. */
const plain: { readonly [name: string]: string } = { Int: "integer" }

/** Returns a type in words. Objects with a name become links. */
const typeOf = ({ $ref, anyOf, enum: words, format, items, properties, type }: Schema): string => {
  if ($ref !== undefined) {
    const name = nameOf($ref)
    return plain[name] ?? `[${name}](#${name.toLowerCase()})`
  }
  if (words !== undefined) return words.map((word) => `\`${word}\``).join(", ")
  if (anyOf !== undefined) return anyOf.map(typeOf).join(" or ")
  if (items !== undefined) return `list of ${typeOf(items)}`
  if (properties !== undefined) {
    return `{ ${Object.entries(properties).map(([name, of]) => `${name}: ${typeOf(of)}`).join("; ")} }`
  }
  return format === "date-time" ? "time" : type ?? "anything"
}

const membersOf = ({ properties = {}, required = [] }: Schema): string =>
  tableOf(
    ["Member", "Type", "Always there", "Meaning"],
    Object.entries(properties).map(([name, schema]) => [
      `\`${name}\``,
      typeOf(schema),
      required.includes(name) ? "yes" : "",
      schema.description ?? ""
    ])
  )

const usual = ["400", "401", "403", "404", "405", "413", "415", "429", "500", "503"]

/** Returns the error codes of this route in addition to those of every route. */
const ownCodes = ({ responses }: Operation): ReadonlyArray<string> =>
  Object.entries(responses).flatMap(([status, { $ref }]) => {
    if ($ref === undefined) return []
    const { description: codes } = document.components.responses[nameOf($ref)] ?? { description: "" }
    const common = usual.includes(status) ? commonOf(status) : []
    return codes.split(", ").filter((code) => !common.includes(code)).map((code) => `${status} \`${code}\``)
  })

const commonOf = (status: string): ReadonlyArray<string> => {
  const all = Object.values(document.paths).flatMap(Object.values<Operation>).flatMap(({ responses }) => {
    const reference = responses[status]?.$ref
    return reference === undefined
      ? []
      : [document.components.responses[nameOf(reference)]?.description.split(", ") ?? []]
  })
  return (all[0] ?? []).filter((code) => all.every((codes) => codes.includes(code)))
}

const answersOf = ({ responses }: Operation): string =>
  Object.entries(responses).filter(([status]) => Number(status) < 400).map(
    ([status, { content = {}, headers = {} }]) => {
      const bodies = Object.entries(content).map(([mediaType, { schema }]) =>
        mediaType === "application/json" ? typeOf(schema) : `\`${mediaType}\``
      )
      const named = Object.keys(headers).map((header) => `, and with \`${header}\` if a standby has answered`).join("")
      return `${bodies.length === 0 ? `${status} without a body` : `${status} with ${bodies.join(", or ")}`}${named}`
    }
  ).join("; or ")

const routePart = (method: string, path: string, operation: Operation): string => {
  const { description, parameters, requestBody, summary } = operation
  const shown = parameters.filter((parameter) => parameter.in !== "header")
  const body = requestBody?.content["application/json"]?.schema
  const codes = ownCodes(operation)
  return [
    `#### ${method.toUpperCase()} ${path}`,
    `${summary}. ${description}`,
    ...shown.length === 0 ? [] : [tableOf(
      ["Parameter", "Type", "Default", "Meaning"],
      shown.map(({ description: meaning = "", name, schema }) => [
        `\`${name}\``,
        typeOf(schema),
        schema.default === undefined ? "" : String(schema.default),
        meaning
      ])
    )],
    ...body === undefined ? [] : [
      requestBody?.required === true ? "The body:" : "The body, which you may leave out:",
      membersOf(body)
    ],
    `The answer is ${answersOf(operation)}.${
      codes.length === 0 ? "" : ` Errors specific to this endpoint: ${codes.join(", ")}.`
    }`
  ].join("\n\n")
}

/** Returns the reference of `docs/reference/api-reference.md`: every route and every object of the OpenAPI document. */
export const renderApi = (): string =>
  [
    "## Routes",
    ...document.tags.flatMap(({ description, name }) => [
      `### ${name}`,
      description,
      ...Object.entries(document.paths).flatMap(([path, methods]) =>
        Object.entries(methods).filter(([, { tags }]) => tags.includes(name)).map(([method, operation]) =>
          routePart(method, path, operation)
        )
      )
    ]),
    "## Errors of every route",
    tableOf(
      ["Status", "Codes"],
      usual.map((status) => [status, commonOf(status).map((code) => `\`${code}\``).join(", ")])
    ),
    "## Objects",
    ...Object.entries(document.components.schemas).filter(([name]) => plain[name] === undefined).toSorted((
      [one],
      [other]
    ) => one < other ? -1 : 1).flatMap(([name, schema]) => [
      `### ${name}`,
      ...schema.description === undefined ? [] : [schema.description],
      membersOf(schema)
    ])
  ].join("\n\n")
