import { appendFileSync } from "node:fs"
import createClient from "openapi-fetch"
import type { paths } from "./document.ts"

/* The service from the point of view of another party's program, with types that were made from its document. */

const needed = (name: string): string => {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set`)
  return value
}

/** The input that the run passes to this program. */
export const given = {
  baseUrl: needed("BASE_URL"),
  password: needed("PASSWORD"),
  /** Where every answer is recorded. */
  answers: needed("ANSWERS")
}

/**
 * The credentials of requests. A cookie that is `Secure` is kept by hand, because the service uses plain HTTP on
 * loopback.
 */
export interface Held {
  cookie?: string
  csrf?: string
  token?: string
}

const record = async (pattern: string, method: string, response: Response): Promise<void> => {
  const { headers, status } = response
  const text = await response.clone().text()
  const answer = { method, pattern, status, headers: Object.fromEntries(headers), text }
  appendFileSync(given.answers, `${JSON.stringify(answer)}\n`)
}

/**
 * Returns a client with a session, a token or nothing. When an answer begins or ends a session, the client begins or
 * ends its session.
 */
export const clientOf = (held: Held) => {
  const client = createClient<paths>({ baseUrl: given.baseUrl })
  client.use({
    onRequest: ({ request }) => {
      const { cookie, csrf, token } = held
      if (cookie !== undefined) request.headers.set("cookie", cookie)
      if (csrf !== undefined && !request.headers.has("x-csrf-token")) request.headers.set("x-csrf-token", csrf)
      if (token !== undefined) request.headers.set("authorization", `Bearer ${token}`)
      return request
    },
    onResponse: async ({ request, response, schemaPath }) => {
      const [cookie] = response.headers.getSetCookie()
      const pair = cookie?.split(";")[0]
      if (pair?.endsWith("=") === true) delete held.cookie
      else if (pair !== undefined) held.cookie = pair
      await record(schemaPath, request.method, response)
    }
  })
  return client
}

/** Sends a request that no type permits, with a method that the path does not accept. */
export const sendRaw = async (method: string, path: "/api/orders", held: Held): Promise<Response> => {
  const response = await fetch(`${given.baseUrl}${path}`, { method, headers: { cookie: held.cookie ?? "" } })
  await record(path, "GET", response)
  return response
}

interface Answered {
  readonly data?: unknown
  readonly error?: unknown
  readonly response: Response
}

/** Returns the data of an answer. Anything except a success ends the program. */
export const done = async <A extends Answered>(asked: Promise<A>): Promise<Exclude<A["data"], undefined>> => {
  const { data, error, response } = await asked
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${JSON.stringify(error)}`)
  return data as Exclude<A["data"], undefined>
}

interface Refusal {
  readonly error: string
  readonly message: string
}

/**
 * Checks that a request is refused as expected. `code` must be one of the codes that the document lists for the route;
 * otherwise this does not compile.
 */
export const refused = async <E extends Refusal>(
  asked: Promise<{ readonly error?: E; readonly response: Response }>,
  status: number,
  code: NoInfer<E["error"]>
): Promise<void> => {
  const { error, response } = await asked
  if (response.status !== status || error?.error !== code) {
    throw new Error(`${response.url}: ${response.status} ${JSON.stringify(error)} in place of ${status} ${code}`)
  }
}

/** Ends the program unless a condition holds. */
export const check: (holds: boolean, what: string) => asserts holds = (holds, what) => {
  if (!holds) throw new Error(what)
}
