import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Tracer from "effect/Tracer"
import type { Loops } from "../Loops.ts"
import { supervised } from "../Supervised.ts"
import { emit } from "./EngineLog.ts"
import { tracing } from "./Tracing.ts"

/*
 * Exports spans to a collector: OTLP over HTTP, in JSON. The service implements this itself, because the packages for
 * it depend on thirty others. They also have an HTTP client of their own, which would bypass the service's proxies.
 */

/** How spans are exported. */
export interface OtlpOptions {
  /** Sends a JSON body to the collector. */
  readonly send: (body: string) => Effect.Effect<void, { readonly message: string }>
  /** `service.version` of the resource. */
  readonly version: string
  /** The percentage of requests and jobs whose spans are exported. */
  readonly samplePercent: number
}

/** The highest number of spans that wait to be sent. Further spans are dropped, and their number is logged. */
const mostWaiting = 8192
const batchSize = 512
const flushEvery = "2 seconds"
const sendWithin = "10 seconds"
const closeWithin = "3 seconds"

const kinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const
const statuses = { ok: 1, error: 2 } as const

// Ids must differ from each other, but they are not secret.
const hex = (octets: number): string => {
  let text = ""
  while (text.length < 2 * octets) text += Math.floor(Math.random() * 0x1_0000_0000).toString(16).padStart(8, "0")
  return text
}

/** The facts that the runtime passes about a new span. */
type Opened = Parameters<Tracer.Tracer["span"]>[0]

class OtlpSpan implements Tracer.Span {
  readonly _tag = "Span"
  readonly spanId = hex(8)
  readonly traceId: string
  readonly sampled: boolean
  readonly attributes = new Map<string, unknown>()
  readonly links: Array<Tracer.SpanLink>
  status: Tracer.SpanStatus

  readonly name: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly annotations: Context.Context<never>
  readonly kind: Tracer.SpanKind
  readonly #ended: (span: OtlpSpan) => void

  constructor(
    { annotations, kind, links, name, parent, startTime }: Opened,
    isSampled: () => boolean,
    ended: (span: OtlpSpan) => void
  ) {
    this.name = name
    this.parent = parent
    this.annotations = annotations
    this.kind = kind
    this.#ended = ended
    const above = Option.getOrUndefined(parent)
    this.traceId = above?.traceId ?? hex(16)
    this.sampled = above?.sampled ?? isSampled()
    this.links = [...links]
    this.status = { _tag: "Started", startTime }
  }

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    this.status = { _tag: "Ended", startTime: this.status.startTime, endTime, exit }
    if (this.sampled) this.#ended(this)
  }

  attribute(key: string, value: unknown): void {
    this.attributes.set(key, value)
  }

  event(): void {
    // the log has the events within a span, under the id of the same request or job
  }

  addLinks(links: ReadonlyArray<Tracer.SpanLink>): void {
    this.links.push(...links)
  }
}

const valueOf = (value: unknown) =>
  typeof value === "boolean"
    ? { boolValue: value }
    : typeof value === "number"
    ? Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
    : { stringValue: String(value) }

const attributesOf = (values: Iterable<readonly [string, unknown]>) =>
  [...values].filter(([, value]) => value !== undefined).map(([key, value]) => ({ key, value: valueOf(value) }))

/** Returns the kind of a failure, and nothing else. Its text may contain data that must not be in a trace. */
const statusOf = (exit: Exit.Exit<unknown, unknown>) => {
  if (Exit.isSuccess(exit)) return { code: statuses.ok }
  if (Cause.hasInterruptsOnly(exit.cause)) return { code: statuses.error, message: "interrupted" }
  const failure: unknown = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  const isTagged = typeof failure === "object" && failure !== null && "_tag" in failure
  return { code: statuses.error, message: isTagged ? String(failure._tag) : "defect" }
}

const spanOf = (span: OtlpSpan) => {
  const { parent, status } = span
  if (status._tag === "Started") return undefined
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(Option.isSome(parent) ? { parentSpanId: parent.value.spanId } : {}),
    name: span.name,
    kind: kinds[span.kind],
    startTimeUnixNano: String(status.startTime),
    endTimeUnixNano: String(status.endTime),
    attributes: attributesOf(span.attributes),
    status: statusOf(status.exit)
  }
}

const bodyOf = (spans: ReadonlyArray<OtlpSpan>, version: string): string =>
  JSON.stringify({
    resourceSpans: [{
      resource: {
        attributes: attributesOf(Object.entries({ "service.name": "acme-svc", "service.version": version }))
      },
      scopeSpans: [{ scope: { name: "acme-svc", version }, spans: spans.map(spanOf) }]
    }]
  })

/** Makes spans, and exports them until its scope closes. The remaining spans then have three seconds to be sent. */
export const layer = (options: OtlpOptions): Layer.Layer<never, never, Loops> =>
  Layer.unwrap(Effect.gen(function*() {
    let waiting: Array<OtlpSpan> = []
    let dropped = 0
    const isSampled = () => Math.random() * 100 < options.samplePercent
    const ended = (span: OtlpSpan) => {
      if (waiting.length < mostWaiting) waiting.push(span)
      else dropped++
    }
    const send = Effect.suspend(() => {
      const batch = waiting.slice(0, batchSize)
      waiting = waiting.slice(batchSize)
      return Effect.matchEffect(
        Effect.timeoutOrElse(options.send(bodyOf(batch, options.version)), {
          duration: sendWithin,
          orElse: () => Effect.fail({ message: "no answer in time" })
        }),
        {
          onSuccess: () => Effect.void,
          onFailure: ({ message }) => {
            dropped += batch.length
            return emit("trace_export_failed", { count: batch.length, error: message })
          }
        }
      )
    })
    const flush = Effect.suspend(() => {
      const lost = dropped
      dropped = 0
      const told = lost === 0 ? Effect.void : emit("trace_spans_dropped", { count: lost })
      return Effect.andThen(
        told,
        Effect.whileLoop({ while: () => waiting.length > 0, body: () => send, step: () => {} })
      )
    })
    // The export itself is not traced.
    yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(Effect.interruptible(flush), closeWithin)))
    yield* supervised("trace_export", Effect.repeat(flush, Schedule.spaced(flushEvery)))
    const tracer = Tracer.make({ span: (opened) => new OtlpSpan(opened, isSampled, ended) })
    return Layer.merge(Layer.succeed(Tracer.Tracer, tracer), tracing)
  }))
