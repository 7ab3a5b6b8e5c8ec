import * as Effect from "effect/Effect"
import { sha256Octets } from "../../crypto/Digest.ts"
import { tagged } from "../../engine/http/EntityTag.ts"
import type { Answer, Request } from "../../engine/http/Message.ts"
import { header, withHeaders } from "../../engine/http/Message.ts"
import type { EndpointGuide } from "../../operations/EndpointGuide.ts"
import { endpointGuide, guideParts, guideText } from "../../operations/EndpointGuide.ts"
import type { Endpoint } from "./Endpoint.ts"

/*
 * The page of a profile, for people: what the endpoint is, how to trust its CA, and how to ask for a certificate. It
 * has no script and loads nothing.
 */

const style =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}pre{background:#8881;padding:.75rem;overflow-x:auto}dt{font-weight:600}dd{margin:0 0 .5rem;overflow-wrap:anywhere}:root{color-scheme:light dark}"

const policy = `default-src 'none'; style-src 'sha256-${sha256Octets(style).toString("base64")}'; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const escapes: { readonly [character: string]: string } = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;" }

const html = (text: string): string => text.replaceAll(/[&<>"]/g, (character) => escapes[character] ?? "")

/** Returns a guide as a page. */
const pageOf = (guide: EndpointGuide): string => {
  const [first, ...rest] = guideParts(guide)
  const title = html(first?.heading ?? "")
  const body = [first, ...rest].flatMap((part, at) => {
    if (part === undefined) return []
    const { facts, heading, pasted, sentences } = part
    const tag = at === 0 ? "h1" : "h2"
    return [
      `<${tag}>${html(heading)}</${tag}>`,
      ...sentences.map((sentence) => `<p>${html(sentence)}</p>`),
      ...facts.length === 0
        ? []
        : ["<dl>", ...facts.map(([name, value]) => `<dt>${html(name)}</dt><dd>${html(value)}</dd>`), "</dl>"],
      ...pasted.map(({ before, text }) =>
        `${before === "" ? "" : `<p>${html(before)}</p>`}<pre tabindex="0">${html(text)}</pre>`
      )
    ]
  })
  return [
    "<!DOCTYPE html>",
    `<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">`,
    `<title>${title}</title><style>${style}</style></head><body><main>`,
    ...body,
    "</main></body></html>",
    ""
  ].join("\n")
}

/** Returns how much a client wants a media type (RFC 9110 section 12.5.1), and how exactly it names the type. */
const wish = (accept: string, type: string): { readonly weight: number; readonly exactness: number } => {
  const ranges = ["*/*", `${type.slice(0, type.indexOf("/"))}/*`, type]
  const found = accept.split(",").flatMap((range) => {
    const [name = "", ...parameters] = range.split(";").map((part) =>
      part.replaceAll(/^[ \t]+|[ \t]+$/g, "").toLowerCase()
    )
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1"
    const exactness = ranges.indexOf(name)
    return exactness < 0 ? [] : [{ weight: /^[01]?(?:\.\d*)?$/.test(weight) ? Number(weight) : 0, exactness }]
  })
  return found.toSorted((one, other) => other.exactness - one.exactness)[0] ?? { weight: 0, exactness: -1 }
}

/** Returns whether a client wants HTML more than text. Programs that want anything get text. */
const wantsHtml = (accept: string): boolean => {
  const [html, text] = [wish(accept, "text/html"), wish(accept, "text/plain")]
  return html.weight > text.weight ||
    (html.weight > 0 && html.weight === text.weight && html.exactness > text.exactness)
}

/** Returns the page of a profile, as HTML for a browser and as text for every other program. */
export const guidePage = ({ endpoint, request }: { readonly endpoint: Endpoint; readonly request: Request }) =>
  Effect.map(endpointGuide(endpoint.profile, endpoint.origin), (guide): Answer => {
    const answer = wantsHtml(header(request, "accept") ?? "")
      ? tagged("text/html; charset=utf-8", Buffer.from(pageOf(guide)))
      : tagged("text/plain; charset=utf-8", Buffer.from(guideText(guide)))
    return withHeaders(answer, {
      vary: "Accept",
      "content-security-policy": policy,
      "referrer-policy": "no-referrer"
    })
  })
