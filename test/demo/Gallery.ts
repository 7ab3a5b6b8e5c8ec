import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { gzipSync } from "node:zlib"
import type { Browser, Page } from "playwright-core"
import type { Window } from "../support/Browser.ts"
import { openWindow, operatorOf, signInAs } from "../support/Browser.ts"
import { accessFaults, htmlFaults } from "../support/Checked.ts"
import type { PageRow } from "../support/PanelPages.ts"
import { nameOf, rows } from "../support/PanelPages.ts"
import { enlistHalf, half, pathOf } from "../support/PanelPaths.ts"
import type { Demo } from "./Demo.ts"
import { startDemo } from "./Demo.ts"
import type { SheetRow } from "./Sheet.ts"
import { sheetMaker } from "./Sheet.ts"
import type { StateName } from "./States.ts"

/*
 * A sheet for every page of the panel, in several states, widths and colours, and what is counted for each page while
 * its pictures are taken.
 */

const pages = rows.flatMap((row) => row.kind === "page" ? [row] : [])
const shownStates = ["empty", "full", "outage"] as const satisfies ReadonlyArray<StateName>

/** The variants of a page, in the order of the columns of a sheet. */
const variants = [
  { theme: "light", width: 1440, height: 1000 },
  { theme: "dark", width: 1440, height: 1000 },
  { theme: "light", width: 390, height: 844 },
  { theme: "dark", width: 390, height: 844 }
] as const

/** How much of a page is pictured, as a multiple of its width. The charts of the first page are far below. */
const shownPart = (row: PageRow): number => row.pattern === "/ui/" ? 1.7 : 0.95

/** What was counted for a page. */
interface Counted {
  views: number
  /** The faults that axe and html-validate found, in words. */
  readonly access: Array<string>
  readonly html: Array<string>
  /** The pixels by which views are wider than their window. */
  overflow: number
  /** The octets of the page as it is sent, if it were compressed, and as it is sent with its style and scripts. */
  octets: number
  compressed: number
  whole: number
  /** The milliseconds until the page was complete, with a million certificates. */
  loaded: number | undefined
}

/** The file of a page's sheet, without its ending. */
const fileOf = (row: PageRow): string =>
  nameOf(row).replace(/^\/ui\/?/, "").replaceAll(/[^a-z0-9]+/gi, "-").replace(/^-|-$/g, "").replace(/^$/, "overview")
    .replace(/^30d$/, "overview-30d")

/** Opens the windows of a reader and keeps its session alive. */
class Readers {
  readonly #windows = new Map<string, Window>()
  readonly #browser: Browser
  readonly #demo: Demo

  constructor(browser: Browser, demo: Demo) {
    this.#browser = browser
    this.#demo = demo
  }

  /** Returns the page of a reader in a variant. */
  async page(from: PageRow["from"], variant: (typeof variants)[number]): Promise<Page> {
    const reader = from === "none" || from === "half" ? from : "admin"
    const key = `${reader} ${variant.theme} ${variant.width}`
    let window = this.#windows.get(key)
    if (window === undefined) {
      window = await openWindow(this.#browser, variant)
      // The page must not change while it is looked at.
      await window.page.route(/[?&]poll=/, (route) => route.fulfill({ status: 204 }))
      this.#windows.set(key, window)
      if (reader === "admin") await signInAs(window.page, this.#demo.url, operatorOf("admin"))
    }
    // A session that lacks its second factor lives for five minutes.
    if (reader === "half") {
      await window.context.clearCookies()
      await signInAs(window.page, this.#demo.url, half)
    }
    return window.page
  }

  async close(): Promise<void> {
    for (const { context } of this.#windows.values()) await context.close()
  }
}

const htmlOf = (page: Page, demo: Demo) => async (path: string): Promise<string> =>
  (await page.request.get(`${demo.url}${path}`)).text()

const overflowOf = (page: Page): Promise<number> =>
  page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

/** Returns how many octets the files of a page have as they are sent. Each file is asked for once. */
const fileSizes = () => {
  const known = new Map<string, number>()
  return async (page: Page, demo: Demo, html: string): Promise<number> => {
    let sum = 0
    for (const [, path = ""] of html.matchAll(/(?:src|href)="(\/ui\/static\/[^"]+)"/g)) {
      if (!known.has(path)) {
        const answer = await page.request.get(`${demo.url}${path}`)
        known.set(path, Number(answer.headers()["content-length"] ?? (await answer.body()).length))
      }
      sum += known.get(path) ?? 0
    }
    return sum
  }
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0

/** Measures the pages of a demo with a million certificates. */
const measure = async (browser: Browser, counts: ReadonlyMap<PageRow, Counted>, say: (text: string) => void) => {
  const demo = await startDemo({ state: "million", tell: say })
  const readers = new Readers(browser, demo)
  try {
    for (const row of pages) {
      const counted = counts.get(row)
      if (counted === undefined || row.from === "half") continue
      const page = await readers.page(row.from, variants[0])
      const path = await pathOf(row, htmlOf(page, demo))
      if (path === undefined) continue
      const times: Array<number> = []
      for (let round = 0; round < 3; round++) {
        const answer = await page.goto(`${demo.url}${path}`, { waitUntil: "load" })
        if (answer?.status() !== (row.status ?? 200)) break
        times.push(await page.evaluate("performance.getEntriesByType('navigation')[0].loadEventStart"))
      }
      if (times.length > 0) counted.loaded = median(times)
    }
  } finally {
    await readers.close()
    await demo.stop()
  }
}

const kilo = (octets: number): string => (octets / 1000).toFixed(1)

const tableOf = (counts: ReadonlyMap<PageRow, Counted>): string =>
  [
    "| Page | Views | axe | html-validate | Too wide | HTML, KB | HTML, KB with gzip | with style and scripts, KB | ms with a million |",
    "| ---- | ----: | --: | ------------: | -------: | -------: | -----------------: | -------------------------: | ----------------: |",
    ...[...counts].map(([row, { access, compressed, html, loaded, octets, overflow, views, whole }]) =>
      `| ${
        [
          `\`${nameOf(row)}\``,
          views,
          access.length,
          html.length,
          overflow,
          kilo(octets),
          kilo(compressed),
          kilo(whole),
          loaded === undefined ? "–" : Math.round(loaded)
        ].join(" | ")
      } |`
    )
  ].join("\n")

const sheetsOf = (document: string, folder: string, counts: ReadonlyMap<PageRow, Counted>): string =>
  [...counts.keys()].map((row) =>
    `### \`${nameOf(row)}\`\n\n![${nameOf(row)}](${
      relative(join(document, ".."), join(folder, `${fileOf(row)}.webp`))
    })`
  ).join("\n\n")

const [begin, end] = ["<!-- dprint-ignore-start -->", "<!-- dprint-ignore-end -->"]

/** Where the gallery goes. */
export interface GalleryPlace {
  readonly folder: string
  /** The document that shows the sheets, if it is written. */
  readonly document: string | undefined
  readonly say: (text: string) => void
}

/** Takes a sheet of every page, and counts. Fails if there is a fault. */
export const takeGallery = async (browser: Browser, { document, folder, say }: GalleryPlace): Promise<void> => {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const sheet = await sheetMaker(browser)
  const sizes = fileSizes()
  const counts = new Map(
    pages.map((row): [PageRow, Counted] => [
      row,
      { views: 0, access: [], html: [], overflow: 0, octets: 0, compressed: 0, whole: 0, loaded: undefined }
    ])
  )
  const sheets = new Map(pages.map((row): [PageRow, Array<SheetRow>] => [row, []]))
  for (const state of shownStates) {
    const demo = await startDemo({ state, tell: (text) => say(`${state}: ${text}`) })
    const readers = new Readers(browser, demo)
    try {
      await enlistHalf(browser, demo)
      for (const [row, counted] of counts) {
        const pictures: Array<Buffer | undefined> = []
        const path = await pathOf(row, htmlOf(await readers.page(row.from, variants[0]), demo))
        say(`${state}: ${nameOf(row)}${path === undefined ? ", which is not there" : ""}`)
        if (path === undefined) continue
        for (const [index, variant] of variants.entries()) {
          const page = await readers.page(row.from, variant)
          const answer = await page.goto(`${demo.url}${path}`)
          counted.views++
          const at = `${nameOf(row)}, ${state}, ${variant.width} px, ${variant.theme}`
          counted.access.push(...(await accessFaults(page)).map((fault) => `${at}: ${fault}`))
          counted.overflow += await overflowOf(page)
          const height: number = await page.evaluate("document.documentElement.scrollHeight")
          const most = variant.width * (variant.width < 500 ? 2.3 : 1) * shownPart(row)
          const clip = { x: 0, y: 0, width: variant.width, height: Math.round(Math.min(height, most)) }
          pictures.push(await page.screenshot({ fullPage: true, clip }))
          if (index > 0) continue
          const html = await answer?.text() ?? ""
          counted.html.push(...(await htmlFaults(html)).map((fault) => `${at}: ${fault}`))
          const octets = Buffer.byteLength(html)
          if (octets > counted.octets) {
            const whole = octets + await sizes(page, demo, html)
            Object.assign(counted, { octets, compressed: gzipSync(html).length, whole })
          }
        }
        if (pictures.length > 0) sheets.get(row)?.push({ word: state, pictures })
      }
    } finally {
      await readers.close()
      await demo.stop()
    }
  }
  let octets = 0
  for (const [row, shown] of sheets) {
    const image = await sheet(shown)
    octets += image.length
    writeFileSync(join(folder, `${fileOf(row)}.webp`), image)
  }
  await measure(browser, counts, say)
  const sum = (of: (counted: Counted) => number) => [...counts.values()].reduce((all, one) => all + of(one), 0)
  const faults = [...counts.values()].flatMap(({ access, html }) => [...access, ...html])
  for (const fault of faults) say(`FAULT ${fault}`)
  const totals = `${sum(({ views }) => views)} views, ${sum(({ access }) => access.length)} axe violations, ` +
    `${sum(({ html }) => html.length)} html-validate messages, ${sum(({ overflow }) => overflow)} pixels too wide, ` +
    `${counts.size} sheets of ${kilo(octets)} KB`
  if (document !== undefined) {
    const text = readFileSync(document, "utf8")
    const made = `${begin}\n\n${totals}.\n\n${tableOf(counts)}\n\n## Pictures\n\n${
      sheetsOf(document, folder, counts)
    }\n\n${end}`
    writeFileSync(document, text.slice(0, text.indexOf(begin)) + made + text.slice(text.indexOf(end) + end.length))
  }
  say(totals)
  if (faults.length > 0 || sum(({ overflow }) => overflow) > 0) process.exitCode = 1
}
