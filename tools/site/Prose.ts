import { Marked, Parser, Renderer, TextRenderer } from "marked"
import type { Tokens } from "marked"
import { posix } from "node:path"
import { anchorsOfDocument } from "./Anchors.ts"
import type { PictureSize } from "./PictureSize.ts"
import { placeOf, referenceTo } from "./Places.ts"

/* Renders the Markdown of a document as HTML. */

/** A part of a document: what follows one heading, up to the next one. */
export interface Part {
  /** The heading as plain text. */
  readonly heading: string
  readonly level: number
  readonly anchor: string
  /** The words of the part. */
  readonly words: string
}

/** A rendered document. */
export interface Prose {
  readonly title: string
  readonly html: string
  readonly parts: ReadonlyArray<Part>
  /** The files of the repository to which the document leads. */
  readonly leadsTo: ReadonlyArray<string>
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\"", "&quot;")

/** Returns what can be read of Markdown: no targets of links, no marks. */
const wordsOf = (markdown: string): string =>
  markdown.replaceAll(/<!--.*?-->/gs, " ").replaceAll(/\]\([^)]*\)/g, "]").replaceAll(/\s+/g, " ").trim()

/** What is known about the other files of the repository. */
export interface Around {
  /** Whether a path is a file. The site has no page for a folder, so a link to a folder becomes plain text. */
  readonly isFile: (path: string) => boolean
  readonly sizeOf: (path: string) => PictureSize | undefined
}

/** Renders a document. */
export const render = (document: string, markdown: string, { isFile, sizeOf }: Around): Prose => {
  const marked = new Marked({ gfm: true })
  const tokens = marked.lexer(markdown)
  const anchorOf = anchorsOfDocument()
  const anchors = new Map<object, string>()
  const parts: Array<Part> = []
  const here = placeOf(document)
  const leadsTo = new Set<string>()

  /** Returns where a link leads in the site. Returns undefined if the site has no such place. */
  const target = (href: string): string | undefined => {
    if (/^[a-z]+:/.test(href)) return href
    const [path = "", fragment] = href.split("#")
    const hash = fragment === undefined ? "" : `#${fragment}`
    if (path === "") return hash
    const file = posix.join(posix.dirname(document), path)
    if (!isFile(file)) return undefined
    leadsTo.add(file)
    return referenceTo(here, placeOf(file), hash)
  }

  marked.use({
    renderer: {
      heading(token) {
        const { depth, tokens: inner } = token
        return `<h${depth} id="${anchors.get(token) ?? ""}">${this.parser.parseInline(inner)}</h${depth}>\n`
      },
      link({ href, tokens: inner }) {
        const to = target(href)
        const text = this.parser.parseInline(inner)
        return to === undefined ? text : `<a href="${escaped(to)}">${text}</a>`
      },
      image({ href, text }) {
        const size = sizeOf(posix.join(posix.dirname(document), href))
        const room = size === undefined ? "" : ` width="${size.width}" height="${size.height}"`
        return `<img src="${escaped(target(href) ?? href)}" alt="${escaped(text)}"${room} loading="lazy">`
      },
      // A picture that stands alone may be wider than the text, and is scrolled on a narrow screen.
      paragraph({ tokens: inner }) {
        const text = this.parser.parseInline(inner)
        const isPicture = inner.length === 1 && inner[0]?.type === "image"
        return isPicture ? `<div class="picture">${text}</div>\n` : `<p>${text}</p>\n`
      },
      table(token) {
        return `<div class="box">${Renderer.prototype.table.call(this, token)}</div>\n`
      },
      tablecell({ align, header, tokens: inner }) {
        const text = this.parser.parseInline(inner)
        const aligned = align === "right" ? ` class="num"` : ""
        // A heading without words would be read out as an empty one.
        return header && text !== "" ? `<th scope="col"${aligned}>${text}</th>\n` : `<td${aligned}>${text}</td>\n`
      },
      code({ text }) {
        return `<pre><code>${escaped(text)}</code></pre>\n`
      },
      // The documents have no HTML but comments for the formatter.
      html: () => ""
    }
  })

  const plain = new TextRenderer()
  for (const token of tokens) {
    if (token.type === "heading") {
      const { depth, tokens: inner } = token as Tokens.Heading
      const heading = new Parser().parseInline(inner, plain)
      const anchor = anchorOf(heading)
      anchors.set(token, anchor)
      parts.push({ heading, level: depth, anchor, words: "" })
    } else {
      const last = parts.pop()
      if (last !== undefined) parts.push({ ...last, words: `${last.words} ${wordsOf(token.raw)}`.trim() })
    }
  }
  const html = marked.parser(tokens)
  return { title: parts[0]?.heading ?? document, html, parts, leadsTo: [...leadsTo] }
}
