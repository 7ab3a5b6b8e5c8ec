import { grantIn, grantText } from "./Grants.ts"
import type { Row, Store } from "./Store.ts"
import { queries, uuid } from "./Tables.ts"

/* The audit rows of credentials, which must lead from what each credential permitted at first to what it permits now. */

interface Detail {
  readonly kid: string
  readonly before?: Parameters<typeof grantText>[0]
  readonly after?: Parameters<typeof grantText>[0]
}

const audited = `SELECT event, detail FROM audit_log
  WHERE event IN ('eab_created', 'eab_scope_changed', 'eab_revoked', 'eab_deleted') ORDER BY id`

interface Told {
  readonly grant: string
  readonly status: "active" | "revoked" | "deleted"
}

const nextOf = (known: Told | undefined, event: string, { after = {}, before = {} }: Detail): Told | undefined => {
  if (event === "eab_created") return known === undefined ? { grant: grantText(after), status: "active" } : undefined
  if (known === undefined || known.status === "deleted") return undefined
  switch (event) {
    case "eab_scope_changed":
      return grantText(before) === known.grant && grantText(after) !== known.grant
        ? { ...known, grant: grantText(after) }
        : undefined
    case "eab_revoked":
      return known.status === "active" ? { ...known, status: "revoked" } : undefined
    default:
      return { ...known, status: "deleted" }
  }
}

/** Compares the audit rows of all credentials with each other and with the credentials. Returns the differences. */
export const trailFaults = ({ rows }: Pick<Store, "rows">): ReadonlyArray<string> => {
  const told = new Map<string, Told>()
  const faults: Array<string> = []
  for (const { detail, event } of rows(audited)) {
    const read = JSON.parse(String(detail)) as Detail
    const next = nextOf(told.get(read.kid), String(event), read)
    if (next === undefined) {
      faults.push(`the audit trail tells of ${String(event)} ${read.kid}, which did not happen then`)
    } else told.set(read.kid, next)
  }
  const found = new Map<string, Row>(rows(queries.credentials).map((row) => [uuid(String(row["id"])), row]))
  for (const [kid, { grant, status }] of told) {
    const row = found.get(kid)
    const is = row === undefined
      ? { grant, status: "deleted" }
      : { grant: grantText(grantIn(row)), status: row["status"] }
    if (is.grant !== grant) {
      faults.push(`the audit trail says that the credential ${kid} permits ${grant}, not ${is.grant}`)
    }
    if (is.status !== status) {
      faults.push(`the audit trail says that the credential ${kid} is ${status}, not ${String(is.status)}`)
    }
  }
  for (const kid of found.keys()) {
    if (!told.has(kid)) faults.push(`the audit trail does not tell of the credential ${kid}`)
  }
  return faults
}
