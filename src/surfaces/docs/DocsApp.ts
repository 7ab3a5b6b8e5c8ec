import * as Effect from "effect/Effect"
import { readOctets } from "../../engine/host/Files.ts"
import type { Answer, App } from "../../engine/http/Message.ts"
import { unmatched } from "../../engine/http/Message.ts"

const types: { readonly [ending: string]: string } = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  png: "image/png",
  svg: "image/svg+xml"
}

/** Pages load only files of the site itself, and run no script but that of the site. */
const policy =
  "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; img-src 'self'; script-src 'self'; style-src 'self'"

const typeOf = (name: string): string => types[/\.([a-z]+)$/.exec(name)?.[1] ?? ""] ?? "text/plain; charset=utf-8"

const absent: Answer = {
  status: 404,
  headers: { "content-type": "text/plain; charset=utf-8" },
  body: "There is no such page. The list of all pages is at /.\n"
}

/**
 * Returns the page of a document in the repository, by the path that commands and messages name, such as
 * `docs/operate/jobs.md`.
 */
const pageOf = (name: string): string | undefined =>
  /^docs\/([\w/-]+)\.md$/.exec(name)?.[1]?.replace(/(^|\/)README$/, "$1index").concat(".html")

/** Serves GET and HEAD of the files of a folder, and nothing else. `files` has their paths on the disk by their names. */
export const make = (files: ReadonlyMap<string, string>): App<never> => ({
  route: ({ clientIp, path: asked }) => {
    const name = asked.endsWith("/") ? `${asked.slice(1)}index.html` : asked.slice(1)
    const path = files.get(name)
    const page = pageOf(name)
    return {
      facts: {},
      pattern: path === undefined ? unmatched : "/{file}",
      clientIp,
      handle: ({ method }) => {
        if (page !== undefined && files.has(page)) {
          return Effect.succeed({ status: 302, headers: { location: `/${page}` } })
        }
        if (path === undefined) return Effect.succeed(absent)
        if (method !== "GET" && method !== "HEAD") {
          return Effect.succeed({ status: 405, headers: { allow: "GET, HEAD" } })
        }
        const type = typeOf(name)
        const headers = { "content-type": type, ...type === types["html"] ? { "content-security-policy": policy } : {} }
        return Effect.match(readOctets(path), {
          onFailure: () => absent,
          onSuccess: (body): Answer => ({ status: 200, headers, body })
        })
      },
      late: () => Effect.succeed({ status: 503, headers: {} })
    }
  }
})
