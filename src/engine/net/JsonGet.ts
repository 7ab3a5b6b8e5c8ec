import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { oneLine } from "../HiddenText.ts"
import type { WebRequest } from "./Web.ts"
import { Web } from "./Web.ts"

/** One GET of a JSON document from a service that the operator trusts. */
export type JsonGetRequest =
  & Required<Omit<WebRequest, "method" | "body" | "rootsKey" | "withinMillis">>
  & Pick<WebRequest, "rootsKey">

/** The answer. */
export interface JsonAnswer {
  readonly status: number
  /** The body as JSON. Absent if the body is not JSON and the status is not a success. */
  readonly json: unknown
  /** The beginning of the body, on one line. It may contain anything, even a secret that the request contained. */
  readonly excerpt: string
}

/** There was no answer, or the answer could not be read. `detail` contains neither the URL nor any header. */
export class JsonGetFailed extends Data.TaggedError("JsonGetFailed")<{
  readonly detail: string
  /** The beginning of a body that is not JSON, as in {@link JsonAnswer}. */
  readonly excerpt?: string
}> {}

const excerptOctets = 2048

const excerptOf = (body: Buffer): string => oneLine(body.subarray(0, excerptOctets).toString("utf8"))

const failed = (detail: string, excerpt = "") => new JsonGetFailed({ detail, excerpt })

// The parser's own message is not used, because it quotes a part of the document.
const parse = (body: Buffer): Effect.Effect<unknown, JsonGetFailed> =>
  Effect.try({
    try: (): unknown => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)),
    catch: () => failed("answers with something that is not JSON", excerptOf(body))
  })

const get = (web: Web["Service"], request: JsonGetRequest): Effect.Effect<JsonAnswer, JsonGetFailed> =>
  Effect.gen(function*() {
    const headers = { Accept: "application/json", ...request.headers }
    const { body, status, truncated } = yield* Effect.mapError(
      web.send({ ...request, headers, method: "GET" }),
      ({ detail }) => failed(detail)
    )
    const excerpt = excerptOf(body)
    if (status < 200 || status > 299) {
      const json = truncated ? undefined : yield* Effect.orElseSucceed(parse(body), () => undefined)
      return { status, json, excerpt }
    }
    if (truncated) return yield* failed(`answers with more than ${request.maxBytes} bytes`)
    return { status, json: yield* parse(body), excerpt }
  })

/** Gets JSON documents from services of the operator, such as inventories. */
export class JsonGet extends Context.Service<JsonGet, {
  readonly get: (request: JsonGetRequest) => Effect.Effect<JsonAnswer, JsonGetFailed>
}>()("acme/engine/net/JsonGet") {
  static readonly layer: Layer.Layer<JsonGet, never, Web> = Layer.effect(
    this,
    Effect.map(Web, (web) => ({ get: (request) => get(web, request) }))
  )
}
