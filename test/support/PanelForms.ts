import SqliteDatabase from "better-sqlite3"
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import type { Locator, Page } from "playwright-core"
import type { Demo, DemoOperator } from "../demo/Demo.ts"
import type { AcmeSession } from "./AcmeSession.ts"
import { totpNow } from "./Authenticator.ts"
import { operatorOf } from "./Browser.ts"
import { makeCsr } from "./Csr.ts"
import { patternOf } from "./PanelRoutes.ts"

/* Every form of the panel that changes something, with its subject, its input, and what the page says afterwards. */

/** The operator who is the subject of the forms of admins. */
export const bob: DemoOperator = { username: "bob", password: "Nine geese over the dam", role: "viewer" }

/** The operator who fills in the forms of one's own account. */
export const cora: DemoOperator = { username: "cora", password: "A lantern for the ferry", role: "operator" }

/** The texts of fields by their names. */
export interface Fields {
  readonly [name: string]: string
}

/** The subjects of forms, which are made anew for each form. */
export interface Ground {
  /** Makes an order with a certificate, and returns its path. */
  readonly issued: () => Promise<string>
  /** Makes an order without a certificate, and returns its path. `complete` gets the certificate. */
  readonly pending: () => Promise<{ readonly path: string; readonly complete: () => Promise<void> }>
  /** Makes an account without orders, and returns its path. `issue` gets a certificate for the account. */
  readonly account: () => Promise<{ readonly path: string; readonly issue: () => Promise<void> }>
  /** Makes a credential, and returns its path. */
  readonly credential: () => Promise<string>
  /** Makes a credential bind an account. */
  readonly bind: (credential: string, account: string) => void
  /** Makes a job that waits for its time, and returns its path. */
  readonly job: () => string
  /** Makes two jobs that have failed with the same error. */
  readonly alike: () => void
  /** Makes a token of an operator, and returns its id. The path is the page with the tokens. */
  readonly token: (path: string, password: string) => Promise<string>
  /** Signs an operator in from another browser. */
  readonly signIn: (operator: DemoOperator) => Promise<void>
  /** Changes the database in a way that the panel cannot. */
  readonly write: (statement: string, ...values: ReadonlyArray<unknown>) => void
  /** The data that the forms could change. */
  readonly records: () => string
}

/** The statements for the rows that only forms change. Other rows change by themselves, as those of due jobs do. */
const kept = [
  "SELECT id, status, contact FROM accounts ORDER BY id",
  "SELECT id, status, revoked_at FROM orders WHERE profile <> 'public' ORDER BY id",
  "SELECT kid, status, label FROM eab_keys ORDER BY kid",
  "SELECT id, name, revoked_at FROM api_tokens ORDER BY id",
  `SELECT id, username, password_hash, status, role, contact_email, totp_secret, totp_pending_secret FROM admin_users
   ORDER BY id`,
  // The worker of the demo ends a campaign, at any time, when its last certificate is revoked or replaced.
  "SELECT id, CASE WHEN finished THEN 'running' ELSE state END, confirmed_at FROM campaigns ORDER BY id",
  "SELECT issuer FROM compromised_issuers ORDER BY issuer",
  "SELECT token_hash, state FROM admin_sessions ORDER BY token_hash",
  "SELECT id FROM jobs WHERE kind = 'signer_issue' AND status = 'ready' AND run_at > unixepoch() + 600 ORDER BY id"
]

/** Returns the last part of a URL in the form that the pages write. */
const idOf = (url: string): string => url.split("/").at(-1) ?? ""

/** Returns the CSRF token that a page has for its forms. */
const csrfOf = async (page: Page, url: string): Promise<string> =>
  /X-CSRF-Token":"([\w-]+)"/.exec(await (await page.request.get(`${url}/ui/`)).text())?.[1] ?? ""

/** Returns the ground of a demo. `page` is a page of an admin. */
export const groundOf = (demo: Demo, client: AcmeSession, page: Page): Ground => {
  const database = new SqliteDatabase(join(demo.directory, "sqlite.db"), { timeout: 10_000 })
  const send = async (path: string, form: Fields): Promise<string> => {
    const headers = { "x-csrf-token": await csrfOf(page, demo.url), "hx-request": "true" }
    const answer = await page.request.post(`${demo.url}${path}`, { headers, form: { ...form } })
    if (!answer.ok()) throw new Error(`${path}: ${answer.status()} ${await answer.text()}`)
    return answer.text()
  }
  let made = 0
  const addJob = (status: "failed" | "ready", error?: string): string => {
    const id = randomUUID()
    const later = Math.floor(Date.now() / 1000) + 3600
    database.prepare(
      `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at,
         last_error) VALUES (?, 'signer_issue', ?, '{}', ?, ?, 1, 5, ?, ?, ?)`
    ).run(Buffer.from(id.replaceAll("-", ""), "hex"), id, status, later, later - 7200, later - 3660, error ?? null)
    return id
  }
  const name = (): string => `form-${++made}.corp.example`
  return {
    issued: async () => `/ui/orders/${idOf((await client.issue([name()], new Map())).order.url)}`,
    pending: async () => {
      const names = [name()]
      const placed = await client.newOrder(names)
      return {
        path: `/ui/orders/${idOf(placed.url)}`,
        complete: async () => {
          await client.authorize(placed.body, new Map())
          await client.finalize(placed.body, makeCsr({ names }).csr)
          await client.awaitOrder(placed.url, ["valid"])
        }
      }
    },
    account: async () => {
      const another = await client.another()
      const path = `/ui/accounts/${idOf(await another.register())}`
      return { path, issue: async () => void (await another.issue([name()], new Map())) }
    },
    credential: async () => /\/ui\/eab\/[\w-]+/.exec(await send("/ui/eab", { label: "Forms" }))?.[0] ?? "",
    bind: (credential, account) => {
      const [kid, id] = [credential, account].map((path) => Buffer.from(idOf(path).replaceAll("-", ""), "hex"))
      database.prepare("UPDATE accounts SET eab_kid = ? WHERE id = ?").run(kid, id)
    },
    job: () => `/ui/jobs/${addJob("ready")}`,
    alike: () => {
      const error = `planted ${++made}`
      for (let many = 0; many < 2; many++) addJob("failed", error)
    },
    token: async (path, password) => {
      const called = `token ${++made}`
      await send(`${path}/tokens`, { name: called, role: "viewer", expiresInDays: "30", password })
      const html = await (await page.request.get(`${demo.url}${path}`)).text()
      return new RegExp(`${called}<[\\s\\S]*?revoke=([\\w-]+)`).exec(html)?.[1] ?? ""
    },
    signIn: async ({ password, username }) => {
      const body = new URLSearchParams({ username, password })
      await fetch(`${demo.url}/ui/login`, { method: "POST", body, redirect: "manual" })
    },
    write: (statement, ...values) => void database.prepare(statement).run(...values),
    records: () => JSON.stringify(kept.map((statement) => database.prepare(statement).all()))
  }
}

/** How one form is filled in. */
export interface FormCase {
  /**
   * Whether the subject is the operator's own account. If so, an operator fills in the form, and otherwise an admin.
   */
  readonly isOwn?: boolean
  /** Makes the subject of the form, and returns the path of its page. */
  readonly page: (ground: Ground) => Promise<string> | string
  /** Whether the form comes with the answer to another form, which needs the script. */
  readonly isMade?: boolean
  /** Follows the link of the page to the form. */
  readonly lead?: (page: Page) => Promise<void>
  readonly well?: Fields | ((page: Page) => Promise<Fields>)
  /** The text that is shown when the form was accepted. */
  readonly says: string
  /** The wrong input, by default the token of another session. */
  readonly badly?: Fields
  /** The code with which the wrong input is refused. */
  readonly code?: string
}

const admin = operatorOf("admin").password
const wrong = { badly: { password: "not the password" }, code: "step_up_failed" }
const atBob = (change = "") => (ground: Ground): string => {
  ground.write("UPDATE admin_users SET status = 'active', role = 'viewer', totp_secret = NULL WHERE username = 'bob'")
  if (change !== "") ground.write(`UPDATE admin_users SET ${change} WHERE username = 'bob'`)
  return "/ui/operators/bob"
}
const atCampaign = (state: "paused" | "running") => ({ write }: Ground): string => {
  const id = randomUUID()
  const noOrder = Buffer.alloc(16)
  const octets = Buffer.from(id.replaceAll("-", ""), "hex")
  write(
    `INSERT INTO campaigns (id, state, filter, reason, created_at, actor_kind, revoke_at, filled_at, begun_at, span_seconds,
       revoked_to, filled_to, looked_to, paused_at) VALUES (?, ?, '{"profile":"corp"}', 'a bug', 1, 'cli', 4102444800, 1, 1,
       60, ?, ?, ?, 2)`,
    octets,
    state,
    noOrder,
    noOrder,
    noOrder
  )
  // The worker of the demo ends a campaign in which nothing is left. The newest certificate has no successor.
  write(
    `INSERT INTO campaign_certificates (order_id, campaign_id) SELECT id, ? FROM orders
     WHERE certificate IS NOT NULL AND revoked_at IS NULL AND cert_not_after > unixepoch() + 86400
     ORDER BY id DESC LIMIT 1`,
    octets
  )
  return `/ui/campaigns/${id}`
}
const atCora = (change = "") => (ground: Ground): string => {
  if (change !== "") ground.write(`UPDATE admin_users SET ${change} WHERE username = 'cora'`)
  return "/ui/account"
}
const enrolled = "totp_secret = zeroblob(20)"
const token = { name: "backup", role: "viewer", expiresInDays: "30" }

/** Returns the form of a page with this pattern, after opening the form if it is hidden. */
export const formOf = async (page: Page, pattern: string): Promise<Locator> => {
  const actions = await page.locator("form[method=post]").evaluateAll((forms) =>
    forms.map((form) => form.getAttribute("action") ?? "")
  )
  const at = actions.findIndex((action) => patternOf(action) === pattern)
  if (at < 0) throw new Error(`${page.url()} has no form for ${pattern}, only for ${actions.join(", ")}`)
  return page.locator("form[method=post]").nth(at)
}

/** Returns the element that hides a form until it is opened. */
export const foldOf = (form: Locator): Locator => form.locator("xpath=ancestor::details[1]/summary")

/** Opens the element that hides a form, if there is one. */
export const unfold = async (form: Locator): Promise<Locator> => {
  if (!await form.isVisible()) await foldOf(form).click()
  return form
}

/** Fills in the fields of a form. */
export const fill = async (form: Locator, fields: Fields): Promise<void> => {
  for (const [name, value] of Object.entries(fields)) {
    const field = form.locator(`[name=${name}]`).first()
    if (!await field.isVisible()) await foldOf(field).click()
    const kind = await field.evaluate((one) => `${one.tagName} ${one.getAttribute("type") ?? ""}`)
    if (kind.startsWith("SELECT")) await field.selectOption(value)
    else if (kind === "INPUT radio") await form.locator(`[name=${name}][value="${value}"]`).check()
    else await field.fill(value)
  }
}

/** Returns the button that sends a form. */
export const buttonOf = (form: Locator): Locator => form.locator("button[type=submit]").first()

const begin = async (page: Page): Promise<void> => {
  const form = await unfold(await formOf(page, "/ui/account/factor/begin"))
  await fill(form, { password: cora.password })
  await buttonOf(form).click()
  await page.waitForSelector("svg.qr")
}

/** Follows the link of a row to the form of that row. */
const choose = async (page: Page, link: string): Promise<void> => {
  await page.locator(link).first().click()
  await page.waitForSelector("#revoking button")
}

/** The forms of a sign-in, which work without scripts and have a separate part of the test. */
export const signInForms: ReadonlyArray<string> = [
  "/ui/login",
  "/ui/login/abandon",
  "/ui/login/enrol",
  "/ui/login/enrol/confirm",
  "/ui/login/verify"
]

/** The forms of a link that sets a password, which `e2e/newcomerPanel.test.ts` uses. */
export const linkForms: ReadonlyArray<string> = ["/ui/link", "/ui/link/password"]

/** Every other form, by the pattern of its route. */
export const forms: { readonly [pattern: string]: FormCase } = {
  "/ui/logout": { page: () => "/ui/orders", says: "You are signed out." },
  "/ui/certificates/revoke": {
    page: async ({ issued }) => `/ui/certificates/revoke?order=${idOf(await issued())}`,
    well: { reason: "4" },
    says: "1 certificate is revoked."
  },
  "/ui/orders/{id}/revoke": {
    page: ({ issued }) => issued(),
    well: { reason: "4" },
    says: "The certificate is revoked."
  },
  "/ui/orders/{id}/delete": {
    page: async ({ pending }) => (await pending()).path,
    says: "The order was deleted."
  },
  "/ui/accounts/{id}/contact": {
    page: async ({ account }) => (await account()).path,
    well: { contact: "ops@corp.example" },
    says: "The contacts were changed.",
    badly: { contact: "no address" },
    code: "bad_request"
  },
  "/ui/accounts/{id}/deactivate": {
    page: async ({ account }) => (await account()).path,
    says: "The account is deactivated."
  },
  "/ui/accounts/{id}/block": {
    page: async ({ account }) => (await account()).path,
    well: { reason: "It orders in a loop" },
    says: "The account is blocked.",
    badly: { reason: " " },
    code: "bad_request"
  },
  "/ui/accounts/{id}/unblock": {
    page: async ({ account, write }) => {
      const { path } = await account()
      // The account is the newest, and the others must still order.
      write("UPDATE accounts SET blocked_at = 1, block_reason = 'r' WHERE id = (SELECT max(id) FROM accounts)")
      return path
    },
    says: "The account is not blocked any more."
  },
  "/ui/accounts/{id}/delete": {
    page: async ({ account }) => (await account()).path,
    says: "The account was deleted, with its orders."
  },
  "/ui/eab": {
    page: () => "/ui/eab",
    well: { label: "Printers", names: "**.printers.example", prevalidated: "true" },
    says: "Keep the HMAC key now.",
    badly: { label: " " },
    code: "bad_request"
  },
  "/ui/eab/{kid}/scope": {
    page: ({ credential }) => credential(),
    well: { names: "**.example", maxAccounts: "3" },
    says: "What the credential may ask for is changed",
    badly: { names: "*.*.example" },
    code: "bad_request"
  },
  "/ui/eab/{kid}/revoke": { page: ({ credential }) => credential(), says: "The credential is revoked" },
  "/ui/eab/{kid}/delete": { page: ({ credential }) => credential(), says: "The credential was deleted" },
  "/ui/jobs/{id}/run": { page: ({ job }) => job(), says: "The job is due now" },
  "/ui/jobs/run-alike": {
    page: ({ alike }) => {
      alike()
      return "/ui/jobs"
    },
    says: "2 jobs are due now."
  },
  "/ui/jobs/{id}/cancel": { page: ({ job }) => job(), says: "The job is cancelled." },
  "/ui/notifications/test": {
    page: () => "/ui/notifications",
    well: { event: "certificate_issued" },
    says: "The test"
  },
  "/ui/profiles/{name}/explain": {
    page: () => "/ui/profiles/corp",
    well: { identifiers: "www.corp.example", clientIp: "192.0.2.7" },
    says: "The policy of corp",
    badly: { clientIp: "x" },
    code: "bad_request"
  },
  "/ui/profiles/{profile}/kinds/try": {
    page: () => "/ui/profiles/corp/kinds",
    well: { names: "a.corp.example", csr: makeCsr({ names: ["a.corp.example"] }).csr.toString("base64url") },
    says: "The CSR as default",
    badly: { names: "a.corp.example", csr: "-" },
    code: "bad_request"
  },
  "/ui/notifications/run": {
    page: ({ write }) => {
      write("UPDATE jobs SET status = 'failed' WHERE kind = 'notify_deliver' AND status <> 'done'")
      return "/ui/notifications"
    },
    says: "The delivery is due now"
  },
  "/ui/nonces/sweep": {
    page: () => "/ui/nonces",
    well: { ttlSeconds: "86400" },
    says: "deleted.",
    badly: { ttlSeconds: "-1" },
    code: "bad_request"
  },
  "/ui/campaigns": {
    page: ({ write }) => {
      write("DELETE FROM campaigns")
      return "/ui/campaigns"
    },
    well: { profile: "corp", name: "nothing.example", reason: "a bug" },
    says: "The campaign has started.",
    badly: { name: "nothing.example", reason: "a bug", pace: "0" },
    code: "bad_request"
  },
  "/ui/campaigns/{id}/pause": { page: atCampaign("running"), says: "The campaign is paused." },
  "/ui/campaigns/{id}/resume": { page: atCampaign("paused"), says: "The campaign is running." },
  "/ui/campaigns/{id}/end": { page: atCampaign("running"), says: "The campaign has ended." },
  "/ui/campaigns/{id}/confirm": {
    page: atCampaign("paused"),
    well: { password: admin },
    says: "What is left is revoked at the date of the campaign.",
    ...wrong
  },
  "/ui/authorities/{issuer}/compromise": {
    page: ({ write }) => {
      // The CA of the demo must go on issuing.
      const issuer = "ab".repeat(32)
      write("DELETE FROM compromised_issuers")
      write("INSERT OR REPLACE INTO crls VALUES (?, 1, x'30', 0, 4102444800)", issuer)
      return `/ui/authorities?compromise=${issuer}`
    },
    well: { password: admin },
    says: "The CA is compromised.",
    ...wrong
  },
  "/ui/operators/{username}/contact": {
    page: atBob(),
    well: { contact: "bob@example.org", password: admin },
    says: "The contact is changed.",
    ...wrong
  },
  "/ui/operators/{username}/role": {
    page: atBob(),
    well: { role: "operator", password: admin },
    says: "The role is changed.",
    ...wrong
  },
  "/ui/operators/{username}/reset-factor": {
    page: atBob(enrolled),
    well: { password: admin },
    says: "The second factor is removed.",
    ...wrong
  },
  "/ui/operators/{username}/disable": {
    page: atBob(),
    well: { password: admin },
    says: "The operator is disabled.",
    ...wrong
  },
  "/ui/operators/{username}/enable": {
    page: atBob("status = 'disabled'"),
    well: { password: admin },
    says: "The operator can sign in again.",
    ...wrong
  },
  "/ui/operators/{username}/sessions/revoke": {
    page: async (ground) => {
      const path = atBob()(ground)
      await ground.signIn(bob)
      return path
    },
    well: { password: admin },
    says: "All sessions have ended.",
    ...wrong
  },
  "/ui/operators/{username}/sessions/{id}/revoke": {
    page: async (ground) => {
      const path = atBob()(ground)
      await ground.signIn(bob)
      return path
    },
    lead: (page) => choose(page, "#sessions td a"),
    well: { password: admin },
    says: "The session has ended.",
    ...wrong
  },
  "/ui/operators/{username}/tokens": {
    page: (ground) => {
      ground.write("DELETE FROM api_tokens")
      return atBob()(ground)
    },
    well: { ...token, password: admin },
    says: "It is not shown again.",
    badly: { ...token, expiresInDays: "0", password: admin },
    code: "bad_request"
  },
  "/ui/operators/{username}/tokens/{id}/revoke": {
    page: async (ground) => {
      const path = atBob()(ground)
      return `${path}?revoke=${await ground.token(path, admin)}`
    },
    says: "The token is revoked."
  },
  "/ui/account/password": {
    isOwn: true,
    page: atCora(),
    well: { password: cora.password, newPassword: cora.password, repeated: cora.password },
    says: "Your password is changed.",
    badly: { password: cora.password, newPassword: "A heron by the weir", repeated: "Another heron" },
    code: "bad_request"
  },
  "/ui/account/contact": {
    isOwn: true,
    page: atCora(),
    well: { contact: "cora@example.org", password: cora.password },
    says: "Your contact is changed.",
    ...wrong
  },
  "/ui/account/sessions/{id}/revoke": {
    isOwn: true,
    page: async (ground) => {
      await ground.signIn(cora)
      return "/ui/account"
    },
    lead: (page) => choose(page, "#sessions tr:not(:has-text('this one')) td a"),
    says: "The session has ended."
  },
  "/ui/account/sign-out-everywhere": { isOwn: true, page: atCora(), says: "You are signed out." },
  "/ui/account/factor/begin": {
    isOwn: true,
    page: atCora(),
    well: { password: cora.password },
    says: "Scan this with an authenticator",
    ...wrong
  },
  "/ui/account/factor/confirm": {
    isOwn: true,
    page: atCora(),
    isMade: true,
    lead: begin,
    well: async (page) => ({ code: totpNow(await page.locator(".key [data-copy]").getAttribute("data-copy") ?? "") }),
    says: "Keep these recovery codes now.",
    badly: { code: "000000" },
    code: "invalid_code"
  },
  "/ui/account/factor/disable": {
    isOwn: true,
    page: atCora(enrolled),
    well: { password: cora.password },
    says: "Your second factor is off.",
    ...wrong
  },
  "/ui/account/factor/codes": {
    isOwn: true,
    page: atCora(enrolled),
    well: { password: cora.password },
    says: "Keep these recovery codes now.",
    ...wrong
  },
  "/ui/account/tokens": {
    isOwn: true,
    page: (ground) => {
      ground.write("DELETE FROM api_tokens")
      return "/ui/account"
    },
    well: { ...token, password: cora.password },
    says: "It is not shown again.",
    badly: { ...token, expiresInDays: "0", password: cora.password },
    code: "bad_request"
  },
  "/ui/account/tokens/{id}/revoke": {
    isOwn: true,
    page: async (ground) => `/ui/account?revoke=${await ground.token("/ui/operators/cora", admin)}`,
    says: "The token is revoked."
  }
}
