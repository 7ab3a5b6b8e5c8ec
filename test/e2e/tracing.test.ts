import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { assert, describe, it, onTestFinished } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer, databases } from "../support/Databases.ts"
import { startServer } from "../support/Server.ts"

interface Span {
  readonly name: string
  readonly spanId: string
  readonly parentSpanId?: string
}

interface Body {
  readonly resourceSpans: ReadonlyArray<{ readonly scopeSpans: ReadonlyArray<{ readonly spans: ReadonlyArray<Span> }> }>
}

describe.each(databases)("tracing, $name", ({ dialect, freshUrl }) => {
  it("sends the spans of the requests, the job and the statements of an issuance", async () => {
    await builtServer()
    const spans: Array<Span> = []
    const collector = createServer((request, response) => {
      void text(request).then((body) => {
        const { resourceSpans } = JSON.parse(body) as Body
        for (const { scopeSpans } of resourceSpans) for (const one of scopeSpans) spans.push(...one.spans)
        response.end("{}")
      })
    })
    await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => void collector.close())
    const { port } = collector.address() as AddressInfo
    const server = await startServer({
      databaseUrl: await freshUrl(),
      env: {
        ACME_SVC_CHALLENGE__BYPASS: "true",
        ACME_SVC_TRACING__ENDPOINT: `http://127.0.0.1:${port}/v1/traces`
      }
    })
    onTestFinished(server.dispose)
    const session = await AcmeSession.open(server.directoryUrl)
    await session.register()
    const { body, url } = await session.newOrder(["traced.example"])
    await session.authorize(body, new Map())
    await session.awaitOrder(url, ["ready"])
    await session.finalize(body, makeCsr({ names: ["traced.example"] }).csr)
    await session.awaitOrder(url, ["valid"])
    session.close()
    await server.stop()
    const below = (name: string): ReadonlyArray<string> => {
      const roots = spans.filter((span) => span.name === name && span.parentSpanId === undefined)
      const under = ({ spanId }: Span): ReadonlyArray<string> =>
        spans.filter(({ parentSpanId }) => parentSpanId === spanId).flatMap((child) => [child.name, ...under(child)])
      return roots.flatMap(under)
    }
    // PostgreSQL inserts an order with one statement, and stores a certificate with one.
    const [inserted, issued] = dialect === "postgres"
      ? [["order_create"], ["order_issue_recorded"]]
      : [["transaction", "order_insert"], ["order_issue", "audit_insert"]]
    assert.includeMembers([...below("POST /newOrder")], ["authenticate", "operate", ...inserted])
    assert.includeMembers([...below("POST /order/{id}/finalize")], ["order_claim", "job_insert"])
    assert.includeMembers([...below("signer_issue")], [
      "order_for_issuance",
      "transaction",
      ...issued,
      "job_settle"
    ])
    const known = new Set(spans.map(({ spanId }) => spanId))
    assert.deepStrictEqual(spans.filter(({ parentSpanId: id }) => id !== undefined && !known.has(id)), [])
  })
})
