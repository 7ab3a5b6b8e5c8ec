import type { BusyPopulation } from "./Busy.ts"
import { facts } from "./Busy.ts"
import type { Read } from "./Reader.ts"
import type { Subject } from "./Subject.ts"
import { below, dayBefore, withToken } from "./Subject.ts"

const list = below("/api/")

const readsOf = (population: BusyPopulation, now: number): ReadonlyArray<Read> => {
  const known = facts(population)
  const day = (ago: number) => dayBefore(now, ago)
  const file = (...named: Parameters<typeof list>): Read => ({ ...list(...named), isFile: true })
  const refused = (read: Read): Read => ({ ...read, status: 400 })
  const isLarge = (rows: number) => rows >= 100_000
  const whole = (read: Read, rows: number): Read => isLarge(rows) ? refused(read) : read
  return [
    list("accounts", "accounts"),
    list("accounts, page 100", "accounts", { offset: "5000" }),
    list("accounts of a profile", "accounts", { profile: "devices" }),
    list("accounts deactivated", "accounts", { status: "deactivated" }),
    list("accounts of a profile, valid", "accounts", { profile: "default", status: "valid" }),
    list("accounts of a credential", "accounts", { eabKid: known.kid }),
    list("account with 60,000 orders", `accounts/${known.largeAccount}`),
    list("account with one order", `accounts/${known.smallAccount}`),
    list("orders of the large account", `accounts/${known.largeAccount}/orders`),
    list("orders of a small account", `accounts/${known.smallAccount}/orders`),
    list("orders", "orders"),
    list("orders, page 100", "orders", { offset: "5000" }),
    list("orders of a profile", "orders", { profile: "devices" }),
    list("orders valid", "orders", { status: "valid" }),
    list("orders invalid", "orders", { status: "invalid" }),
    list("orders pending", "orders", { status: "pending" }),
    list("orders of a profile, valid", "orders", { profile: "devices", status: "valid" }),
    list("orders of a profile, invalid", "orders", { profile: "devices", status: "invalid" }),
    list("orders of the large account, invalid", "orders", { accountId: known.largeAccount, status: "invalid" }),
    list("orders of a day", "orders", { since: day(31), until: day(30) }),
    list("orders since a month, valid", "orders", { since: day(30), status: "valid" }),
    list("orders by serial", "orders", { certSerial: known.serial }),
    list("orders by name", "orders", { identifier: known.name }),
    list("orders by the end of names", "orders", { identifierSuffix: known.zone }),
    list("orders by the end of every name", "orders", { identifierSuffix: known.everyName }),
    list("orders by a common part of names", "orders", { identifierContains: known.commonPart }),
    list("orders by a part of every name", "orders", { identifierContains: "example" }),
    list("orders by a part of one old name", "orders", { identifierContains: "once-10." }),
    list("orders by a part of no name", "orders", { identifierContains: "no-such-name" }),
    list("orders invalid by a part of names", "orders", { identifierContains: known.commonPart, status: "invalid" }),
    list("order", `orders/${known.order}`),
    list("certificate of an order", `orders/${known.order}/certificate`),
    list("expiring", "expiring"),
    list("expiring in a week", "expiring", { days: "7" }),
    list("expiring, replaced ones hidden", "expiring", { superseded: "hide" }),
    list("upstream orders", "upstream-orders"),
    list("upstream orders invalid", "upstream-orders", { status: "invalid" }),
    list("jobs", "jobs"),
    list("jobs failed", "jobs", { status: "failed" }),
    list("jobs of a kind", "jobs", { kind: "challenge_validate" }),
    list("jobs of an order", "jobs", { orderId: known.order }),
    list("queue", "queue"),
    list("workers", "workers"),
    list("credentials", "eab"),
    list("credentials revoked", "eab", { status: "revoked" }),
    list("nonces", "nonces"),
    list("CAs", "cas"),
    list("profiles", "profiles"),
    list("audit", "audit"),
    list("audit, page 100", "audit", { offset: "5000" }),
    list("audit of an event", "audit", { event: "certificate_issued" }),
    list("audit of failures", "audit", { outcome: "failure" }),
    list("audit of successes", "audit", { outcome: "success" }),
    list("audit of operators", "audit", { actorKind: "admin" }),
    list("audit of the command line", "audit", { actorKind: "cli" }),
    list("audit of clients", "audit", { actorKind: "acme" }),
    list("audit of a profile", "audit", { profile: "devices" }),
    list("audit of an account", "audit", { accountId: known.smallAccount }),
    list("audit of an order", "audit", { orderId: known.order }),
    list("audit of a month", "audit", { since: day(60), until: day(30) }),
    list("audit of a request", "audit", { requestId: "f".repeat(32) }),
    list("audit row", "audit/1000"),
    list("trends of a day", "trends", { range: "24h" }),
    list("trends of a month", "trends", { range: "30d" }),
    list("trends of a month, one profile", "trends", { profile: "default", range: "30d" }),
    list("search an id", "search", { q: known.order }),
    list("search an id that is nowhere", "search", { q: "01900000-0000-7000-8000-00000000dead" }),
    list("search a serial", "search", { q: known.serial }),
    list("search a name", "search", { q: known.name }),
    list("search the end of names", "search", { q: known.zone }),
    list("search the end of every name", "search", { q: known.everyName }),
    list("search a part of a name", "search", { q: known.oncePart }),
    list("search what is nowhere", "search", { q: "no-such-name" }),
    file("export orders of a zone", "orders/export", { identifierSuffix: known.zone }),
    file("export orders of the large account", "orders/export", { accountId: known.largeAccount }),
    file("export failures", "audit/export", { outcome: "failure" }),
    file("export credentials", "eab/export"),
    whole(file("export orders, too many", "orders/export"), population.orders),
    whole(file("export accounts, too many", "accounts/export"), population.accounts),
    whole(file("export audit, too many", "audit/export"), population.auditRows)
  ]
}

/** Every list, filter, count, detail, search and export of the API, on the database that `Busy.ts` fills. */
export const lists: Subject = { readsOf, enter: withToken }
