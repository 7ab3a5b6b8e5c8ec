import * as Effect from "effect/Effect"
import { sha256 } from "../../crypto/Digest.ts"
import { readText } from "../../engine/host/Files.ts"
import { deflated } from "../../engine/http/Compressed.ts"
import type { Answer, Request } from "../../engine/http/Message.ts"
import { header } from "../../engine/http/Message.ts"

/* The stylesheet, the scripts and the logo. Their names contain a digest, so that browsers can keep them for a year. */

/** The paths of the panel's files. */
export interface PanelFiles {
  /** The folder with `templates/` and `static/`. */
  readonly folder: string
  /** The script of htmx. */
  readonly htmx: string
}

interface Static {
  readonly plain: Buffer
  readonly compressed: Buffer
  readonly type: string
}

/** The static files and their URLs. */
export interface Statics {
  /** The URL path of each file, by its name in templates: `panel.css`. */
  readonly urls: { readonly [name: string]: string }
  /** Returns the answer with the file of this name, or undefined if there is no such file. */
  readonly answer: (name: string, request: Request) => Answer | undefined
}

const types: { readonly [ending: string]: string } = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml"
}

const year = 31_536_000

const acceptsGzip = (request: Request): boolean =>
  /(?:^|,)\s*gzip\s*(?:;\s*q=(?:1|0\.\d*[1-9]\d*)(?:\.0*)?\s*)?(?:,|$)/i.test(header(request, "accept-encoding") ?? "")

/** Reads and compresses the files, once for each configuration. */
export const readStatics = ({ folder, htmx }: PanelFiles) =>
  Effect.gen(function*() {
    const sources = {
      "panel.css": `${folder}/static/panel.css`,
      "panel.js": `${folder}/static/panel.js`,
      "mark.svg": `${folder}/static/mark.svg`,
      "htmx.js": htmx
    }
    const files = new Map<string, Static>()
    const urls: Record<string, string> = {}
    for (const [name, path] of Object.entries(sources)) {
      const plain = Buffer.from(yield* readText(path))
      const [stem = "", ending = ""] = name.split(".")
      const hashed = `${stem}-${sha256(plain).slice(0, 12)}.${ending}`
      files.set(hashed, {
        plain,
        compressed: yield* deflated(plain),
        type: types[ending] ?? "application/octet-stream"
      })
      urls[name] = `/ui/static/${hashed}`
    }
    const statics: Statics = {
      urls,
      answer: (name, request) => {
        const file = files.get(name)
        if (file === undefined) return undefined
        const isCompressed = acceptsGzip(request)
        return {
          status: 200,
          headers: {
            "content-type": file.type,
            "cache-control": `public, max-age=${year}, immutable`,
            vary: "Accept-Encoding",
            ...(isCompressed ? { "content-encoding": "gzip" } : {})
          },
          body: isCompressed ? file.compressed : file.plain
        }
      }
    }
    return statics
  })
