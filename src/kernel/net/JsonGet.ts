import { Context, Data, Effect, Layer } from "effect"
import type { WebRequest } from "./Web.ts"
import { Web } from "./Web.ts"

/** One GET of a JSON document from a service the operator trusts. */
export type JsonGetRequest = Required<Omit<WebRequest, "method" | "body">>

/** What came back. The body of anything but a 2xx is not looked at. */
export interface JsonAnswer {
  readonly status: number
  readonly json: unknown
}

/** No answer, or none that could be read. `detail` names neither URL nor headers. */
export class JsonGetFailed extends Data.TaggedError("JsonGetFailed")<{ readonly detail: string }> {}

const failed = (detail: string) => new JsonGetFailed({ detail })

// The parser's own words would quote the document.
const parse = (body: Buffer): Effect.Effect<unknown, JsonGetFailed> =>
  Effect.try({
    try: (): unknown => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)),
    catch: () => failed("answers with something that is no JSON")
  })

const get = (web: Web["Type"], request: JsonGetRequest): Effect.Effect<JsonAnswer, JsonGetFailed> =>
  Effect.gen(function*() {
    const headers = { Accept: "application/json", ...request.headers }
    const { body, status, truncated } = yield* Effect.mapError(
      web.send({ ...request, headers, method: "GET" }),
      ({ detail }) => failed(detail)
    )
    if (status < 200 || status > 299) return { status, json: undefined }
    if (truncated) return yield* failed(`answers with more than ${request.maxBytes} bytes`)
    return { status, json: yield* parse(body) }
  })

/** Questions to inventories. */
export class JsonGet extends Context.Tag("acme/kernel/net/JsonGet")<JsonGet, {
  readonly get: (request: JsonGetRequest) => Effect.Effect<JsonAnswer, JsonGetFailed>
}>() {
  static readonly layer: Layer.Layer<JsonGet, never, Web> = Layer.effect(
    this,
    Effect.map(Web, (web) => ({ get: (request) => get(web, request) }))
  )
}
