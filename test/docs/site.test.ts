import { Deferred, Effect, Fiber } from "effect"
import MiniSearch from "minisearch"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join, posix } from "node:path"
import { pathToFileURL } from "node:url"
import type { Browser } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { placeOf } from "../../tools/site/Places.ts"
import type { Entry } from "../../tools/site/Search.ts"
import { found, options } from "../../tools/site/Search.ts"
import type { Site } from "../../tools/site/Site.ts"
import { makeSite } from "../../tools/site/Site.ts"
import { openWindow, startBrowser } from "../support/Browser.ts"
import { accessFaults, htmlFaults, keyboardFaults } from "../support/Checked.ts"
import { freshDirectory } from "../support/Databases.ts"
import { documents, text } from "../support/Documents.ts"
import { isFull } from "../support/Full.ts"
import { freshPlace } from "../support/RunCommand.ts"

/* The site of the documents: its links, its search, and its pages in a browser. */

/** What somebody may type, and the page that must be among the first three results. */
const questions = {
  "how do I renew a certificate": "clients/renewal.html",
  "replace the CA": "configure/rotation.html",
  "the disk is full": "operate/runbooks/disk-full.html",
  "lost second factor": "operate/runbooks/second-factor-lost.html",
  "restore a backup": "operate/backup-and-restore.html",
  "cert-manager": "clients/kubernetes.html",
  "revoke by serial": "operate/runbooks/revoke-by-serial.html",
  "install the debian package": "start/package.html",
  "server.base_url": "reference/configuration.html",
  "job_run_abandoned": "reference/log-events.html"
} as const

/** Pages of every kind: the list, prose, tables, code, pictures, a long reference and a record of development. */
const shown = [
  "index.html",
  "start/ten-minutes.html",
  "start/panel.html",
  "operate/jobs.html",
  "operate/runbooks/disk-full.html",
  "configure/rotation.html",
  "reference/cli.html",
  "contribute/architecture.html",
  "changelog.html"
] as const

let site: Site
const pages = new Map<string, string>()
beforeAll(async () => {
  site = await makeSite()
  for (const [name, content] of site.files) if (name.endsWith(".html")) pages.set(name, content.toString())
})

interface Reference {
  readonly from: string
  readonly to: string
}

/** Returns what a page refers to, with paths from the root of the site. References to other hosts stay as they are. */
const referencesIn = (from: string, html: string): ReadonlyArray<Reference> =>
  [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, given = ""]) => {
    const href = given.replaceAll("&amp;", "&")
    if (/^[a-z]+:/.test(href)) return { from, to: href }
    const [path = "", fragment] = href.split("#")
    const at = path === "" ? from : posix.join(posix.dirname(from), path)
    return { from, to: fragment === undefined ? at : `${at}#${fragment}` }
  })

const mainOf = (html: string): string => html.slice(html.indexOf("<main"), html.indexOf("</main>"))

describe("the site of the documents", () => {
  it("has a page for each document, and leads from the list to each page", () => {
    assert.sameMembers([...pages.keys()], documents.map(placeOf))
    const reached = new Set(["index.html"])
    for (const page of reached) {
      for (const { to } of referencesIn(page, mainOf(pages.get(page) ?? ""))) {
        const [path = ""] = to.split("#")
        if (pages.has(path)) reached.add(path)
      }
    }
    assert.sameMembers([...reached], [...pages.keys()])
  })

  it("has no dead link and no dead anchor, and loads nothing from another host", () => {
    const anchors = new Map(
      [...pages].map(([name, html]) => [name, new Set([...html.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id))])
    )
    const all = [...pages].flatMap(([name, html]) => referencesIn(name, html))
    const inside = all.filter(({ to }) => !/^[a-z]+:/.test(to))
    const dead = inside.filter(({ to }) => {
      const [path = "", fragment] = to.split("#")
      return !site.files.has(path) || (fragment !== undefined && anchors.get(path)?.has(fragment) !== true)
    })
    assert.deepStrictEqual(dead, [])
    const loaded = [...pages].flatMap(([, html]) => [...html.matchAll(/<(?:img|script|link)\b[^>]*>/g)].join(" "))
    assert.deepStrictEqual(loaded.filter((tags) => /(?:href|src)="[a-z]+:/.test(tags)), [])
    for (const name of ["site.css", "site.js"]) {
      assert.notMatch(String(site.files.get(name)), /(?:url\(|@import|fetch\()["']?\s*https?:/, name)
    }
    process.stdout.write(
      `site: ${pages.size} pages, ${inside.length} references inside, ${all.length - inside.length} to other hosts\n`
    )
  })

  it("finds the page that answers a question", () => {
    const script = String(site.files.get("search-index.js"))
    const data = JSON.parse(script.slice(script.indexOf("{"))) as Parameters<typeof MiniSearch.loadJS>[0]
    const index = MiniSearch.loadJS<Entry>(data, options)
    const answers = Object.entries(questions).map(([question, page]) => {
      const first = [...new Set(found(index, question).map(({ id }) => String(id).split("#")[0]))].slice(0, 3)
      return { question, page, first }
    })
    assert.deepStrictEqual(answers.filter(({ first, page }) => !first.includes(page)), [])
    process.stdout.write(`site: ${answers.length} questions answered, index ${Buffer.byteLength(script)} octets\n`)
  })

  it("needs little space", () => {
    const sizeOf = (pattern: RegExp) =>
      [...site.files].reduce((sum, [name, content]) => sum + (pattern.test(name) ? Buffer.byteLength(content) : 0), 0)
    assert.isBelow(sizeOf(/^search-index\.js$/), 1_000_000)
    assert.isBelow(sizeOf(/^site\./), 80_000)
    assert.isBelow(sizeOf(/\.html$/), 4_000_000)
  })

  it("is named where the documents say how to read them without a network", () => {
    assert.include(text("docs/README.md"), "acme-svc docs")
  })
})

describe.runIf(isFull)("the pages of the site", () => {
  const folder = freshDirectory()
  const stop = Deferred.makeUnsafe<"SIGINT">()
  let browser: Browser
  let serving: Fiber.Fiber<{ readonly code: number }>
  let url = ""
  beforeAll(async () => {
    for (const [name, content] of site.files) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), content)
    }
    browser = await startBrowser()
    url = await new Promise((said) => {
      serving = Effect.runFork(
        freshPlace(null).run(["docs"], {
          process: { site: folder, stopSignal: Deferred.await(stop) },
          heard: (line) => said(/http:\S+/.exec(line)?.[0] ?? line)
        })
      )
    })
  })
  afterAll(async () => {
    await browser?.close()
    Deferred.doneUnsafe(stop, Effect.succeed("SIGINT"))
    await Effect.runPromise(Fiber.join(serving))
  })

  it("have no fault of HTML", async () => {
    const faults: Array<string> = []
    for (const page of shown) {
      faults.push(...(await htmlFaults(pages.get(page) ?? "")).map((fault) => `${page}: ${fault}`))
    }
    assert.deepStrictEqual(faults, [])
    process.stdout.write(`site: ${shown.length} pages without a fault of HTML\n`)
  })

  it.each(
    [
      { theme: "light", width: 390 },
      { theme: "light", width: 1440 },
      { theme: "dark", width: 390 },
      { theme: "dark", width: 1440 }
    ] as const
  )("can be read at $width in $theme, and ask no other host", async ({ theme, width }) => {
    const window = await openWindow(browser, { theme, width, height: 900 })
    const asked: Array<string> = []
    window.context.on("request", (request) => asked.push(request.url()))
    const faults: Array<string> = []
    for (const page of shown) {
      await window.page.goto(`${url}${page}`)
      faults.push(...(await accessFaults(window.page)).map((fault) => `${page}: ${fault}`))
      const overhang = await window.page.evaluate<number>(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
      )
      if (overhang > 0) faults.push(`${page}: is ${overhang} px too wide`)
    }
    assert.deepStrictEqual(faults, [])
    assert.isAbove(asked.length, shown.length)
    assert.deepStrictEqual(asked.filter((one) => !one.startsWith(url)), [])
    process.stdout.write(
      `site: ${shown.length} pages at ${width} in ${theme}: 0 violations, ${asked.length} requests, all to this host\n`
    )
    await window.close()
  })

  it.each(["served", "opened as a file"])("are searched by the keyboard when %s", async (way) => {
    const root = way === "served" ? url : `${pathToFileURL(folder).href}/`
    const window = await openWindow(browser)
    const { page } = window
    await page.goto(`${root}operate/jobs.html`)
    await page.keyboard.press("/")
    await page.keyboard.type("replace the CA")
    await page.getByRole("option").first().waitFor()
    // The check itself reads the style once more, which a browser does not permit for a file.
    if (way === "served") assert.deepStrictEqual(await accessFaults(page), [])
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await page.waitForURL(`${root}configure/rotation.html`)
    assert.strictEqual(await page.locator("h1").textContent(), "Replacing the CA")
    await window.close()
  })

  it("say that the search could not be loaded, and try again", async () => {
    const { complaints, context, page } = await openWindow(browser)
    await page.route("**/search-index.js", (route) => route.abort())
    await page.goto(`${url}operate/jobs.html`)
    await page.keyboard.press("/")
    await page.keyboard.type("replace the")
    await page.locator(".q-note", { hasText: "The search could not be loaded." }).waitFor()
    assert.include(await page.locator("#said").textContent(), "The search could not be loaded.")
    await page.unroute("**/search-index.js")
    await page.keyboard.type(" CA")
    await page.getByRole("option").first().waitFor()
    assert.isFalse(await page.locator(".q-note").isVisible())
    await page.locator("#q").fill("zzqqxxjj")
    await page.locator(".q-note", { hasText: "Nothing found" }).waitFor()
    await context.close()
    assert.deepStrictEqual([...new Set(complaints)].map((text) => text.slice(text.indexOf(" ") + 1)), [
      "Failed to load resource: net::ERR_FAILED"
    ])
  })

  it.each([390, 1440])("can be used with the keyboard alone at %d", async (width) => {
    const window = await openWindow(browser, { width, height: 900 })
    for (const page of ["index.html", "operate/jobs.html", "configure/rotation.html"]) {
      await window.page.goto(`${url}${page}`)
      assert.deepStrictEqual(await keyboardFaults(window.page), [], page)
    }
    await window.close()
  })

  it("can be read and left without scripts, but not searched", async () => {
    const window = await openWindow(browser, { hasScripts: false })
    const { page } = window
    await page.goto(`${url}operate/jobs.html`)
    assert.isFalse(await page.locator("#q").isVisible())
    await page.getByRole("navigation").getByRole("link", { name: "Upgrade" }).click()
    assert.strictEqual(await page.locator("h1").textContent(), "Upgrading")
    await window.close()
  })

  it("take the theme that the reader has chosen", async () => {
    const window = await openWindow(browser)
    const { page } = window
    const paper = () => page.evaluate<string>("getComputedStyle(document.documentElement).backgroundColor")
    await page.goto(url)
    const light = await paper()
    const button = page.locator("[data-theme-switch]")
    await button.click()
    assert.strictEqual(await paper(), light)
    await button.click()
    assert.notStrictEqual(await paper(), light)
    const dark = await paper()
    await page.goto(`${url}operate/jobs.html`)
    assert.strictEqual(await paper(), dark)
    await window.close()
  })
})
