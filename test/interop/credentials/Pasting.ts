import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { verifyChain } from "../../support/Openssl.ts"
import { freePort } from "../../support/Ports.ts"
import { runCommand, startForeground } from "../Command.ts"
import { zone } from "../NameServer.ts"
import { equal } from "../Saying.ts"
import { makeInPanel } from "./Surfaces.ts"
import type { Stage } from "./Teams.ts"

/*
 * An operator makes a credential in the panel and copies texts by the buttons beside them. Each text is used unchanged,
 * in an empty folder. Settings that depend on the machine, such as ports, are given outside of the text.
 */

const clients = ["certbot", "lego", "Caddy"] as const

type Client = typeof clients[number]

/** The copied texts. */
export type Texts = { readonly [C in Client]: string }

const hostOf = ({ slug }: Stage): string => `host.pasted-${slug}.${zone}`

let lastCopy: Promise<unknown> = Promise.resolve()

/** Copies a text by its button. All windows have one clipboard, so they copy one after the other. */
const copied = (page: Page, client: Client): Promise<string> => {
  const copy = lastCopy.then(async () => {
    await page.locator(`.facts > div:has(dt:text-is("${client}")) .copy`).click()
    return await page.evaluate<string>("navigator.clipboard.readText()")
  })
  lastCopy = copy.catch(() => undefined)
  return copy
}

/** Makes a credential in the panel, and copies the texts for the clients. */
export const copyTexts = async (stage: Stage): Promise<Texts> => {
  const { surfaces: { panelUrl, window: { context, page } } } = stage
  await context.grantPermissions(["clipboard-read", "clipboard-write"])
  const names = [hostOf(stage).replace("host", "**")]
  await makeInPanel(page, panelUrl, "pasted", { names, prevalidated: true })
  const [certbot, lego, Caddy] = [
    await copied(page, "certbot"),
    await copied(page, "lego"),
    await copied(page, "Caddy")
  ]
  return { certbot, lego, Caddy }
}

/** Makes the empty folder of a client. */
const folderOf = ({ home }: Stage, client: Client): string => {
  const folder = join(home, `pasted-${client}`)
  mkdirSync(folder)
  return folder
}

const verified = (stage: Stage, file: string) =>
  verifyChain(readFileSync(file, "utf8"), stage.server.caFile, hostOf(stage))

/** Runs the line for certbot. A file of certbot answers what certbot would ask. */
export const pasteCertbot = async (stage: Stage, { certbot }: Texts): Promise<void> => {
  const folder = folderOf(stage, "certbot")
  mkdirSync(join(folder, "letsencrypt"))
  const settings = {
    "non-interactive": true,
    "agree-tos": true,
    "register-unsafely-without-email": true,
    authenticator: "standalone",
    "config-dir": join(folder, "config"),
    "work-dir": join(folder, "work"),
    "logs-dir": join(folder, "logs")
  }
  writeFileSync(
    join(folder, "letsencrypt/cli.ini"),
    Object.entries(settings).map(([key, value]) => `${key} = ${value}\n`).join("")
  )
  const env = { HOME: folder, XDG_CONFIG_HOME: folder, REQUESTS_CA_BUNDLE: stage.trust }
  await runCommand("sh", ["-c", certbot], { cwd: folder, env })
  await verified(stage, join(folder, "config/live", hostOf(stage), "fullchain.pem"))
}

/** Runs the line for lego. */
export const pasteLego = async (stage: Stage, { lego }: Texts): Promise<void> => {
  const folder = folderOf(stage, "lego")
  await runCommand("sh", ["-c", lego], { cwd: folder, env: { HOME: folder, LEGO_CA_CERTIFICATES: stage.trust } })
  await verified(stage, join(folder, ".lego/certificates", `${hostOf(stage)}.crt`))
}

/** Starts Caddy with the text as the beginning of its Caddyfile. Only the ports are added to it. */
export const pasteCaddy = async (stage: Stage, { Caddy }: Texts): Promise<void> => {
  const folder = folderOf(stage, "Caddy")
  const ports = `  admin off\n  http_port ${await freePort()}\n  https_port ${await freePort()}\n`
  const site = `${hostOf(stage)} {\n  respond "here"\n}\n`
  const config = join(folder, "Caddyfile")
  writeFileSync(config, `${Caddy.replace("{\n", `{\n${ports}`)}\n\n${site}`)
  const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, SSL_CERT_FILE: stage.trust }
  const caddy = await startForeground("caddy", ["run", "--config", config], { env, ready: /serving initial config/ })
  try {
    await caddy.waitFor(/certificate obtained successfully/)
  } finally {
    await caddy.stop()
  }
}

/** Checks what the page of the credential counts after all clients had their certificates. */
export const countPasted = async ({ surfaces: { panelUrl, window: { page } } }: Stage): Promise<void> => {
  await page.goto(`${panelUrl}/ui/eab`)
  await page.locator("tr:has-text('pasted') a").first().click()
  const facts = page.locator(".facts > div")
  const said = async (term: string) => (await facts.filter({ hasText: term }).locator("dd").innerText()).trim()
  equal(
    [await said("Orders in a day"), await said("Accounts it may bind")],
    [`${clients.length} in the last 24 hours; no limit`, `${clients.length} until now; no limit`],
    "what the page counts"
  )
}
