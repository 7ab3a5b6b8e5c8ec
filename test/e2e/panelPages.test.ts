import type { APIResponse, Browser } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { Demo } from "../demo/Demo.ts"
import { startDemo } from "../demo/Demo.ts"
import type { Window } from "../support/Browser.ts"
import { openWindow, operatorOf, signInAs, startBrowser } from "../support/Browser.ts"
import { accessFaults, htmlFaults, keyboardFaults } from "../support/Checked.ts"
import { builtServer } from "../support/Databases.ts"
import type { FileRow, PageRow, Reader, Row, WayRow } from "../support/PanelPages.ts"
import { nameOf, readers, rows } from "../support/PanelPages.ts"
import { enlistHalf, half, pathOf } from "../support/PanelPaths.ts"

/*
 * Checks every page of the panel for everything that is required of it, and prints a table. `Table.test.ts` fails if a
 * page has no row.
 */

const columns = [...readers, "empty", "populated", "360 px", "keyboard", "light", "dark", "no script", "html"] as const

type Column = typeof columns[number]

const outcome = (answer: APIResponse): string => {
  if (answer.status() !== 303) return String(answer.status())
  const { pathname } = new URL(answer.headers()["location"] ?? "", answer.url())
  return pathname === "/ui/login" ? "sign-in" : pathname === "/ui/login/verify" ? "verify" : `to ${pathname}`
}

/** Returns the status that the answer to a reader must have. */
const expectedFor = (row: Row, reader: Reader): string => {
  const rank = (one: Reader) => readers.indexOf(one)
  const given = row.kind === "way" ? `to ${row.to}` : String(row.kind === "page" ? row.status ?? 200 : 200)
  if (row.from === "none") return given
  if (row.from === "half") return reader === "half" ? given : "sign-in"
  if (reader === "none") return "sign-in"
  if (reader === "half") return "verify"
  return rank(reader) >= rank(row.from) ? given : "403"
}

const table = (cells: ReadonlyMap<string, ReadonlyMap<Column, string>>): string => {
  const lines = [
    ["", ...columns],
    ...rows.map((row) => [nameOf(row), ...columns.map((column) => cells.get(nameOf(row))?.get(column) ?? "?")])
  ]
  const widths = lines[0]?.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0))) ?? []
  return lines.map((line) => line.map((word, at) => word.padEnd(widths[at] ?? 0)).join("  ").trimEnd()).join("\n")
}

describe("every page of the panel", () => {
  let demo: Demo
  let empty: Demo
  let browser: Browser
  const windows = new Map<Reader | "plain" | "new", Window>()
  const cells = new Map<string, Map<Column, string>>()

  const windowOf = (name: Reader | "plain" | "new"): Window => {
    const window = windows.get(name)
    if (window === undefined) throw new Error(`no window ${name}`)
    return window
  }
  const open = async (name: Reader | "plain" | "new", options?: Parameters<typeof openWindow>[1]) => {
    const window = await openWindow(browser, options)
    windows.set(name, window)
    return window
  }
  const get = (name: Reader | "new", path: string, headers = {}) =>
    windowOf(name).page.request.get(`${name === "new" ? empty.url : demo.url}${path}`, { maxRedirects: 0, headers })

  /**
   * A session that lacks its second factor lives for five minutes (docs/contribute/decisions/admin.md, "Sign-in"),
   * which is too short for all pages.
   */
  let halfSince = -Infinity
  const keepHalf = async (): Promise<void> => {
    if (performance.now() - halfSince < 120_000) return
    const { context, page } = windowOf("half")
    await context.clearCookies()
    await signInAs(page, demo.url, half)
    halfSince = performance.now()
  }

  const pathFor = async (row: Row): Promise<string> => {
    const reader = row.from === "none" ? "none" : "admin"
    const path = await pathOf(row, async (list) => (await get(reader, list)).text())
    if (path === undefined) throw new Error(`nothing leads to ${nameOf(row)}`)
    return path
  }

  beforeAll(async () => {
    await builtServer()
    ;[browser, demo, empty] = await Promise.all([startBrowser(), startDemo(), startDemo({ state: "empty" })])
    await enlistHalf(browser, demo)
    await open("none")
    await open("half")
    for (const role of ["viewer", "operator", "admin"] as const) {
      await signInAs((await open(role)).page, demo.url, operatorOf(role))
    }
    await signInAs((await open("plain", { hasScripts: false })).page, demo.url, operatorOf("admin"))
    await signInAs((await open("new")).page, empty.url, operatorOf("admin"))
    // The page must not change while it is checked.
    for (const window of windows.values()) {
      await window.page.route(/[?&]poll=/, (route) => route.fulfill({ status: 204 }))
    }
  })
  afterAll(async () => {
    for (const { context } of windows.values()) await context.close()
    await browser?.close()
    await Promise.all([demo?.stop(), empty?.stop()])
  })

  /** Records the faults of a cell, which are reported when the row is done. */
  const noting = (row: Row) => {
    const faults: Array<string> = []
    const noted = new Map<Column, string>(columns.map((column) => [column, "–"]))
    cells.set(nameOf(row), noted)
    return {
      faults,
      note: (column: Column, word: string, found: ReadonlyArray<string>) => {
        if (!(noted.get(column) ?? "").startsWith("✗")) noted.set(column, found.length === 0 ? word : `✗ ${word}`)
        faults.push(...found.map((fault) => `${column}: ${fault}`))
      }
    }
  }
  const differs = (actual: unknown, expected: unknown): ReadonlyArray<string> =>
    actual === expected ? [] : [`${String(actual)} in place of ${String(expected)}`]

  const judgeFile = async (row: FileRow | WayRow, path: string, { note }: ReturnType<typeof noting>) => {
    const of = (answer: APIResponse): ReadonlyArray<string> =>
      row.kind === "way" ? [] : [
        ...differs(answer.headers()["content-type"]?.split(";")[0], row.type),
        ...differs((answer.headers()["content-disposition"] ?? "").startsWith("attachment"), row.isSaved)
      ]
    const given = expectedFor(row, "admin")
    const populated = await get("admin", path)
    note("populated", given, [...differs(outcome(populated), given), ...of(populated)])
    const isThere = row.kind === "way" || row.isOnEmpty || row.from === "none"
    const answer = await get("new", path)
    const expected = isThere ? given : "404"
    note("empty", expected, [...differs(outcome(answer), expected), ...isThere ? of(answer) : []])
  }

  const judgePage = async (row: PageRow, path: string, { faults, note }: ReturnType<typeof noting>) => {
    const reader = row.from === "none" || row.from === "half" ? row.from : "admin"
    const status = row.status ?? 200
    const { complaints, page } = windowOf(reader)
    const lacks = (text: string, wanted: string) => text.includes(wanted) ? [] : [`does not say “${wanted}”`]

    const answer = await page.goto(`${demo.url}${path}`)
    const heading = await page.locator("main h1").first().innerText()
    const html = await (await get(reader, path)).text()
    note("populated", String(status), [
      ...differs(answer?.status(), status),
      ...lacks(await page.locator("main").textContent() ?? "", row.says)
    ])
    note("light", "ok", await accessFaults(page))
    // A change of colours does not change the page, but buttons would animate the change.
    await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" })
    note("dark", "ok", await accessFaults(page))
    await page.emulateMedia({ colorScheme: "light", reducedMotion: null })
    note("keyboard", "ok", await keyboardFaults(page))

    await page.setViewportSize({ width: 360, height: 740 })
    await page.goto(`${demo.url}${path}`)
    const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    note("360 px", "ok", [...differs(await page.evaluate(overflow), 0), ...await accessFaults(page)])
    await page.setViewportSize({ width: 1280, height: 800 })

    // Actions that a role may not do are not shown, except actions on one's own account.
    if (row.from === "viewer" && row.pattern !== "/ui/account") {
      const forms = (await (await get("viewer", path)).text()).match(/hx-post="(?!\/ui\/logout)[^"]*"/g) ?? []
      note("viewer", String(status), forms.map((form) => `shows ${form}`))
    }
    const fragment = await (await get(reader, path, { "hx-request": "true" })).text()
    const isEmptyThere = row.saysEmpty === undefined ? 404 : row.leadsBack === true ? 303 : status
    const onEmpty = await get(row.from === "half" ? "half" : "new", path)
    const emptyHtml = await onEmpty.text()
    note("empty", String(isEmptyThere), [
      ...differs(onEmpty.status(), isEmptyThere),
      ...isEmptyThere === 303
        ? []
        : lacks(emptyHtml.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " "), row.saysEmpty ?? "Not found")
    ])
    note("html", "ok", [
      ...await htmlFaults(html),
      ...isEmptyThere === 303 ? [] : await htmlFaults(emptyHtml),
      ...differs(fragment.includes("<html"), false)
    ])

    // Sessions that lack their second factor, and strangers, have no window without scripts. They use the cookies of
    // another window.
    const plain = windowOf("plain")
    const kept = await plain.context.cookies()
    await plain.context.clearCookies()
    await plain.context.addCookies(await windowOf(reader).context.cookies())
    const read = await plain.page.goto(`${demo.url}${path}`)
    note("no script", "ok", [
      ...differs(read?.status(), status),
      ...differs(await plain.page.locator("main h1").first().innerText(), heading),
      ...differs(
        await plain.page.locator("main tbody tr").count(),
        [...html.matchAll(/<tr(?=[ >])/g)].length - [...html.matchAll(/<thead>/g)].length
      ),
      ...differs(await plain.page.locator(".noscript").isVisible(), true)
    ])
    await plain.context.clearCookies()
    await plain.context.addCookies(kept)
    faults.push(...complaints.splice(0), ...plain.complaints.splice(0))
  }

  it.each(rows.map((row) => ({ name: nameOf(row), row })))("fulfils every requirement: $name", async ({ row }) => {
    await keepHalf()
    const noted = noting(row)
    const path = await pathFor(row)
    for (const reader of readers) {
      const answer = await get(reader, path)
      const expected = expectedFor(row, reader)
      const { searchParams } = new URL(answer.headers()["location"] ?? "", answer.url())
      noted.note(reader, expected, [
        ...differs(outcome(answer), expected),
        ...expected === "sign-in" && row.from !== "half" ? differs(searchParams.get("next"), path) : []
      ])
    }
    await (row.kind === "page" ? judgePage(row, path, noted) : judgeFile(row, path, noted))
    assert.deepStrictEqual(noted.faults, [], path)
  })

  it("prints the table", () => {
    const written = table(cells)
    process.stdout.write(`\n${written}\n`)
    assert.notMatch(written, /[?✗]/)
  })
})
