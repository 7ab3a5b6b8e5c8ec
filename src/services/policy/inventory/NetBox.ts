import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { Comparable } from "../../../kernel/net/Address.ts"
import { comparable } from "../../../kernel/net/Address.ts"
import type { ProfileConfig } from "../../../settings/AppConfig.ts"
import type { Inventory } from "./Inventory.ts"
import { decoded, Fields, InventoryFailed } from "./Inventory.ts"
import type { InventoryServer, Query } from "./InventoryGet.ts"

const Reference = Schema.Struct({ id: Schema.Int })

const Address = Schema.Struct({
  address: Schema.String,
  dns_name: Schema.optional(Schema.NullOr(Schema.String)),
  role: Schema.optional(Schema.NullOr(Schema.Struct({ value: Schema.String }))),
  custom_fields: Schema.optional(Schema.NullOr(Fields)),
  assigned_object_type: Schema.optional(Schema.NullOr(Schema.String)),
  assigned_object_id: Schema.optional(Schema.NullOr(Schema.Int)),
  assigned_object: Schema.optional(Schema.NullOr(Schema.Struct({
    device: Schema.optional(Schema.NullOr(Reference)),
    virtual_machine: Schema.optional(Schema.NullOr(Reference))
  })))
})
type Address = typeof Address.Type

interface Page<A> {
  /** How many records there are on all pages. */
  readonly count?: number | undefined
  readonly next?: string | null | undefined
  readonly results: ReadonlyArray<A>
}

const pageOf = <A, I>(schema: Schema.Codec<A, I>): (json: unknown) => Effect.Effect<Page<A>, InventoryFailed> =>
  decoded(Schema.Struct({
    count: Schema.optional(Schema.Int),
    next: Schema.optional(Schema.NullOr(Schema.String)),
    results: Schema.Array(schema)
  }))

/** How many records a page is asked to have. The server may give fewer; an answer has to be below a mebibyte. */
const pageSize = 200
/** The most records of one question: a server that does not know a filter answers with all that it has. */
const mostRecords = 10_000

const readAddresses = pageOf(Address)
const readAssignments = pageOf(Schema.Struct({
  interface_type: Schema.String,
  interface_id: Schema.Int,
  group: Reference
}))
const readHost = decoded(Schema.Struct({ id: Schema.Int, custom_fields: Schema.optional(Schema.NullOr(Fields)) }))

const textsOf = (value: unknown): ReadonlyArray<string> =>
  (Array.isArray(value) ? value : [value]).filter((one): one is string => typeof one === "string" && one !== "")

/** The Authorization header for NetBox's API, which depends on the prefix of the token. */
const authorization = (token: string): string => token.startsWith("nbt_") ? `Bearer ${token}` : `Token ${token}`

const hostOf = ({ assigned_object: object }: Address) =>
  object?.device != null
    ? { kind: "device" as const, id: object.device.id }
    : object?.virtual_machine != null
    ? { kind: "virtual_machine" as const, id: object.virtual_machine.id }
    : undefined

const hostPaths = { device: "dcim/devices", virtual_machine: "virtualization/virtual-machines" }

/** NetBox: the address and, if `sources` has them, its host, the virtual addresses of that host and its redundancy groups. */
export const netBox = (config: ProfileConfig["ipam"]["netbox"], server: InventoryServer): Inventory => {
  const { custom_field: field, sources, vip_roles } = config
  const headers = { authorization: authorization(Redacted.value(config.token).trim()) }
  const ask = Effect.fnUntraced(function*(path: string, query: Query = []) {
    const { json, status } = yield* server.get(`api/${path}/`, query, headers)
    return status >= 200 && status <= 299
      ? json
      : yield* new InventoryFailed({ detail: `the answer has status ${status}` })
  })
  /**
   * The records of all pages. Each page is asked for by its offset: the server's own link to the next one may lead elsewhere,
   * and would be sent the token.
   */
  const records = Effect.fnUntraced(
    function*<A>(path: string, query: Query, read: (json: unknown) => Effect.Effect<Page<A>, InventoryFailed>) {
      const found: Array<A> = []
      while (true) {
        const offset: Query = found.length === 0 ? [] : [["offset", String(found.length)]]
        const answer = yield* ask(path, [...query, ["limit", String(pageSize)], ...offset])
        const { count, next, results } = yield* read(answer)
        for (const one of results) found.push(one)
        if (next == null) {
          if (count === undefined || count === found.length) return found
          return yield* new InventoryFailed({ detail: `it has ${count} records and gave ${found.length}` })
        }
        if (results.length === 0) return yield* new InventoryFailed({ detail: "a page without records has a next one" })
        if (found.length >= mostRecords) {
          return yield* new InventoryFailed({ detail: `there are more than ${mostRecords} records` })
        }
      }
    }
  )
  const addresses = (query: Query) => records("ipam/ip-addresses", query, readAddresses)

  const fieldOf = (fields: typeof Fields.Type | null | undefined) => textsOf(fields?.[field])
  const namesOf = (record: Address) => [...textsOf(record.dns_name), ...fieldOf(record.custom_fields)]

  const ofHost = Effect.fnUntraced(function*({ id, kind }: NonNullable<ReturnType<typeof hostOf>>) {
    const host = yield* Effect.flatMap(ask(`${hostPaths[kind]}/${id}`), readHost)
    return host.id === id ? fieldOf(host.custom_fields) : []
  })

  const virtual = Effect.fnUntraced(function*({ id, kind }: NonNullable<ReturnType<typeof hostOf>>) {
    const found = yield* addresses([
      [`${kind}_id`, String(id)],
      ...vip_roles.map((role) => ["role", role] as const)
    ])
    // A server that does not know a filter answers with all records.
    return found.filter((record) =>
      record.role != null && vip_roles.includes(record.role.value) &&
      hostOf(record)?.kind === kind && hostOf(record)?.id === id
    ).flatMap(namesOf)
  })

  const redundant = Effect.fnUntraced(function*(type: string, id: number) {
    const query = [["interface_type", type], ["interface_id", String(id)]] as const
    const assignments = yield* records("ipam/fhrp-group-assignments", query, readAssignments)
    const groups = assignments.filter((one) => one.interface_type === type && one.interface_id === id)
    const found = yield* Effect.forEach(
      new Set(groups.map(({ group }) => group.id)),
      (group) =>
        Effect.map(
          addresses([["fhrpgroup_id", String(group)]]),
          (records) =>
            records.filter((record) =>
              record.assigned_object_type === "ipam.fhrpgroup" && record.assigned_object_id === group
            )
        )
    )
    return found.flat().flatMap(namesOf)
  })

  const ofRecord = Effect.fnUntraced(function*(record: Address) {
    const names: Array<string> = []
    // A field that is no source has no names, and keeps the device from nothing.
    const own = sources.includes("custom_field") ? fieldOf(record.custom_fields) : []
    const host = hostOf(record)
    if (sources.includes("dns_name")) names.push(...textsOf(record.dns_name))
    names.push(...own)
    if (sources.includes("device") && own.length === 0 && host !== undefined) names.push(...yield* ofHost(host))
    if (sources.includes("vip") && host !== undefined) names.push(...yield* virtual(host))
    const { assigned_object_id: id, assigned_object_type: type } = record
    // Only the client's own interface leads to a group.
    if (sources.includes("fhrp") && host !== undefined && id != null && type != null) {
      names.push(...yield* redundant(type, id))
    }
    return names
  })

  const byAddress = ({ text }: Comparable) => [["address", text]] as const

  return {
    placeOf: (client) => `NetBox at ${server.urlOf("api/ipam/ip-addresses/", byAddress(client)).href}`,
    namesFor: Effect.fnUntraced(function*(client: Comparable) {
      const found = yield* addresses(byAddress(client))
      const records = found.filter(({ address }) => comparable(address.replace(/\/.*$/, ""))?.text === client.text)
      if (records.length === 0) return undefined
      return (yield* Effect.forEach(records, ofRecord)).flat()
    })
  }
}
