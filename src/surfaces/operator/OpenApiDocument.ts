import * as OpenApi from "effect/http-api/OpenApi"
import type * as JsonSchema from "effect/JsonSchema"
import * as Schema from "effect/Schema"
import { usualCodes } from "../../domain/OperatorProblem.ts"
import { declaration } from "./ActDocument.ts"
import type { Route } from "./ApiRoutes.ts"
import { routesOf } from "./ApiRoutes.ts"
import { makeErrorResponses } from "./ErrorResponses.ts"
import { sessionCookie } from "./gate/Credentials.ts"
import type { Access } from "./gate/OperatorChecks.ts"
import { isChange } from "./gate/OperatorChecks.ts"

/* Makes the OpenAPI document from the acts, from which the routes are also made. */

const schemes = {
  session: {
    type: "apiKey",
    in: "cookie",
    name: sessionCookie,
    description:
      "POST /api/session sets this cookie. Requests that change something send the csrfToken of the session in the header X-CSRF-Token."
  },
  token: { type: "http", scheme: "bearer", description: "A token for programs. POST /api/tokens makes such a token." }
} as const

const roleWords: { readonly [A in Access]: string } = {
  public: "Anybody may use this endpoint.",
  half: "This endpoint needs a session that has not yet given its second factor.",
  own: "This endpoint needs a session of an operator.",
  viewer: "Every role may use this endpoint.",
  operator: "The roles operator and admin may use this endpoint.",
  admin: "Only the role admin may use this endpoint."
}

const securityOf = (
  { access, isStepUp }: Route
): ReadonlyArray<{ readonly [scheme: string]: ReadonlyArray<string> }> => {
  if (access === "public") return []
  return access === "half" || access === "own" || isStepUp ? [{ session: [] }] : [{ session: [] }, { token: [] }]
}

const csrfHeader = {
  name: "X-CSRF-Token",
  in: "header",
  required: false,
  schema: { type: "string" },
  description:
    "The csrfToken of the session. A request with a session needs this header; a request with a token does not."
} as const

/** The header of an answer that was read from a standby. It states how old the answer may be, in milliseconds. */
export const lagHeader = "x-acme-svc-read-lag-ms"

const lagHeaders = {
  [lagHeader]: {
    schema: { type: "integer", minimum: 0 },
    description:
      "A standby of the database has answered. The answer may be old by at most this many milliseconds. Without this header the primary has answered."
  }
} as const

const successes: { readonly [status: string]: string } = {
  200: "The answer to the request.",
  201: "The record was created.",
  202: "The work has begun.",
  204: "The request succeeded."
}

/** Returns whether a route can send one of the errors that the declaration lists for every route. */
const mayAnswer = ({ access, method, payload }: Route, status: string): boolean => {
  if (status === "413") return isChange(method)
  if (status === "415") return payload !== undefined
  // A health probe needs no sign-in, and the sign-in route declares its own 401.
  return status !== "401" || access !== "public" || payload !== undefined
}

type Content = OpenApi.OpenApiSpecResponse["content"]

/** Returns the content of a list's file. Its rows have the same schema as the rows of the list's pages. */
const asJsonFile = (page: Content) => {
  const properties = page?.["application/json"]?.schema["properties"] as { readonly items?: unknown } | undefined
  return {
    "application/json": {
      schema: {
        type: "object",
        required: ["items"],
        properties: { items: properties?.items },
        additionalProperties: false
      }
    }
  }
}

/**
 * Returns the parameters of a query with the schemas of the decoded values. `OpenApi.fromApi` would describe the texts
 * in the query instead.
 */
const queryOf = ({ query }: Route): { readonly [name: string]: JsonSchema.JsonSchema } => {
  if (query === undefined) return {}
  const { schema } = Schema.toJsonSchemaDocument(Schema.toType(query))
  return schema["properties"] as { readonly [name: string]: JsonSchema.JsonSchema }
}

const parametersOf = (route: Route, parameters: ReadonlyArray<OpenApi.OpenAPISpecParameter>) => {
  const query = queryOf(route)
  return parameters.map((parameter) => {
    const schema: JsonSchema.JsonSchema = { ...parameter.in === "query" ? query[parameter.name] : parameter.schema }
    return { ...parameter, schema, description: schema["description"] }
  })
}

/** Returns whether a body is required. If all members of a body are optional, the body itself is optional. */
const isBodyNeeded = ({ payload }: Route): boolean => payload !== undefined && !Schema.is(payload)({})

/** Includes the annotations that only the document uses. */
const written: OpenApi.FromApiOptions = { includeAnnotationKey: (key) => key === "additionalProperties" }

/** Makes the document for a version of the service and its base URL. */
export const documentOf = (version: string, baseUrl: string): { readonly [member: string]: unknown } => {
  const spec = OpenApi.fromApi(declaration, written)
  const errors = makeErrorResponses()
  const contentOf = (path: string, { content }: { readonly content?: Content }): object => {
    if (content === undefined) return {}
    const page = spec.paths[path.replace(/\/export$/, "")]?.get?.responses[200]?.content
    return { content: "text/csv" in content ? { ...content, ...asJsonFile(page) } : content }
  }
  const shown = (route: Route, operation: OpenApi.OpenAPISpecOperation) => {
    const needsCsrf = isChange(route.method) && !route.isWithoutCsrf
    const { requestBody } = operation
    return {
      ...operation,
      operationId: route.name,
      description: roleWords[route.access],
      parameters: [...parametersOf(route, operation.parameters), ...needsCsrf ? [csrfHeader] : []],
      security: securityOf(route),
      ...(requestBody === undefined ? {} : { requestBody: { ...requestBody, required: isBodyNeeded(route) } }),
      responses: Object.fromEntries(
        Object.entries(operation.responses).filter(([status]) => mayAnswer(route, status)).map(([status, response]) => [
          status,
          Number(status) < 400
            ? {
              description: successes[status],
              ...route.mayLag === true ? { headers: lagHeaders } : {},
              ...contentOf(route.pattern, response)
            }
            : errors.referTo(status, response, usualCodes)
        ])
      )
    }
  }
  const paths: { [pattern: string]: { readonly [method: string]: object } } = {}
  for (const route of routesOf(declaration)) {
    const method = route.method.toLowerCase()
    const operation = spec.paths[route.pattern]?.[method as OpenApi.OpenAPISpecMethodName]
    if (operation !== undefined) paths[route.pattern] = { ...paths[route.pattern], [method]: shown(route, operation) }
  }
  return {
    ...spec,
    info: { ...spec.info, version, license: { name: "MIT", identifier: "MIT" } },
    servers: [{ url: baseUrl }],
    security: [],
    components: { schemas: spec.components.schemas, responses: errors.all(), securitySchemes: schemes },
    paths
  }
}
