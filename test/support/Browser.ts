import chromium from "@sparticuz/chromium"
import { deepStrictEqual } from "node:assert/strict"
import type { Browser, BrowserContext, Page } from "playwright-core"
import { chromium as playwright } from "playwright-core"
import type { DemoOperator } from "../demo/Demo.ts"
import { operators } from "../demo/Demo.ts"
import { totpNow } from "./Authenticator.ts"
import { patienceMs } from "./Patience.ts"

/* A real browser from an npm package, so that the system need not have one. */

// The package's own list of flags turns off web security. It also makes one process do everything, and that process
// ends when there are two windows.
const flags = [
  "--no-sandbox",
  "--no-zygote",
  "--in-process-gpu",
  // Pages are drawn without an emulated graphics card, because the emulation would be most of the browser's work.
  "--disable-gpu",
  "--headless=shell"
]

/** Starts the browser. */
export const startBrowser = async (): Promise<Browser> =>
  playwright.launch({ executablePath: await chromium.executablePath(), args: flags, timeout: patienceMs })

/** The options with which a window is opened. */
export interface WindowOptions {
  readonly theme?: "light" | "dark"
  readonly width?: number
  readonly height?: number
  readonly hasScripts?: boolean
  /** How many pixels of the screen a pixel of the page is wide. */
  readonly scale?: number
}

/** A window with one page. `complaints` has everything that the browser found wrong with any page in the window. */
export interface Window {
  readonly context: BrowserContext
  readonly page: Page
  readonly complaints: Array<string>
  /** Closes the window. Fails if there were complaints. */
  readonly close: () => Promise<void>
}

/** Returns whether a report of the browser or of htmx is about a request that the panel refused on purpose. */
const isRefusal = (text: string): boolean =>
  /^(?:Failed to load resource: the server responded with a status of|Response Status Error Code) 4\d\d/.test(text)

/** Opens a window without cookies. */
export const openWindow = async (browser: Browser, options: WindowOptions = {}): Promise<Window> => {
  const { hasScripts = true, height = 800, scale = 1, theme = "light", width = 1280 } = options
  const context = await browser.newContext({
    colorScheme: theme,
    viewport: { width, height },
    deviceScaleFactor: scale,
    javaScriptEnabled: hasScripts,
    timezoneId: "Europe/Warsaw",
    locale: "en-GB"
  })
  context.setDefaultTimeout(patienceMs)
  const complaints: Array<string> = []
  const watch = (page: Page): void => {
    page.on("pageerror", (error) => complaints.push(`${page.url()}: ${error.message}`))
    page.on("console", (message) => {
      const isComplaint = message.type() === "error" || message.type() === "warning"
      if (isComplaint && !isRefusal(message.text())) complaints.push(`${page.url()}: ${message.text()}`)
    })
    // The browser also ends requests of a page that is left.
    page.on("requestfailed", (request) => {
      const url = new URL(request.url())
      if (!["localhost", "127.0.0.1"].includes(url.hostname)) {
        complaints.push(`${page.url()}: asked for ${request.url()}`)
      }
    })
  }
  context.on("page", watch)
  const page = await context.newPage()
  return {
    context,
    page,
    complaints,
    close: async () => {
      await context.close()
      deepStrictEqual(complaints, [])
    }
  }
}

/** Returns the operator of a demo with this role. */
export const operatorOf = (role: DemoOperator["role"]): DemoOperator => {
  const found = operators.find((one) => one.role === role)
  if (found === undefined) throw new Error(`the demo has no ${role}`)
  return found
}

/** Signs in with the form, and waits for the next page. */
export const signInAs = async (page: Page, url: string, { password, username }: DemoOperator): Promise<void> => {
  await page.goto(`${url}/ui/login`)
  await page.fill("[name=username]", username)
  await page.fill("[name=password]", password)
  await page.click("button[type=submit]")
  await page.waitForURL((at) => !at.pathname.startsWith("/ui/login") || at.pathname !== "/ui/login")
}

/**
 * Enrols an authenticator for the signed-in operator without showing the pages. Returns the key of the authenticator.
 */
export const enrol = async (
  { page }: Pick<Window, "page">,
  url: string,
  { password }: Pick<DemoOperator, "password">
): Promise<string> => {
  const csrf = /X-CSRF-Token":"([\w-]+)"/.exec(await (await page.request.get(`${url}/ui/`)).text())?.[1] ?? ""
  const send = async (path: string, form: { readonly [name: string]: string }) => {
    const headers = { "x-csrf-token": csrf, "hx-request": "true" }
    const answer = await page.request.post(`${url}/ui/account/factor/${path}`, { headers, form })
    deepStrictEqual(answer.status(), 200)
    return answer.text()
  }
  const [, key = ""] = /[?&]secret=([A-Z2-7]+)/.exec((await send("begin", { password })).replaceAll("&amp;", "&")) ?? []
  await send("confirm", { code: totpNow(key) })
  return key
}
