import { OpenApi } from "@effect/platform"
import type { Access } from "../admin/Access.ts"
import { sessionCookie } from "../admin/Credentials.ts"
import { Api } from "./Api.ts"
import { makeErrorResponses } from "./ErrorResponses.ts"
import { usualCodes } from "./Refusals.ts"
import type { Route } from "./Routes.ts"
import { routesOf } from "./Routes.ts"

/* The OpenAPI document, made from the declaration that serves the routes. */

const schemes = {
  session: {
    type: "apiKey",
    in: "cookie",
    name: sessionCookie,
    description: "Given by POST /api/session. Changes carry the session's csrfToken in the header X-CSRF-Token."
  },
  token: { type: "http", scheme: "bearer", description: "A token of POST /api/tokens, for programs." }
} as const

const roleWords: { readonly [A in Access]: string } = {
  public: "For anybody.",
  half: "For a session that still needs its second factor.",
  own: "For every operator, with a session.",
  viewer: "For every role.",
  operator: "For the roles operator and admin.",
  admin: "For the role admin."
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
  description: "The csrfToken of the session. Needed with a session, and not with a token."
} as const

const isChange = (method: string): boolean => method !== "GET"

/** The document, for a version of the service and the URL it is reached at. */
export const documentOf = (version: string, baseUrl: string): { readonly [member: string]: unknown } => {
  const spec = OpenApi.fromApi(Api)
  const errors = makeErrorResponses()
  const routes = new Map(routesOf(Api).map((route) => [`${route.method} ${route.pattern}`, route]))
  const paths = Object.entries(spec.paths).map(([path, methods]) => [
    path,
    Object.fromEntries(
      Object.entries(methods).map(([method, operation]) => {
        const route = routes.get(`${method.toUpperCase()} ${path}`)
        if (operation === undefined || route === undefined) return [method, operation]
        const needsCsrf = isChange(route.method) && !route.isWithoutCsrf
        return [method, {
          ...operation,
          operationId: route.name,
          description: roleWords[route.access],
          parameters: [...operation.parameters, ...needsCsrf ? [csrfHeader] : []],
          security: securityOf(route),
          responses: Object.fromEntries(
            Object.entries(operation.responses).map(([status, response]) => [
              status,
              Number(status) < 400 ? response : errors.referTo(status, response, usualCodes)
            ])
          )
        }]
      })
    )
  ])
  // Requests are decoded before the declaration sees them, so its own error of decoding is never sent.
  const { HttpApiDecodeError: _, Issue: __, PropertyKey: ___, ...schemas } = spec.components.schemas
  return {
    ...spec,
    info: { ...spec.info, version, license: { name: "MIT", identifier: "MIT" } },
    servers: [{ url: baseUrl }],
    security: [],
    components: { schemas, responses: errors.all(), securitySchemes: schemes },
    paths: Object.fromEntries(paths)
  }
}
