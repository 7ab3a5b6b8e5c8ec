import { posix } from "node:path"
import type { Section } from "./DocumentMap.ts"
import { listedFor } from "./DocumentMap.ts"
import { map, placeOf, referenceTo } from "./Places.ts"
import type { Prose } from "./Prose.ts"

/* The frame of a page: the header, the pages of the same section, and the headings of the page. */

/** What every page of the site shows. */
export interface Frame {
  readonly version: string
  readonly sections: ReadonlyArray<Section>
}

/** The documents that the list does not have, for the foot of each page. */
const others = {
  "About": "README.md",
  "Changes": "CHANGELOG.md",
  "Contributing": "CONTRIBUTING.md",
  "Security": "SECURITY.md"
}

const most = 40

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** Returns the headings of a page, for the navigation, if they help to find one's way. */
const contents = ({ parts }: Prose): string => {
  const headings = parts.filter(({ level }) => level === 2)
  if (headings.length < 2 || headings.length > most) return ""
  return `<ul class="side-parts">${
    headings.map(({ anchor, heading }) => `<li><a href="#${anchor}">${escaped(heading)}</a></li>`).join("")
  }</ul>`
}

/** Returns a page of the site. */
export const pageOf = ({ sections, version }: Frame, document: string, prose: Prose): string => {
  const here = placeOf(document)
  const to = (file: string): string => referenceTo(here, placeOf(file))
  const root = posix.relative(posix.dirname(here), "")
  const own = (file: string): string => root === "" ? file : `${root}/${file}`
  const listed = listedFor(sections, document)
  const groups = sections.map(({ name, pages }) => {
    const isHere = document !== map && pages.some((page) => page.document === listed)
    const link = (page: Section["pages"][number]): string => {
      const current = page.document !== listed
        ? ""
        : listed === document
        ? ` aria-current="page"`
        : ` aria-current="true"`
      const inner = page.document === document ? contents(prose) : ""
      return `<li><a href="${to(page.document)}"${current}>${escaped(page.name)}</a>${inner}</li>`
    }
    const heading = `<h2><a href="${referenceTo(here, placeOf(map), `#${name.toLowerCase()}`)}">${
      escaped(name)
    }</a></h2>`
    return `<div class="side-group">${heading}${isHere ? `<ul>${pages.map(link).join("")}</ul>` : ""}</div>`
  })
  const alone = groups.some((group) => group.includes("aria-current")) ? "" : contents(prose)
  const foot = Object.entries(others).map(([name, file]) => `<a href="${to(file)}">${name}</a>`)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(document === map ? "Documents" : prose.title)} · acme-svc</title>
<link rel="icon" href="${own("mark.svg")}" type="image/svg+xml">
<link rel="stylesheet" href="${own("site.css")}">
<script src="${own("site.js")}" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
  <div class="top-in">
    <a class="brand" href="${own("index.html")}"><img src="${
    own("mark.svg")
  }" alt="" width="22" height="22"><span>acme-svc</span></a>
    <div class="search" role="search" hidden>
      <label class="off" for="q">Search the documents</label>
      <input id="q" type="search" maxlength="200" placeholder="Search the documents" autocomplete="off" spellcheck="false">
    </div>
    <button type="button" class="theme" data-theme-switch hidden>Theme: <span data-theme-name>system</span></button>
  </div>
</header>
<div class="frame">
<nav class="side" aria-label="Documents">
<details class="side-fold" open>
<summary>Documents</summary>
${groups.join("\n")}
${alone === "" ? "" : `<div class="side-group"><h2>On this page</h2>${alone}</div>`}
</details>
</nav>
<main id="main" class="doc" tabindex="-1">
${prose.html}</main>
</div>
<footer class="foot"><span>acme-svc ${escaped(version)}</span> ${foot.join(" ")}</footer>
<div id="said" class="off" role="status" aria-live="polite"></div>
</body>
</html>
`
}
