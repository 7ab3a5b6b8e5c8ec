import type { X509Certificate } from "node:crypto"
import { kindFaultOf, lifetimeOf } from "./OfferedKinds.ts"
import type { Row } from "./Store.ts"
import type { Known } from "./Tables.ts"
import { uuid } from "./Tables.ts"

/*
 * What credentials permit, and whether the service keeps to it. Every committed change of a credential makes a version.
 * A request may be judged by any version that was in force while the request ran. So an act of the service is wrong if
 * no such version permits it, and a refusal is wrong if every such version permits what was refused.
 */

/** What a credential permits. An absent member restricts nothing. */
export interface Grant {
  readonly names: ReadonlyArray<string> | undefined
  readonly wildcards: boolean
  readonly kinds: ReadonlyArray<string> | undefined
  readonly validitySeconds: number | undefined
  readonly ordersPerDay: number | undefined
  readonly maxAccounts: number | undefined
  /** From this epoch second on, the credential binds no account. */
  readonly expiresAt: number | undefined
  readonly prevalidated: boolean
}

/** A state of a credential between two changes. */
interface Version extends Grant {
  readonly isActive: boolean
  /** Whether the credential was deleted. */
  readonly isGone: boolean
}

/** Returns a grant that has every member, in a fixed order. */
export const grantOf = (members: { readonly [M in keyof Grant]?: Grant[M] | undefined }): Grant => ({
  names: members.names,
  wildcards: members.wildcards ?? false,
  kinds: members.kinds,
  validitySeconds: members.validitySeconds,
  ordersPerDay: members.ordersPerDay,
  maxAccounts: members.maxAccounts,
  expiresAt: members.expiresAt,
  prevalidated: members.prevalidated ?? false
})

/** Returns a grant as a text, which is the same for equal grants. */
export const grantText = (members: Parameters<typeof grantOf>[0]): string => JSON.stringify(grantOf(members))

/** Returns what a row of `eab_keys` permits. */
export const grantIn = (row: Row): Grant => {
  const number = (column: string) => row[column] === null ? undefined : Number(row[column])
  const texts = (column: string) =>
    row[column] === null ? undefined : JSON.parse(String(row[column])) as ReadonlyArray<string>
  return grantOf({
    names: texts("names"),
    wildcards: row["wildcards"] === 1,
    kinds: texts("kinds"),
    validitySeconds: number("validity_seconds"),
    ordersPerDay: number("orders_per_day"),
    maxAccounts: number("max_accounts"),
    expiresAt: number("expires_at"),
    prevalidated: row["prevalidated"] === 1
  })
}

const unlimited = Number.POSITIVE_INFINITY

const isCovered = (name: string, pattern: string): boolean => {
  const [stars = "", base = pattern] = /^(\*\*?)\.(.+)$/.exec(pattern)?.slice(1) ?? []
  if (stars === "") return name === base
  if (!name.endsWith(`.${base}`)) return false
  const labels = name.slice(0, -base.length - 1).split(".")
  return stars === "**" || labels.length === 1
}

/** Returns whether a grant permits all of these names. */
export const permitsNames = ({ names, wildcards }: Grant, ordered: ReadonlyArray<string>): boolean =>
  names === undefined ||
  ordered.every((name) => names.some((pattern) => isCovered(name, pattern)) && (wildcards || !name.startsWith("*")))

/** Returns whether a grant permits one of these kinds. */
export const permitsKind = ({ kinds }: Grant, ...named: ReadonlyArray<string>): boolean =>
  kinds === undefined || named.some((kind) => kinds.includes(kind))

/** What an order asks for. */
interface Wanted {
  readonly names: ReadonlyArray<string>
  readonly kind: string | undefined
}

/** A request whose verdict depends on a credential. */
export interface Asking {
  /** The credential of a newAccount, or the account that sends the request. */
  readonly by: string
  /** The credential of a newAccount, the account of a newOrder, or the order of a finalize. */
  readonly subject: string
  /** What the order asks for. Absent in a newAccount. */
  readonly wanted: Wanted | undefined
}

/** The refusal of a request: the last part of its type, and its detail. */
interface Refusal {
  readonly type: string
  readonly detail: string
}

interface Placed extends Wanted {
  readonly kid: string
  readonly createdAt: number
}

const daySeconds = 86_400

const bare = (id: string): string => id.replaceAll("-", "").toLowerCase()

const placedOf = (kid: string, row: Row): Placed => ({
  kid,
  names: (JSON.parse(String(row["identifiers"])) as ReadonlyArray<{ readonly value: string }>).map(({ value }) =>
    value
  ),
  kind: String(row["kind"]),
  createdAt: Number(row["created_at"])
})

/** The credentials of a run, with all of their versions. */
export class Grants {
  readonly #versions = new Map<string, Array<Version>>()
  /** The credential of each account that was bound. */
  readonly #boundTo = new Map<string, string>()
  readonly #orders = new Map<string, Placed>()
  /** The versions by which the finalize of an order may have been judged, and that permit the order. */
  readonly #finalizedBy = new Map<string, ReadonlyArray<Version>>()
  /** For each subject, the numbers of versions at which the requests that may still run have begun. */
  readonly #begun = new Map<string, Set<{ readonly version: number }>>()
  readonly #violated: (what: string) => void
  readonly #kinds: ReadonlyArray<string>
  /** Times from this second on are so late that no clock reaches them. */
  readonly #never: number

  constructor(options: {
    readonly violated: (what: string) => void
    /** The names of all kinds of certificates. */
    readonly kinds: ReadonlyArray<string>
    readonly never: number
  }) {
    this.#violated = options.violated
    this.#kinds = options.kinds
    this.#never = options.never
  }

  // An order that names no kind gets any kind that is permitted.
  #permits(grant: Grant, { kind, names }: Wanted): boolean {
    return permitsNames(grant, names) && permitsKind(grant, ...kind === undefined ? this.#kinds : [kind])
  }

  #of(kid: string): Array<Version> {
    const known = this.#versions.get(kid)
    if (known !== undefined) return known
    const made: Array<Version> = []
    this.#versions.set(kid, made)
    return made
  }

  /** Returns what a credential permits at present. Returns nothing if it does not exist. */
  present(kid: string): Grant | undefined {
    const last = this.#versions.get(bare(kid))?.at(-1)
    return last === undefined || last.isGone ? undefined : last
  }

  /** The number of changes so far. A new credential counts as one. */
  get changes(): number {
    return [...this.#versions.values()].reduce((sum, { length }) => sum + length, 0)
  }

  /** Returns the credential with which an account was bound. */
  credentialOf(account: string): string | undefined {
    const kid = this.#boundTo.get(bare(account))
    return kid === undefined ? undefined : uuid(kid)
  }

  /** Returns what an account may order at present. Returns nothing if it was bound with no credential. */
  ofAccount(account: string): Grant | undefined {
    return this.#versions.get(this.#boundTo.get(bare(account)) ?? "")?.at(-1)
  }

  /** Returns the accounts that a credential has bound. */
  #accountsOf(kid: string): ReadonlyArray<string> {
    return [...this.#boundTo].flatMap(([account, by]) => by === kid ? [account] : [])
  }

  /** Records all credentials after a change of any of them. */
  changed(rows: ReadonlyArray<Row>): void {
    const present = new Set<string>()
    for (const row of rows) {
      const kid = String(row["id"])
      present.add(kid)
      this.#became(kid, { ...grantIn(row), isActive: row["status"] === "active", isGone: false })
    }
    for (const [kid, versions] of this.#versions) {
      const last = versions.at(-1)
      if (present.has(kid) || last === undefined || last.isGone) continue
      // The accounts of a credential that had names may order nothing. Those of another one are not restricted.
      this.#became(kid, {
        ...grantOf(last.names === undefined ? {} : { names: [] }),
        isActive: false,
        isGone: true
      })
    }
  }

  #became(kid: string, version: Version): void {
    const versions = this.#of(kid)
    if (JSON.stringify(versions.at(-1)) !== JSON.stringify(version)) versions.push(version)
  }

  /**
   * Records that a request begins. The returned function is called with its answer. A request without an answer may
   * still run for a while.
   */
  asked({ by, wanted, ...asking }: Asking): (answer: { readonly status: number; readonly refusal?: Refusal }) => void {
    const kid = wanted === undefined ? bare(by) : this.#boundTo.get(bare(by))
    if (kid === undefined) return () => {}
    const subject = bare(asking.subject)
    const versions = this.#of(kid)
    const begun = { version: Math.max(0, versions.length - 1) }
    const others = this.#begun.get(subject) ?? new Set()
    this.#begun.set(subject, others.add(begun))
    return ({ refusal, status }) => {
      // After its time limit, a request is answered, but may still commit.
      if (status < 500) others.delete(begun)
      if (refusal !== undefined) this.#refused(kid, subject, wanted, refusal, versions.slice(begun.version))
    }
  }

  /** Returns the versions that were in force since the first request about a subject that may still run. */
  #since(kid: string, subject: string): ReadonlyArray<Version> {
    const versions = this.#of(kid)
    const begun = [...this.#begun.get(subject) ?? []].map(({ version }) => version)
    return versions.slice(Math.min(versions.length - 1, ...begun))
  }

  #refused(
    kid: string,
    subject: string,
    wanted: Wanted | undefined,
    { detail, type }: Refusal,
    since: ReadonlyArray<Version>
  ): void {
    if (since.length === 0) return
    const wrongly = (what: string) =>
      this.#violated(`${what} is refused, although its credential permits it: ${detail}`)
    if (wanted === undefined) {
      const bound = this.#accountsOf(kid).length
      const isBinding = ({ expiresAt = unlimited, isActive, maxAccounts = unlimited }: Version) =>
        isActive && expiresAt >= this.#never && bound < maxAccounts
      if (detail.includes("external account binding") && since.every(isBinding)) wrongly("an account")
      return
    }
    const placed = this.#orders.get(subject)
    const asksFor = placed ?? wanted
    const what = placed === undefined ? `an order for ${wanted.names.join()}` : `the order ${uuid(subject)}`
    if (["rejectedIdentifier", "compound", "invalidProfile"].includes(type)) {
      if (since.every((version) => this.#permits(version, asksFor))) wrongly(what)
    }
    if (type === "rateLimited" && placed === undefined) {
      const orders = [...this.#orders.values()].filter((order) => order.kid === kid).length
      if (since.every(({ ordersPerDay = unlimited }) => orders < ordersPerDay)) wrongly(what)
    }
  }

  /** Judges accounts that one commit has created. */
  registered(rows: ReadonlyArray<Row>): void {
    for (const { id, kid } of rows) if (kid !== "") this.#boundTo.set(String(id), String(kid))
    for (const { created_at, id, kid: bound } of rows) {
      if (bound === "") continue
      const kid = String(bound)
      const since = this.#since(kid, kid)
      const accounts = this.#accountsOf(kid).length
      const most = Math.max(...since.map(({ maxAccounts = unlimited }) => maxAccounts))
      if (accounts > most) this.#violated(`the credential ${uuid(kid)} has bound ${accounts} accounts, not ${most}`)
      const end = Math.max(...since.map(({ expiresAt = unlimited }) => expiresAt))
      if (Number(created_at) >= end) {
        this.#violated(
          `the account ${uuid(String(id))} was bound ${Number(created_at) - end} s after its credential ended`
        )
      }
      if (!since.some(({ isActive }) => isActive)) {
        this.#violated(`the account ${uuid(String(id))} was bound with a credential that binds none`)
      }
    }
  }

  /** Judges orders that one commit has created. */
  placed(rows: ReadonlyArray<Row>): void {
    // Orders with the longest window come first, because in this order most of them are within their limits.
    const placed = rows.flatMap((row) => {
      const kid = this.#boundTo.get(String(row["account"]))
      return kid === undefined ? [] : [{ row, order: placedOf(kid, row) }]
    }).toSorted((one, other) => one.order.createdAt - other.order.createdAt)
    for (const { order, row } of placed) {
      const { createdAt, kid, kind, names } = order
      const id = String(row["id"])
      const since = this.#since(kid, String(row["account"]))
      const permitting = since.filter((version) => this.#permits(version, order))
      const isProved = (version: Version) => version.prevalidated && version.names !== undefined
      if (permitting.length === 0) {
        this.#violated(
          `the order ${
            uuid(id)
          } for ${names.join()} of the kind ${kind} was placed, but its credential does not permit it`
        )
      } else if (row["status"] === "ready" && !permitting.some(isProved)) {
        this.#violated(`the order ${uuid(id)} was ready at once, but its credential proves no names`)
      } else if (row["status"] !== "ready" && since.every(isProved)) {
        this.#violated(`the order ${uuid(id)} needs challenges, but its credential proves its names`)
      }
      this.#orders.set(id, order)
      if (permitting.length === 0) continue
      const most = Math.max(...permitting.map(({ ordersPerDay = unlimited }) => ordersPerDay))
      const others = [...this.#orders.values()].filter((other) =>
        other !== order && other.kid === kid && other.createdAt > createdAt - daySeconds
      )
      if (others.length >= most) {
        this.#violated(
          `the order ${uuid(id)} was placed, but its credential permits ${most} in a day and has ${others.length}`
        )
      }
    }
  }

  /** Returns whether the credential of an order was deleted although it had names. */
  isLost(id: string): boolean {
    const last = this.#versions.get(this.#orders.get(id)?.kid ?? "")?.at(-1)
    return last?.isGone === true && last.names !== undefined
  }

  /** Judges an order whose finalize was accepted. */
  finalized(id: string): void {
    const order = this.#orders.get(id)
    if (order === undefined) return
    const permitting = this.#since(order.kid, id).filter((version) => this.#permits(version, order))
    this.#finalizedBy.set(id, permitting)
    if (permitting.length === 0) {
      this.#violated(
        `the order ${uuid(id)} for ${order.names.join()} was finalized, but its credential does not permit it`
      )
    } else if (this.isLost(id)) {
      this.#violated(`the order ${uuid(id)} was finalized after its credential was deleted`)
    }
  }

  /** Judges an order that has got its certificate. `kind` is the kind of the order. */
  issued(id: string, kind: string, leaf: X509Certificate): void {
    const fault = kindFaultOf(leaf, kind)
    if (fault !== undefined) {
      this.#violated(`the certificate of the order ${uuid(id)} is not of the kind ${kind}: ${fault}`)
    }
    const order = this.#orders.get(id)
    if (order === undefined) return
    const names = (leaf.subjectAltName ?? "").split(", ").map((entry) => entry.replace(/^DNS:/, ""))
    const permitting = (this.#finalizedBy.get(id) ?? []).filter((version) => this.#permits(version, { names, kind }))
    if (permitting.length === 0) {
      this.#violated(
        `the certificate of the order ${uuid(id)} is for ${names.join()}, but its credential does not permit it`
      )
      return
    }
    const most = Math.max(...permitting.map(({ validitySeconds = unlimited }) => validitySeconds))
    if (lifetimeOf(leaf) > most) {
      this.#violated(
        `the certificate of the order ${uuid(id)} lives for ${lifetimeOf(leaf)} s, but its credential permits ${most} s`
      )
    }
    if (this.isLost(id)) this.#violated(`the order ${uuid(id)} was issued after its credential was deleted`)
  }

  /** Forgets what a power cut has undone. `left` are the rows that still exist. */
  undone(left: { readonly accounts: Known; readonly orders: Known; readonly credentials: Known }): void {
    for (const account of this.#boundTo.keys()) if (!left.accounts.has(account)) this.#boundTo.delete(account)
    for (const order of this.#orders.keys()) if (!left.orders.has(order)) this.#orders.delete(order)
    // No process has survived, and so no request.
    this.#begun.clear()
    this.changed([...left.credentials.values()])
  }
}
