import type { BusyPopulation } from "./Busy.ts"
import { facts } from "./Busy.ts"
import type { Read } from "./Reader.ts"
import type { Subject } from "./Subject.ts"
import { below, dayBefore, withSession } from "./Subject.ts"

const page = below("/ui/")

const readsOf = (population: BusyPopulation, now: number): ReadonlyArray<Read> => {
  const known = facts(population)
  const day = (ago: number) => dayBefore(now, ago)
  return [
    page("overview", ""),
    page("overview of a month", "", { range: "30d" }),
    page("overview of a month, one profile", "", { range: "30d", profile: "default" }),
    page("certificates", "certificates"),
    page("certificates, page 100", "certificates", { page: "100" }),
    page("certificates that end soonest", "certificates", { sort: "soonest" }),
    page("certificates that end last, page 100", "certificates", { sort: "latest", page: "100" }),
    page("certificates valid", "certificates", { state: "valid" }),
    page("certificates ending", "certificates", { state: "ending" }),
    page("certificates revoked", "certificates", { state: "revoked" }),
    page("certificates ending, by the end of names", "certificates", { state: "ending", identifierSuffix: known.zone }),
    page("certificates ending, by a common part", "certificates", {
      state: "ending",
      identifierContains: known.commonPart
    }),
    page("certificate to revoke", "certificates/revoke", { order: known.order }),
    page("orders", "orders"),
    page("orders, page 100", "orders", { page: "100" }),
    page("orders valid", "orders", { status: "valid" }),
    page("orders invalid", "orders", { status: "invalid" }),
    page("orders pending", "orders", { status: "pending" }),
    page("orders of the large account, invalid", "orders", { accountId: known.largeAccount, status: "invalid" }),
    page("orders of a day", "orders", { since: day(31), until: day(30) }),
    page("orders by name", "orders", { identifier: known.name }),
    page("orders by the end of names", "orders", { identifierSuffix: known.zone }),
    page("orders by a common part of names", "orders", { identifierContains: known.commonPart }),
    page("orders by a part of no name", "orders", { identifierContains: "no-such-name" }),
    page("orders by serial", "orders", { certSerial: known.serial }),
    page("order", `orders/${known.order}`),
    page("expiring", "expiring"),
    page("expiring in a week", "expiring", { days: "7" }),
    page("expiring, replaced ones hidden", "expiring", { superseded: "hide" }),
    page("accounts", "accounts"),
    page("accounts of a credential", "accounts", { eabKid: known.kid }),
    page("account with 60,000 orders", `accounts/${known.largeAccount}`),
    page("account with one order", `accounts/${known.smallAccount}`),
    page("orders of the large account", `accounts/${known.largeAccount}/orders`),
    page("orders of the large account, page 100", `accounts/${known.largeAccount}/orders`, { page: "100" }),
    page("credentials", "eab"),
    page("credentials revoked", "eab", { status: "revoked" }),
    page("credential", `eab/${known.kid}`),
    page("upstream orders", "upstream-orders"),
    page("upstream orders invalid", "upstream-orders", { status: "invalid" }),
    page("upstream order", `upstream-orders/${known.relayedOrder}`),
    page("jobs", "jobs"),
    page("jobs failed", "jobs", { status: "failed" }),
    page("job", `jobs/${known.failedJob}`),
    page("notifications", "notifications"),
    page("campaigns", "campaigns"),
    page("campaign", `campaigns/${known.campaign}`),
    page("count for a campaign", "campaigns/preview", { key: "rsa-1024" }),
    page("workers", "workers"),
    page("authorities", "authorities"),
    page("CA", `authorities/${known.issuer}`),
    page("profiles", "profiles"),
    page("a profile", "profiles/default"),
    page("policy of a profile", "profiles/default/filter"),
    page("kinds of a profile", "profiles/default/kinds"),
    page("configuration", "configuration"),
    page("chain of the audit trail", "audit/chain"),
    page("nonces", "nonces"),
    page("audit", "audit"),
    page("audit, page 100", "audit", { page: "100" }),
    page("audit of an event", "audit", { event: "certificate_issued" }),
    page("audit of failures", "audit", { outcome: "failure" }),
    page("audit of operators", "audit", { actorKind: "admin" }),
    page("audit of an order", "audit", { orderId: known.order }),
    page("audit of a month", "audit", { since: day(60), until: day(30) }),
    page("audit row", "audit/1000"),
    page("search", "search"),
    page("search a name", "search", { q: known.name }),
    page("search the end of names", "search", { q: known.zone }),
    page("search a part of a name", "search", { q: known.oncePart }),
    page("search what is nowhere", "search", { q: "no-such-name" }),
    page("operators", "operators"),
    page("operator", "operators/bench"),
    page("own account", "account"),
    page("sign-in", "login"),
    page("password link", "link")
  ]
}

/** Every page of the panel that a session sees, on the database that `Busy.ts` fills. */
export const pages: Subject = { readsOf, enter: withSession }
