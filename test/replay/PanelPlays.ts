import { chosen, password } from "../support/Operators.ts"
import { leafSerial } from "./Ca.ts"
import { code, csrfToken, ids, issuer, origin, sessionId } from "./Ground.ts"
import type { Group, Noun, RequestPlay } from "./Play.ts"
import { bearer, distinct, nobody, nouns, seatOf, session } from "./Play.ts"

/*
 * The requests of the panel, which use every page with its filters, and every form with each of its fields wrong, one
 * after the other.
 */

type Values = Readonly<Record<string, readonly [string, ...ReadonlyArray<string>]>>

type By = "viewer" | "operator" | "admin" | "nobody" | { readonly seat: string }

interface PageEntry {
  readonly noun: Noun
  readonly path: string
  readonly by: By
  readonly query?: Values
  /** Other paths of the same route. */
  readonly others?: ReadonlyArray<string>
}

interface FormEntry {
  readonly noun: Noun
  readonly path: string
  readonly by: By
  /** The page with the form. */
  readonly on: string
  readonly fields?: Values
  readonly others?: ReadonlyArray<string>
}

const profile: Values = { profile: ["default", "other", "closed", "none"] }
const page: Values = { page: ["1", "2", "0", "-1", "x", "100001"] }
const period: Values = { since: ["2027-01-01", "2027-01-05T08:00:00Z", "yesterday"], until: ["2027-01-10", "tomorrow"] }
const format: Values = { format: ["csv", "json", "xml"] }
const orderFilters: Values = {
  ...profile,
  accountId: [ids.owner, ids.nobody, "x"],
  status: ["valid", "revoked", "pending", "bogus"],
  identifier: ["www.example.org", "WWW.example.org"],
  identifierSuffix: ["example.org", "%"],
  identifierContains: ["alias", "_"],
  certSerial: [leafSerial, "0A:01", "xyz"],
  ...period
}
const { since: _since, status: _status, until: _until, ...certificateFilters } = orderFilters
const accountFilters: Values = { ...profile, status: ["valid", "deactivated", "bogus"], eabKid: [ids.bound, "x"] }
const expiringFilters: Values = {
  ...profile,
  days: ["30", "5", "0", "x", "4000"],
  superseded: ["hide", "show", "false", "true", "x"]
}
const auditFilters: Values = {
  ...profile,
  accountId: [ids.owner, "x"],
  orderId: [ids.valid, "x"],
  certSerial: ["0a01", "xyz"],
  requestId: ["request-0"],
  event: ["certificate_issued", "bogus"],
  outcome: ["success", "failure", "bogus"],
  actorKind: ["acme", "cli", "bogus"],
  ...period
}

const at = (path: string, noun: Noun, more: Partial<PageEntry> = {}): PageEntry => ({
  noun,
  path,
  by: "viewer",
  ...more
})

const one = (
  pattern: string,
  noun: Noun,
  id: string,
  others: ReadonlyArray<string> = [],
  more: Partial<PageEntry> = {}
): PageEntry => {
  const path = (value: string) => pattern.replace(/\{\w+\}/, value)
  return {
    noun,
    path: path(id),
    by: "viewer",
    others: [...others, ids.nobody, "x", "%00", "x".repeat(200)].map(path),
    ...more
  }
}

const pages: ReadonlyArray<PageEntry> = [
  at("/", "service", { by: "nobody" }),
  at("/ui", "service", { by: "nobody" }),
  at("/ui/", "service", { query: { ...profile, range: ["24h", "7d", "30d", "x"] } }),
  at("/ui/search", "service", { query: { q: ["example.org", ids.valid, ids.bound, "0a01", "olga", "a", "none"] } }),
  one("/ui/static/{name}", "service", "none.css", [], { by: "nobody" }),
  at("/ui/login", "session", {
    by: "nobody",
    query: { next: ["/ui/jobs", "//elsewhere.example", "/ui/login"], why: ["ended", "x"] }
  }),
  at("/ui/link", "links", { by: "nobody" }),
  at("/ui/login/verify", "session", { by: { seat: "dora-half" } }),
  at("/ui/login/enrol", "session", { by: { seat: "bob-half" } }),
  at("/ui/account", "session", {
    by: { seat: "hugo" },
    query: { done: ["password-changed", "contact-changed", "x"], revoke: [ids.ownToken, sessionId("hugo"), "x"] }
  }),
  at("/ui/certificates", "certificates", {
    query: {
      ...certificateFilters,
      state: ["valid", "ending", "ended", "revoked", "bogus"],
      endsAfter: ["2027-01-01", "x"],
      endsBefore: ["2027-01-10", "x"],
      sort: ["newest", "soonest", "latest", "bogus"],
      ...page
    }
  }),
  at("/ui/certificates/revoke", "certificates", {
    by: "operator",
    query: { order: [ids.valid, ids.revokedOrder, ids.pending, ids.nobody, "x"] }
  }),
  at("/ui/orders", "orders", { query: { ...orderFilters, ...page } }),
  at("/ui/orders/export", "orders", { query: { ...orderFilters, ...format } }),
  one("/ui/orders/{id}", "orders", ids.valid, [
    ids.revokedOrder,
    ids.pending,
    ids.ready,
    ids.processing,
    ids.invalid,
    ids.expired,
    ids.relayed
  ], { query: { done: ["revoked", "x"] } }),
  one("/ui/orders/{id}/chain.pem", "orders", ids.valid, [ids.pending]),
  at("/ui/accounts", "accounts", { query: { ...accountFilters, ...page } }),
  at("/ui/accounts/export", "accounts", { query: { ...accountFilters, ...format } }),
  one("/ui/accounts/{id}", "accounts", ids.owner, [ids.deactivated, ids.idle], {
    query: { done: ["contact", "deactivated", "x"] }
  }),
  one("/ui/accounts/{id}/orders", "accounts", ids.owner, [ids.idle], { query: page }),
  at("/ui/eab", "credentials", { query: { status: ["active", "revoked", "bogus"], ...page, done: ["deleted", "x"] } }),
  at("/ui/eab/export", "credentials", { query: { status: ["active", "bogus"], ...format } }),
  one("/ui/eab/{kid}", "credentials", ids.bound, [ids.revokedCredential, ids.narrowCredential], {
    query: { done: ["revoked", "x"] }
  }),
  at("/ui/expiring", "expiring", { query: { ...expiringFilters, ...page } }),
  at("/ui/expiring/export", "expiring", { query: { ...expiringFilters, ...format } }),
  at("/ui/campaigns", "campaigns", { query: page }),
  at("/ui/campaigns/preview", "campaigns", { query: { profile: ["default", "none"], key: ["rsa", "dsa"] } }),
  one("/ui/campaigns/{id}", "campaigns", ids.nobody),
  at("/ui/upstream-orders", "upstream", { query: { ...profile, status: ["processing", "invalid", "bogus"], ...page } }),
  one("/ui/upstream-orders/{id}", "upstream", ids.relayed, [ids.invalid, ids.valid]),
  at("/ui/jobs", "jobs", {
    query: { kind: ["signer_issue", "bogus"], status: ["failed", "bogus"], orderId: [ids.processing, "x"], ...page }
  }),
  one("/ui/jobs/{id}", "jobs", ids.failed, [ids.waiting, ids.running, ids.done, ids.delivery], {
    query: { done: ["advanced", "cancelled", "x"] }
  }),
  at("/ui/notifications", "notifications", { query: { ...page, done: ["advanced", "x"] } }),
  at("/ui/audit", "audit", { query: { ...auditFilters, ...page } }),
  at("/ui/audit/export", "audit", { query: { ...auditFilters, ...format } }),
  at("/ui/audit/chain", "chain", { query: { after: ["1", "x"], head: [`1:${"a".repeat(64)}`] } }),
  one("/ui/audit/{id}", "audit", "2", ["1", "3", "7", "0", "01"]),
  at("/ui/workers", "workers"),
  at("/ui/authorities", "authorities"),
  one("/ui/authorities/{issuer}", "authorities", issuer, ["0".repeat(64), "x"]),
  one("/ui/authorities/{issuer}/ca.pem", "authorities", issuer),
  one("/ui/authorities/{issuer}/ca.crl", "authorities", issuer),
  at("/ui/profiles", "profiles"),
  one("/ui/profiles/{name}", "trials", "default", ["other", "closed", "none"]),
  one("/ui/profiles/{name}/filter", "profiles", "default", ["other", "closed", "none"]),
  one("/ui/profiles/{profile}/kinds", "kinds", "default", ["other", "closed", "none"]),
  at("/ui/configuration", "configuration", { query: profile }),
  at("/ui/nonces", "nonces", { query: { done: ["swept", "x"], removed: ["3", "x"] } }),
  at("/ui/operators", "operators", {
    by: "admin",
    query: { status: ["active", "disabled", "bogus"], role: ["viewer", "bogus"], ...page }
  }),
  one("/ui/operators/{username}", "operators", "bob", ["anna", "carl", "dora", "erin", "Bob"], {
    by: "admin",
    query: { done: ["role-changed", "x"], revoke: [ids.token, sessionId("bob"), "x"] }
  })
]

const step: Values = { password: [password, "Kraków tramway, 5 stops"] }
const campaign: Values = {
  profile: ["default", "none"],
  key: ["rsa", "dsa"],
  serials: ["0a01", "x"],
  reason: ["a bug", ""],
  revokeAt: ["2099-01-01", "2001-01-01", "x"]
}
const contact: Values = { contact: ["new@example.org", "no address", "Name <a@example.org>"] }
const token: Values = {
  name: ["deploy", "token of olga", "x".repeat(65), "a\u001bb"],
  role: ["viewer", "operator", "admin", "bogus"],
  expiresInDays: ["30", "0", "367", "x", "1.5"],
  allowedAddresses: ["192.0.2.0/24", "192.0.2.1, 2001:db8::/32", "192.0.2.1/24", "x"],
  ...step
}

const form = (pattern: string, noun: Noun, id: string, more: Partial<FormEntry> = {}): FormEntry => {
  const path = (value: string) => pattern.replace(/\{\w+\}/, value)
  const { others = [] } = more
  return {
    noun,
    path: path(id),
    by: "operator",
    on: path(id).split("/").slice(0, 4).join("/"),
    ...more,
    ...pattern.includes("{") ? { others: [...others, ids.nobody, "x"].map(path) } : {}
  }
}

const bobs = (
  pattern: string,
  fields: Values = {},
  username = "bob",
  others: ReadonlyArray<string> = ["anna", "carl", "nobody"]
): FormEntry =>
  form(`/ui/operators/{username}/${pattern}`, "operators", username, {
    by: "admin",
    fields: { ...fields, ...step },
    others
  })

const own = (pattern: string, seat: string, fields: Values = {}, more: Partial<FormEntry> = {}): FormEntry =>
  form(`/ui/${pattern}`, "session", "", { by: { seat }, on: "/ui/account", fields, ...more })

const forms: ReadonlyArray<FormEntry> = [
  own("login", "", {
    username: ["vera", "nobody", "carl", "dora", "VERA"],
    password: [password, "wrong"],
    next: ["/ui/jobs", "//elsewhere.example"]
  }, { by: "nobody", on: "/ui/login" }),
  form("/ui/link", "links", "", { by: "nobody", on: "/ui/link", fields: { token: ["x", "l".repeat(43)] } }),
  form("/ui/link/password", "links", "", {
    by: "nobody",
    on: "/ui/link",
    fields: { token: ["x"], username: ["bob"], newPassword: [password, "short"], repeated: [password, "short"] }
  }),
  own("login/verify", "dora-half", { code: [code, "000000", "ABCDE-FGHIJ"], next: ["/ui/jobs", "x"] }, {
    on: "/ui/login/verify"
  }),
  own("login/enrol", "bob-half", { next: ["/ui/jobs"] }, { on: "/ui/login/enrol" }),
  own("login/enrol/confirm", "erin-half", { code: [code, "000000"], next: ["/ui/jobs"] }, { on: "/ui/login/enrol" }),
  own("login/abandon", "dora-half", {}, { on: "/ui/login/verify" }),
  own("logout", "vera"),
  form("/ui/certificates/revoke", "certificates", "", {
    on: "/ui/certificates",
    fields: { serials: ["0a01", "0a01\n0a02", "ff", "xyz"], reason: ["4", "7", "x"] }
  }),
  form("/ui/orders/{id}/revoke", "orders", ids.valid, {
    fields: { reason: ["4", "1", "7", "11", "x"] },
    others: [ids.revokedOrder, ids.pending, ids.expired]
  }),
  form("/ui/orders/{id}/delete", "orders", ids.pending, { others: [ids.valid, ids.processing, ids.expired] }),
  form("/ui/accounts/{id}/contact", "accounts", ids.owner, {
    fields: {
      contact: [
        "mailto:new@example.org",
        "new@example.org",
        "a@example.org\nb@example.org",
        "a@example.org, b@example.org",
        "tel:+1"
      ]
    },
    others: [ids.deactivated]
  }),
  form("/ui/accounts/{id}/deactivate", "accounts", ids.owner, { others: [ids.deactivated, ids.starter] }),
  form("/ui/accounts/{id}/block", "blocks", ids.owner, {
    fields: { reason: ["a loop", "x".repeat(500), "x".repeat(501), "a\u001bb"] },
    others: [ids.deactivated]
  }),
  form("/ui/accounts/{id}/unblock", "blocks", ids.owner, { others: [ids.deactivated] }),
  form("/ui/accounts/{id}/delete", "accounts", ids.starter, { others: [ids.owner, ids.idle] }),
  form("/ui/eab", "credentials", "", {
    on: "/ui/eab",
    fields: {
      label: ["Web servers", "a\u001bb", "x".repeat(200), "x".repeat(201), "x".repeat(256)],
      profile: ["other", "closed", "none"]
    }
  }),
  form("/ui/eab/{kid}/scope", "scopes", ids.bound, {
    fields: {
      names: ["**.shop.example", "www.example.org\n*.shop.example", "SHOP.example", "*", "a..example"],
      wildcards: ["true", "false", "yes"],
      kinds: ["default", "default\nbogus", "UPPER"],
      validitySeconds: ["86400", "3599", "315619201", "1.5", "x"],
      ordersPerDay: ["100", "0", "-1", "1000001", "x"],
      maxAccounts: ["1", "0", "1000001", "x"],
      expiresAt: ["2030-01-01", "2026-01-01", "tomorrow", "2030-02-30"],
      prevalidated: ["true", "false", "yes"],
      clear: ["maxAccounts", "names", "names\nprevalidated", "label"]
    },
    others: [ids.revokedCredential, ids.narrowCredential]
  }),
  form("/ui/campaigns", "campaigns", "", { by: "admin", on: "/ui/campaigns", fields: campaign }),
  form("/ui/campaigns/{id}/pause", "campaigns", ids.nobody, { on: "/ui/campaigns" }),
  form("/ui/campaigns/{id}/resume", "campaigns", ids.nobody, { on: "/ui/campaigns" }),
  form("/ui/campaigns/{id}/end", "campaigns", ids.nobody, { on: "/ui/campaigns" }),
  form("/ui/campaigns/{id}/confirm", "campaigns", ids.nobody, { by: "admin", on: "/ui/campaigns", fields: step }),
  form("/ui/authorities/{issuer}/compromise", "compromise", issuer, {
    on: "/ui/authorities",
    fields: { password: [password, "wrong", ""] },
    others: ["0".repeat(64)]
  }),
  form("/ui/eab/{kid}/revoke", "credentials", ids.bound, { others: [ids.revokedCredential] }),
  form("/ui/eab/{kid}/delete", "credentials", ids.bound, {
    fields: { accounts: ["keep", "deactivate", "delete", "bogus"] },
    others: [ids.freeCredential]
  }),
  form("/ui/jobs/{id}/run", "jobs", ids.failed, { others: [ids.waiting, ids.running, ids.done] }),
  form("/ui/jobs/run-alike", "alike", "", {
    on: "/ui/jobs",
    fields: { id: [ids.failed, ids.done, ids.nobody, "x"] }
  }),
  form("/ui/jobs/{id}/cancel", "jobs", ids.waiting, { others: [ids.running, ids.failed, ids.done, ids.delivery] }),
  form("/ui/notifications/test", "notifications", "", {
    on: "/ui/notifications",
    fields: {
      target: ["chat", "webhook", "email", "none"],
      event: ["certificate_issued", "bogus"],
      profile: ["default", "__admin__", "none"]
    }
  }),
  form("/ui/profiles/{name}/explain", "trials", "default", {
    on: "/ui/profiles/default",
    fields: {
      clientIp: ["192.0.2.7", "x"],
      identifiers: ["www.example.org", "*.example.org\na.example.org", "a b"],
      accountId: [ids.owner, ids.deactivated, ids.nobody, "x"],
      kind: ["default", "none"]
    }
  }),
  form("/ui/profiles/{profile}/kinds/try", "kinds", "default", {
    on: "/ui/profiles/default/kinds",
    fields: { csr: ["AAAA", "-"], kind: ["default", "bogus"], names: ["www.example.org", "-"] },
    others: ["none"]
  }),
  form("/ui/notifications/run", "notifications", "", {
    on: "/ui/notifications",
    fields: { id: [ids.delivery, ids.failed, ids.nobody, "x"] }
  }),
  form("/ui/nonces/sweep", "nonces", "", {
    on: "/ui/nonces",
    fields: { ttlSeconds: ["600", "0", "-1", "86401", "x", "1.5"] }
  }),
  bobs("disable"),
  bobs("enable", {}, "carl", ["bob", "nobody"]),
  bobs("reset-factor", {}, "dora", ["bob", "anna", "nobody"]),
  bobs("role", { role: ["operator", "admin", "viewer", "bogus"] }),
  bobs("contact", contact),
  bobs("sessions/revoke"),
  bobs(`sessions/${sessionId("bob")}/revoke`),
  bobs("tokens", token, "vera", ["anna", "carl", "nobody"]),
  bobs(`tokens/${ids.token}/revoke`, {}, "olga", ["anna", "nobody"]),
  own("account/password", "vera", {
    ...step,
    newPassword: [chosen, "short", password, "x".repeat(1025)],
    repeated: [chosen, "other"]
  }),
  own("account/contact", "vera", { ...contact, ...step }),
  own(`account/sessions/${sessionId("anna-elsewhere")}/revoke`, "anna"),
  own("account/sign-out-everywhere", "anna"),
  own("account/factor/begin", "vera", step),
  own("account/factor/confirm", "erin", { code: [code, "000000"] }),
  own("account/factor/disable", "hugo", step),
  own("account/factor/codes", "hugo", step),
  own("account/tokens", "olga", token, { noun: "tokens" }),
  own(`account/tokens/${ids.token}/revoke`, "olga", {}, { noun: "tokens" })
]

const seatFor = (by: By) => by === "nobody" ? nobody : session(typeof by === "object" ? by.seat : seatOf[by])

const shown = (value: string): string => {
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 40)}…(${text.length})` : text
}

const scripted = { "hx-request": "true" }

const pagePlays = ({ by, others = [], path, query = {} }: PageEntry): ReadonlyArray<RequestPlay> => {
  const seat = seatFor(by)
  const plays: Array<RequestPlay> = []
  const add = (name: string, more: Partial<RequestPlay> = {}) =>
    plays.push({ name: `GET ${path} ${name}`, target: path, ...seat, ...more })
  add("good")
  add("as a fragment", { headers: scripted })
  add("as a refresh", { headers: { ...scripted, "x-panel-refresh": "1" } })
  for (const who of ["vera", "olga", "anna", "dora-half"]) add(`by ${who}`, session(who))
  plays.push({ name: `GET ${path} by nobody`, target: path, ...nobody })
  plays.push({ name: `GET ${path} by a token`, target: path, ...bearer("anna") })
  add("with a slash behind it", { target: `${path}/` })
  add("in upper case", { target: path.toUpperCase() })
  add("?unknown=1", { target: `${path}?unknown=1` })
  add("with HEAD", { method: "HEAD" })
  add("with PUT", { method: "PUT" })
  for (const [name, values] of Object.entries(query)) {
    for (const value of [...values, "", "x".repeat(1100), "\u0000"]) {
      add(`?${name}=${shown(value)}`, { target: `${path}?${name}=${encodeURIComponent(value)}` })
    }
    add(`?${name} twice`, {
      target: `${path}?${name}=${encodeURIComponent(values[0])}&${name}=${encodeURIComponent(values[0])}`
    })
  }
  for (const other of others) plays.push({ name: `GET ${shown(other)}`, target: other, ...seat })
  return plays
}

const formPlays = ({ by, fields = {}, on, others = [], path }: FormEntry): ReadonlyArray<RequestPlay> => {
  const seat = seatFor(by)
  const good: Readonly<Record<string, string>> = Object.fromEntries(
    Object.entries(fields).map(([name, [value]]) => [name, value])
  )
  const plays: Array<RequestPlay> = []
  const headers = { ...scripted, "hx-current-url": `${origin}${on}` }
  const filled = (given: Readonly<Record<string, string>>) => new URLSearchParams(given)
  const add = (name: string, more: Partial<RequestPlay> = {}) =>
    plays.push({
      name: `POST ${path} ${name}`,
      target: path,
      method: "POST",
      body: filled(good),
      headers,
      ...seat,
      ...more
    })
  add("good")
  add("good without a script", { headers: {} })
  for (const who of ["vera", "olga", "anna", "dora-half"]) add(`by ${who}`, session(who))
  plays.push({ name: `POST ${path} by nobody`, target: path, method: "POST", body: filled(good), ...nobody })
  plays.push({ name: `POST ${path} by a token`, target: path, method: "POST", body: filled(good), ...bearer("anna") })
  add("without the CSRF token", { csrf: undefined })
  add("with another CSRF token", { csrf: csrfToken("nobody") })
  add("with the CSRF token as a field", { csrf: undefined, body: filled({ ...good, csrfToken: csrfToken("vera") }) })
  add("from another origin", { headers: { ...headers, origin: "https://elsewhere.example" } })
  add("with an unknown field", { body: filled({ ...good, unknown: "1" }) })
  add("as JSON", { body: { ...good } })
  add("without a body", { body: undefined })
  add("with an empty body", { body: "", headers: { ...headers, "content-type": "application/x-www-form-urlencoded" } })
  add("with a body that is too large", { body: filled({ ...good, more: "x".repeat(70_000) }) })
  add("with a body that is not UTF-8", {
    body: Buffer.from([0x61, 0x3d, 0xff]),
    headers: { ...headers, "content-type": "application/x-www-form-urlencoded" }
  })
  add("with a parameter", { target: `${path}?x=1` })
  add("with PUT", { method: "PUT" })
  add("with GET", { method: "GET", body: undefined, csrf: undefined })
  for (const [name, values] of Object.entries(fields)) {
    const { [name]: _, ...rest } = good
    add(`${name} absent`, { body: filled(rest) })
    for (const value of [...values.slice(1), "", " ", "x".repeat(5000), "a\u0000b", ` ${values[0]} `]) {
      add(`${name}=${shown(value)}`, { body: filled({ ...rest, [name]: value }) })
    }
    const twice = filled(good)
    twice.append(name, values[0])
    add(`${name} twice`, { body: twice })
  }
  for (const other of others) {
    plays.push({ name: `POST ${shown(other)}`, target: other, method: "POST", body: filled(good), headers, ...seat })
  }
  return plays
}

/** The frame that all pages share, for each role. */
const frames: ReadonlyArray<RequestPlay> = ["vera", "olga", "anna"].map((who) => ({
  name: `GET /ui/workers whole by ${who}`,
  target: "/ui/workers",
  ...session(who)
}))

/** The paths that plays request, with their methods. */
export const playedPaths: ReadonlyArray<readonly ["GET" | "POST", string]> = [
  ...pages.map(({ path }) => ["GET", path] as const),
  ...forms.map(({ path }) => ["POST", path] as const)
]

/** Every group. */
export const panelGroups: ReadonlyArray<Group> = nouns.flatMap((noun): ReadonlyArray<Group> => {
  const plays = [
    ...pages.filter((one) => one.noun === noun).flatMap(pagePlays),
    ...forms.filter((one) => one.noun === noun).flatMap(formPlays),
    ...noun === "workers" ? frames : []
  ]
  if (plays.length === 0) return []
  const group: Group = { noun, surface: "panel", plays: distinct(plays) }
  if (noun !== "session") return [group]
  const signIn = [
    ...pages.filter(({ path }) => path.startsWith("/ui/login")).flatMap(pagePlays),
    ...forms.filter(({ path }) => path.startsWith("/ui/login")).flatMap(formPlays)
  ]
  return [group, { noun, surface: "panel", isStrict: true, plays: distinct(signIn) }]
})
