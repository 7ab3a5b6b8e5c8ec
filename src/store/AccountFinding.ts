import type { AccountStatus } from "../domain/Account.ts"
import type { AccountId } from "../domain/Id.ts"
import { int, name, nullable, text, texts, uuid } from "../engine/sql/Column.ts"
import { lenient } from "../engine/sql/Query.ts"
import type { Fragments } from "../engine/sql/Statement.ts"
import { select, statement } from "../engine/sql/Statement.ts"

/* Finds accounts by what nobody needs an index for: contacts and addresses of clients. */

/** The number of accounts, newest first, among which accounts are found. */
export const mostSearched = 100_000

const found = {
  id: uuid<AccountId>(),
  profile: name(),
  status: text<AccountStatus>(),
  blockedAt: nullable(int),
  contact: texts
}

const newest = { params: { text: text(), window: int, limit: int }, row: found }

const finding = (what: string, condition: (f: Fragments) => string) =>
  statement({
    name: `account_find_by_${what}`,
    ...newest,
    sql: (f) =>
      `SELECT ${select(found, "a")} FROM (SELECT * FROM accounts ORDER BY id DESC LIMIT :window) a
       WHERE ${condition(f)} ORDER BY a.id DESC LIMIT :limit`
  })

const byContact = finding(
  "contact",
  ({ dialect }) => `${dialect === "postgres" ? "strpos" : "instr"}(lower(a.contact), :text) > 0`
)

const byAddress = finding("address", () => "(a.created_ip = :text OR a.last_seen_ip = :text)")

/** Finds accounts with a contact that contains a text in lower case. */
export const withContact = (text: string, limit: number) => lenient(byContact, { text, window: mostSearched, limit })

/** Finds accounts whose first or last request came from an address. */
export const fromAddress = (text: string, limit: number) => lenient(byAddress, { text, window: mostSearched, limit })
