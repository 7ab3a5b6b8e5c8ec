import { check, clientOf, done, refused } from "./Client.ts"

/* The records of the service, as a program with a token reads and changes them. */

type Program = ReturnType<typeof clientOf>

const pages = async (program: Program) => {
  const ids: Array<string> = []
  for (let offset = 0; offset < 10; offset++) {
    const page = await done(program.GET("/api/orders", { params: { query: { limit: 1, offset } } }))
    check(page.limit === 1 && page.offset === offset, "the page is another one")
    check(page.items.length === (offset < page.total ? 1 : 0), "the page has another length")
    ids.push(...page.items.map(({ id }) => id))
    if (page.items.length === 0) break
  }
  const whole = await done(program.GET("/api/orders", { params: { query: { limit: 1000 } } }))
  check(whole.limit === 200, "the limit was not lowered")
  check(whole.items.map(({ id }) => id).join() === ids.join(), "pages have other orders than the whole")
  const conflicting = { identifier: "a.example", identifierSuffix: "example" }
  await refused(
    program.GET("/api/orders", { params: { query: conflicting } }),
    400,
    "conflicting_identifier_filter"
  )
  for (
    const list of [
      "/api/accounts",
      "/api/audit",
      "/api/jobs",
      "/api/certificates",
      "/api/expiring",
      "/api/upstream-orders",
      "/api/orphaned-certificates"
    ] as const
  ) {
    const page = await done(program.GET(list, { params: { query: { limit: 1 } } }))
    check(page.items.length === Math.min(1, page.total), `${list} has another length`)
  }
}

const revocation = async (program: Program) => {
  const { items: [order] } = await done(program.GET("/api/orders", { params: { query: { status: "valid" } } }))
  check(order?.certSerial !== undefined, "nothing was issued over ACME")
  const params = { path: { id: order.id } }
  const detail = await done(program.GET("/api/orders/{id}", { params }))
  check(detail.certificatePem?.startsWith("-----BEGIN CERTIFICATE") === true, "there is no certificate")
  const chain = await done(program.GET("/api/orders/{id}/certificate", { params }))
  check(chain.certificates[0]?.serial === order.certSerial, "the chain has another serial number")
  await refused(program.DELETE("/api/orders/{id}", { params }), 409, "live_certificates")
  await refused(program.POST("/api/orders/{id}/revoke", { params, body: { reason: 7 } }), 400, "bad_request")
  const revoked = await done(program.POST("/api/orders/{id}/revoke", { params, body: { reason: 4 } }))
  check("revokedAt" in revoked && revoked.revokedAt !== undefined, "the certificate is not revoked")
  await refused(program.POST("/api/orders/{id}/revoke", { params, body: {} }), 409, "already_revoked")
  const again = await done(program.POST("/api/certificates/revoke", { body: { serials: [order.certSerial] } }))
  check(again.refused[0]?.error === "already_revoked", "a certificate is revoked twice")
  const after = await done(program.GET("/api/orders/{id}", { params }))
  check(after.revokedAt !== undefined && after.revocationReason === 4, "the order does not say so")
  const { items } = await done(program.GET("/api/audit", { params: { query: { event: "certificate_revoked" } } }))
  check(items[0]?.orderId === order.id && items[0].actorKind === "admin", "the trail does not say so")
  await done(program.GET("/api/audit/chain"))
  await done(program.GET("/api/audit/receivers"))
  await done(program.GET("/api/audit/{id}", { params: { path: { id: String(items[0].id) } } }))
  await done(program.DELETE("/api/orders/{id}", { params }))
}

const accounts = async (program: Program) => {
  const { items: [account] } = await done(program.GET("/api/accounts"))
  check(account !== undefined, "there is no account")
  const params = { path: { id: account.id } }
  const { liveCertificates } = await done(program.GET("/api/accounts/{id}", { params }))
  check(liveCertificates === 1, "the account has another number of certificates")
  await done(program.GET("/api/accounts/{id}/orders", { params }))
  const contact = ["mailto:ops@corp.example"]
  const updated = await done(program.PATCH("/api/accounts/{id}", { params, body: { contact } }))
  check(updated.contact?.[0] === contact[0], "the contact is another one")
  await refused(program.DELETE("/api/accounts/{id}", { params }), 409, "live_certificates")
  const blocked = await done(program.POST("/api/accounts/{id}/block", { params, body: { reason: "a loop" } }))
  check(blocked.blockReason === "a loop", "the account is not blocked")
  const again = program.POST("/api/accounts/{id}/block", { params, body: { reason: "a loop" } })
  await refused(again, 409, "account_state")
  const free = await done(program.POST("/api/accounts/{id}/unblock", { params }))
  check(free.blockedAt === undefined, "the account is still blocked")
  const deactivated = await done(program.POST("/api/accounts/{id}/deactivate", { params }))
  check(deactivated.status === "deactivated", "the account is not deactivated")
}

const credentials = async (program: Program) => {
  await refused(program.POST("/api/eab", { body: { label: "x", profile: "none" } }), 400, "bad_request")
  const minted = await done(program.POST("/api/eab", { body: { label: "printers", profile: "default" } }))
  check(minted.hmacKey.length > 40, "the secret is short")
  const params = { path: { kid: minted.kid } }
  check(!("hmacKey" in await done(program.GET("/api/eab/{kid}", { params }))), "the secret is shown again")
  await done(program.POST("/api/eab/{kid}/revoke", { params }))
  const { items } = await done(program.GET("/api/eab", { params: { query: { status: "revoked" } } }))
  check(items.some(({ kid }) => kid === minted.kid), "the credential is not revoked")
  const removed = await done(
    program.DELETE("/api/eab/{kid}", { params: { ...params, query: { accounts: "keep" } } })
  )
  check(removed.keptAccounts === 0, "accounts were kept")
  await refused(program.GET("/api/eab/{kid}", { params }), 404, "not_found")
  const taken = { externalKid: "another-server-1", hmacKey: "A".repeat(43), label: "scanners" }
  const { kid } = await done(program.POST("/api/eab/import", { body: taken }))
  const changed = await done(
    program.PATCH("/api/eab/{kid}", { params: { path: { kid } }, body: { names: ["*.scanner.example"] } })
  )
  check(changed.names?.[0] === "*.scanner.example", "the credential has another scope")
  await refused(program.POST("/api/eab/import", { body: { ...taken, hmacKey: "short" } }), 400, "bad_request")
}

const jobs = async (program: Program) => {
  const { items: [finished] } = await done(program.GET("/api/jobs", { params: { query: { status: "done" } } }))
  check(finished !== undefined, "no job is done")
  const params = { path: { id: finished.id } }
  await done(program.GET("/api/jobs/{id}", { params }))
  await refused(program.POST("/api/jobs/{id}/cancel", { params }), 409, "job_not_cancellable")
  await refused(program.POST("/api/jobs/{id}/run", { params }), 409, "job_not_runnable")
  const query = { kind: "order_sweep", status: "ready" as const }
  const { items: [sweep] } = await done(program.GET("/api/jobs", { params: { query } }))
  check(sweep !== undefined, "no sweep is due")
  await done(program.POST("/api/jobs/{id}/run", { params: { path: { id: sweep.id } } }))
  const alike = await done(program.POST("/api/jobs/run", { body: { kind: "order_sweep", error: "none" } }))
  check(alike.due === 0 && alike.remaining === 0, "jobs have an error that is none")
  check((await done(program.GET("/api/workers"))).items.length === 1, "there is another number of workers")
  await done(program.GET("/api/queue"))
}

const relayed = async (program: Program) => {
  const { items: [order] } = await done(program.GET("/api/upstream-orders"))
  check(order !== undefined, "no order was relayed")
  const params = { path: { orderId: order.orderId } }
  const detail = await done(program.GET("/api/upstream-orders/{orderId}", { params }))
  check(detail.orderId === order.orderId, "the relayed order is another one")
}

const notifications = async (program: Program) => {
  const { items: [tried] } = await done(program.POST("/api/notify/test", { body: { event: "certificate_issued" } }))
  check(tried?.delivered === true && tried.entry === "reader", "the sample was not delivered")
  const { items: [delivery] } = await done(program.GET("/api/notify/deliveries"))
  check(delivery?.backend === "custom", "nothing was delivered over ACME")
}

const exports_ = async (program: Program) => {
  for (
    const list of [
      "/api/accounts/export",
      "/api/orders/export",
      "/api/expiring/export",
      "/api/audit/export",
      "/api/eab/export"
    ] as const
  ) {
    const csv = await done(program.GET(list, { parseAs: "text" }))
    check(typeof csv === "string" && /^\w+,/.test(csv), `${list} is no CSV`)
    const json = await done(program.GET(list, { params: { query: { format: "json" } } }))
    check(typeof json === "object" && Array.isArray(json.items), `${list} is no JSON`)
  }
}

/** The functions that play each part, by the name of the part. */
export const records = {
  "pages of lists": pages,
  "exports as CSV and JSON": exports_,
  "certificate: read, revoke, delete": revocation,
  "accounts": accounts,
  "credentials": credentials,
  "jobs": jobs,
  "relayed orders": relayed,
  "notifications": notifications
}

/** Reads the other data that a caller can read. */
export const otherReads = async (caller: Program) => {
  const { items: [profile] } = await done(caller.GET("/api/profiles"))
  check(profile?.name === "default", "there is no profile")
  await done(caller.GET("/api/profiles/{name}/filter", { params: { path: { name: profile.name } } }))
  await done(caller.GET("/api/kinds", { params: { query: { profile: profile.name } } }))
  const csrOfNobody = { csr: "AAAA", profile: profile.name, names: ["a.example"] }
  const tried = await done(caller.POST("/api/kinds/try", { body: csrOfNobody }))
  const supposed = { clientIp: "192.0.2.7", identifiers: ["a.example"] }
  const told = await done(
    caller.POST("/api/profiles/{name}/explain", { params: { path: { name: profile.name } }, body: supposed })
  )
  check(told.request.identifiers[0] === "a.example", "another order was tried")
  check(tried.outcome === "refused" && tried.refusal?.status === 400, "octets that are no CSR were accepted")
  const { items: [ca] } = await done(caller.GET("/api/cas"))
  check(ca !== undefined, "there is no CA")
  const shown = await done(caller.GET("/api/cas/{issuer}", { params: { path: { issuer: ca.issuer } } }))
  check(shown.issuer === ca.issuer && !shown.truncated, "another CA is shown")
  await done(caller.GET("/api/config"))
  await done(caller.GET("/api/search", { params: { query: { q: "example" } } }))
  const { items: concerns, unread } = await done(caller.GET("/api/attention"))
  check(unread.length === 0 && concerns.every(({ title }) => title !== ""), "not every source of concerns was read")
  await done(caller.GET("/api/trends", { params: { query: { range: "7d" } } }))
  await done(caller.GET("/api/nonces"))
  await done(caller.POST("/api/nonces/cleanup", { body: { ttlSeconds: 3600 } }))
  await done(caller.GET("/api/openapi.json"))
  await done(caller.GET("/api/session"))
  check((await done(clientOf({}).GET("/health"))).healthy, "the service is not healthy")
}
