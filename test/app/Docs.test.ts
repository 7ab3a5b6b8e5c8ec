import { Deferred, Effect, Fiber } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { freshPlace } from "../support/RunCommand.ts"

/* `acme-svc docs`, with a site of three files. */

const place = freshPlace(null)
const site = join(place.directory, "site")

const said = (words: ReadonlyArray<string>, folder = site) =>
  Effect.runPromise(place.run(words, { process: { site: folder } }))

interface Answer {
  readonly status: number | undefined
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  readonly body: string
}

/** Asks for a path exactly as it is written, which `fetch` does not. */
const ask = (url: string, path: string, method = "GET") =>
  new Promise<Answer>((done, failed) => {
    const { hostname, port } = new URL(url)
    const sent = request({ hostname, port, path, method, agent: false }, (answer) => {
      let body = ""
      answer.setEncoding("utf8").on("data", (chunk: string) => void (body += chunk))
      answer.on("end", () => done({ status: answer.statusCode, headers: answer.headers, body }))
    })
    sent.on("error", failed).end()
  })

/** Runs the command while something is asked of it, and returns how it ended. */
const during = async (words: ReadonlyArray<string>, use: (url: string) => Promise<void>) => {
  const stop = Deferred.makeUnsafe<"SIGINT">()
  let fiber: Fiber.Fiber<Awaited<ReturnType<typeof said>>> | undefined
  const url = await new Promise<string>((heard) => {
    fiber = Effect.runFork(place.run(words, {
      process: { site, stopSignal: Deferred.await(stop) },
      heard: (line) => heard(/http:\S+/.exec(line)?.[0] ?? line)
    }))
  })
  await use(url)
  Deferred.doneUnsafe(stop, Effect.succeed("SIGINT"))
  return fiber === undefined ? undefined : Effect.runPromise(Fiber.join(fiber))
}

describe("docs", () => {
  it("says how a clone makes the documents if there are none", async () => {
    const sentence = "The documents are not beside this program. In a clone, npm run site makes them.\n"
    const none = join(place.directory, "none")
    assert.deepStrictEqual(await said(["docs"], none), { code: 3, out: "", err: sentence })
    mkdirSync(none)
    assert.deepStrictEqual(await said(["docs"], none), { code: 3, out: "", err: sentence })
  })

  it("serves the files of the site and nothing else, until it is stopped", async () => {
    mkdirSync(join(site, "operate"), { recursive: true })
    writeFileSync(join(site, "index.html"), "the list")
    writeFileSync(join(site, "operate/index.html"), "how to operate")
    writeFileSync(join(site, "site.js"), "1")
    writeFileSync(join(place.directory, "secret"), "a secret")
    const ended = await during(["docs"], async (url) => {
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/$/)
      const first = await ask(url, "/")
      assert.deepInclude(first, { status: 200, body: "the list" })
      assert.strictEqual(first.headers["content-type"], "text/html; charset=utf-8")
      const policy = String(first.headers["content-security-policy"])
      assert.match(policy, /default-src 'none'.*script-src 'self'; style-src 'self'$/)
      assert.strictEqual((await ask(url, "/operate/")).body, "how to operate")
      for (
        const [document, page] of [["docs/README.md", "/index.html"], ["docs/operate/README.md", "/operate/index.html"]]
      ) {
        const moved = await ask(url, `/${document}`)
        assert.deepStrictEqual([moved.status, moved.headers["location"]], [302, page])
      }
      assert.strictEqual((await ask(url, "/docs/none.md")).status, 404)
      assert.deepInclude(await ask(url, "/index.html", "HEAD"), { status: 200, body: "" })
      assert.strictEqual((await ask(url, "/site.js")).headers["content-type"], "text/javascript; charset=utf-8")
      for (const path of ["/none.html", "/../secret", "/%2e%2e/secret", "/operate/../../secret", "//secret"]) {
        const answer = await ask(url, path)
        assert.notInclude(answer.body, "a secret", path)
        assert.include([400, 404], answer.status, path)
      }
      assert.deepInclude(await ask(url, "/", "POST"), { status: 405 })
      const { port } = new URL(url)
      const second = await said(["docs", "--port", port])
      assert.strictEqual(second.code, 1)
      assert.include(second.err, `Cannot listen on 127.0.0.1:${port}`)
    })
    assert.deepInclude(ended, { code: 0, err: "" })
    assert.match(ended?.out ?? "", /^The documents are at http:\/\/127\.0\.0\.1:\d+\/ until Ctrl-C\.\n$/)
  })
})
