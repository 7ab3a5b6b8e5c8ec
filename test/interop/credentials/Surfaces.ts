import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import type { Window } from "../../support/Browser.ts"
import { openWindow, signInAs } from "../../support/Browser.ts"
import type { Fields } from "../../support/PanelForms.ts"
import { buttonOf, fill, formOf, unfold } from "../../support/PanelForms.ts"
import type { Server } from "../../support/Server.ts"
import { runToEnd } from "../../support/Server.ts"

/* The three ways to set what a credential may ask for: the API, the command line, and the panel in a browser. */

/** What a credential may ask for, as the members of the API. */
export interface Scope {
  readonly names?: ReadonlyArray<string>
  readonly kinds?: ReadonlyArray<string>
  readonly ordersPerDay?: number
  readonly maxAccounts?: number
  readonly expiresAt?: string
  readonly prevalidated?: boolean
  readonly clear?: ReadonlyArray<string>
}

/** A credential as the API and the command line print it. */
export type Shown = Scope & { readonly kid: string; readonly label: string; readonly hmacKey?: string }

/** One way to set what a credential may ask for. Both acts fail with the refusal of the service. */
export interface OperatorSurface {
  readonly name: string
  /** Makes a credential, and returns its kid and its HMAC key. */
  readonly create: (label: string, scope: Scope) => Promise<{ readonly kid: string; readonly hmacKey: string }>
  /** Changes what a credential may ask for. */
  readonly change: (kid: string, scope: Scope) => Promise<void>
}

/** All surfaces of a service, and what they have in common. */
export interface OperatorSurfaces {
  readonly api: OperatorSurface
  readonly cli: OperatorSurface
  readonly panel: OperatorSurface
  /** Reads a credential over the API. */
  readonly show: (kid: string) => Promise<Shown>
  /** Runs a command of the service. Fails if it does not end with 0. */
  readonly command: (...words: ReadonlyArray<string>) => Promise<string>
  /** The window of an operator who is signed in at the panel. */
  readonly window: Window
  readonly panelUrl: string
}

const operator = { username: "otto", password: "Wrocław tramway, 4 stops", role: "operator" } as const

/** Returns the section of the configuration for the listener of operators. */
export const adminConfig = (port: number): string =>
  `[admin]\nenabled = true\nbind_address = "127.0.0.1:${port}"\nbase_url = "http://localhost:${port}"\n`

type Send = (method: string, path: string, body?: object) => Promise<Shown>

/** Returns how a program with a token sends requests to the API. */
const sending = (url: string, token: string): Send => async (method, path, body) => {
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` }
  const answer = await fetch(`${url}${path}`, {
    method,
    headers,
    ...body === undefined ? {} : { body: JSON.stringify(body) }
  })
  if (!answer.ok) throw new Error(await answer.text())
  return await answer.json() as Shown
}

const apiSurface = (send: Send): OperatorSurface => ({
  name: "API",
  create: async (label, scope) => {
    const { hmacKey = "", kid } = await send("POST", "/api/eab", { label, ...scope })
    return { kid, hmacKey }
  },
  change: async (kid, scope) => void await send("PATCH", `/api/eab/${kid}`, scope)
})

const flagsOf = (scope: Scope): ReadonlyArray<string> =>
  Object.entries(scope).flatMap(([member, value]: readonly [string, Scope[keyof Scope]]) => {
    const flag = `--${member.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
    if (value === true) return [flag]
    return Array.isArray(value) ? value.flatMap((one) => [flag, one]) : [flag, String(value)]
  })

const cliSurface = (command: OperatorSurfaces["command"]): OperatorSurface => ({
  name: "command line",
  create: async (label, scope) => {
    const made: Required<Shown> = JSON.parse(
      await command("eab", "create", "--label", label, ...flagsOf(scope), "--json")
    )
    return { kid: made.kid, hmacKey: made.hmacKey }
  },
  change: async (kid, scope) => void await command("eab", "set", kid, ...flagsOf(scope))
})

const fieldsOf = (scope: Scope): Fields =>
  Object.fromEntries(
    Object.entries(scope).map(([member, value]: readonly [string, Scope[keyof Scope]]) => [
      member,
      Array.isArray(value) ? value.join("\n") : String(value)
    ])
  )

/** Sends a form of the panel, and waits for what an accepted form shows. Fails with the refusal in the form. */
const sendForm = async (page: Page, pattern: string, fields: Fields, shows: string): Promise<void> => {
  const form = await unfold(await formOf(page, pattern))
  await fill(form, fields)
  await buttonOf(form).click()
  const refusal = page.locator(".refusal:not(:empty)")
  await page.locator(shows).or(refusal).first().waitFor()
  if (await refusal.count() > 0) throw new Error(await refusal.first().innerText())
}

/** Makes a credential in the panel. Its page with the secret is shown afterwards. */
export const makeInPanel = async (page: Page, url: string, label: string, scope: Scope): Promise<void> => {
  await page.goto(`${url}/ui/eab`)
  await sendForm(page, "/ui/eab", { label, ...fieldsOf(scope) }, "#secret")
}

const panelSurface = (page: Page, url: string): OperatorSurface => ({
  name: "panel",
  create: async (label, scope) => {
    await makeInPanel(page, url, label, scope)
    const [kid = "", hmacKey = ""] = await page.locator(".secret code").allInnerTexts()
    return { kid, hmacKey }
  },
  change: async (kid, scope) => {
    await page.goto(`${url}/ui/eab/${kid}`)
    await sendForm(page, "/ui/eab/{kid}/scope", fieldsOf(scope), "text=What the credential may ask for is changed")
  }
})

/** Makes an operator, and opens all surfaces of a service. */
export const openSurfaces = async (
  server: Server,
  databaseUrl: string | undefined,
  browser: Browser,
  port: number
): Promise<OperatorSurfaces> => {
  const { directory } = server
  const env = databaseUrl === undefined ? {} : { ACME_SVC_DATABASE__URL: databaseUrl }
  const command: OperatorSurfaces["command"] = async (...words) => {
    const { code, stderr, stdout } = await runToEnd(words, { config: null, directory, env })
    if (code !== 0) throw new Error(stderr)
    return stdout
  }
  writeFileSync(join(directory, "password"), `${operator.password}\n`, { mode: 0o600 })
  const { role, username } = operator
  await command("admin", "user", "create", username, "--role", role, "--password-file", "password")
  const words = ["--name", "interop", "--role", role, "--expires-in", "1"]
  const token = (await command("admin", "token", "create", username, ...words)).trim()
  const panelUrl = `http://localhost:${port}`
  const window = await openWindow(browser)
  await signInAs(window.page, panelUrl, operator)
  const send = sending(panelUrl, token)
  return {
    api: apiSurface(send),
    cli: cliSurface(command),
    panel: panelSurface(window.page, panelUrl),
    show: (kid) => send("GET", `/api/eab/${kid}`),
    command,
    window,
    panelUrl
  }
}
