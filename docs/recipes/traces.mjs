// Collects the spans of a service on this machine, and prints each trace as a tree (docs/operate/debugging.md, "Where the time of a request
// or a job went").
// node docs/recipes/traces.mjs PORT
import { createServer } from "node:http"
import { text } from "node:stream/consumers"

const [port] = process.argv.slice(2)
if (port === undefined) {
  process.stderr.write("usage: node traces.mjs PORT\n")
  process.exit(2)
}

const millis = ({ endTimeUnixNano, startTimeUnixNano }) =>
  Number((BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1000n) / 1000
const attributesOf = ({ attributes }) =>
  attributes.map(({ key, value }) => `${key}=${Object.values(value)[0]}`).join(" ")
const byBegin = (one, other) => Number(BigInt(one.startTimeUnixNano) - BigInt(other.startTimeUnixNano))

const print = (spans, span, depth) => {
  const failed = span.status.code === 2 ? ` FAILED ${span.status.message}` : ""
  const name = `${"  ".repeat(depth)}${span.name}`
  process.stdout.write(
    `${millis(span).toFixed(3).padStart(10)} ms  ${name}${failed}  ${attributesOf(span)}`.trimEnd() + "\n"
  )
  const below = spans.filter(({ parentSpanId }) => parentSpanId === span.spanId)
  for (const child of below.sort(byBegin)) print(spans, child, depth + 1)
}

// A span is sent when it has ended, so the one on top comes last; the spans of a trace may come in two batches.
const traces = new Map()
const take = ({ resourceSpans }) => {
  const ended = []
  for (const span of resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))) {
    traces.set(span.traceId, [...traces.get(span.traceId) ?? [], span])
    if (span.parentSpanId === undefined) ended.push(span)
  }
  for (const top of ended.sort(byBegin)) {
    print(traces.get(top.traceId), top, 0)
    traces.delete(top.traceId)
  }
}

createServer((request, response) => {
  text(request).then((body) => {
    take(JSON.parse(body))
    response.end("{}")
  }).catch((error) => {
    process.stderr.write(`${error.message}\n`)
    response.writeHead(400).end()
  })
}).listen(Number(port), "127.0.0.1", () => process.stdout.write("Ready for spans.\n"))
