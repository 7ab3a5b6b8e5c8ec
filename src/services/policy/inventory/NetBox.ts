import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { Comparable } from "../../../engine/net/Address.ts"
import { comparable } from "../../../engine/net/Address.ts"
import type { ProfileConfig } from "../../../settings/AppConfig.ts"
import type { Inventory, Read } from "./Inventory.ts"
import { Fields, InventoryFailed, unfit } from "./Inventory.ts"
import type { Asked, InventoryServer, Query } from "./InventoryGet.ts"
import { refusedBy } from "./InventoryGet.ts"

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
  /** The total number of records on all pages. */
  readonly count?: number | undefined
  readonly next?: string | null | undefined
  readonly results: ReadonlyArray<A>
}

const pageOf = <A, I>(schema: Schema.Codec<A, I>): Read<Page<A>> =>
  Schema.decodeUnknownOption(Schema.Struct({
    count: Schema.optional(Schema.Int),
    next: Schema.optional(Schema.NullOr(Schema.String)),
    results: Schema.Array(schema)
  }))

/**
 * The number of records that are requested per page. The server may return fewer. The number is limited because an
 * answer must be smaller than a mebibyte.
 */
const pageSize = 200
/**
 * The highest number of records that one query may return. A server that does not know a filter returns all its
 * records.
 */
const mostRecords = 10_000

const readAddresses = pageOf(Address)
const readAssignments = pageOf(Schema.Struct({
  interface_type: Schema.String,
  interface_id: Schema.Int,
  group: Reference
}))
const readHost = Schema.decodeUnknownOption(
  Schema.Struct({ id: Schema.Int, custom_fields: Schema.optional(Schema.NullOr(Fields)) })
)

const textsOf = (value: unknown): ReadonlyArray<string> =>
  (Array.isArray(value) ? value : [value]).filter((one): one is string => typeof one === "string" && one !== "")

/** Returns the kind of a NetBox API token, by its prefix. */
const kindOf = (token: string): "Bearer" | "Token" => token.startsWith("nbt_") ? "Bearer" : "Token"

/** The name of the product in refusals and in the log, and the section with its keys. */
export const netBoxProduct = { name: "NetBox", section: "ipam.netbox" }

const hostOf = ({ assigned_object: object }: Address) =>
  object?.device != null
    ? { kind: "device" as const, id: object.device.id }
    : object?.virtual_machine != null
    ? { kind: "virtual_machine" as const, id: object.virtual_machine.id }
    : undefined

const hostPaths = { device: "dcim/devices", virtual_machine: "virtualization/virtual-machines" }

/**
 * Makes the inventory for NetBox. It reads the address. If `sources` lists them, it also reads the host of the address,
 * the virtual addresses of that host, and its redundancy groups.
 */
export const netBox = (config: ProfileConfig["ipam"]["netbox"], server: InventoryServer): Inventory => {
  const { custom_field: field, sources, vip_roles } = config
  const token = Redacted.value(config.token).trim()
  const kind = kindOf(token)
  const headers = { authorization: `${kind} ${token}` }
  const ofToken = `it was sent as ${kind}, since it ${kind === "Bearer" ? "begins" : "does not begin"} with nbt_`
  const at = (path: string, query: Query = []): Asked => ({ path: `api/${path}/`, query })
  const ask = Effect.fnUntraced(function*<A>(asked: Asked, read: Read<A>) {
    const answer = yield* server.get(asked, headers)
    if (answer.status < 200 || answer.status > 299) {
      return yield* refusedBy(server, asked, answer, { ...netBoxProduct, ofToken })
    }
    const found = read(answer.json)
    return Option.isSome(found) ? found.value : yield* server.unusable(asked, answer, unfit)
  })
  /**
   * Returns the records of all pages. Each page is requested by its offset. The server's own link to the next page is
   * not used, because the link may point to a different host, which would then receive the token.
   */
  const records = Effect.fnUntraced(
    function*<A>(path: string, query: Query, read: Read<Page<A>>) {
      const found: Array<A> = []
      while (true) {
        const offset: Query = found.length === 0 ? [] : [["offset", String(found.length)]]
        const asked = at(path, [...query, ["limit", String(pageSize)], ...offset])
        const failed = (fault: string) => new InventoryFailed({ detail: `${server.placeOf(asked)} ${fault}` })
        const { count, next, results } = yield* ask(asked, read)
        for (const one of results) found.push(one)
        if (next == null) {
          if (count === undefined || count === found.length) return found
          return yield* failed(`has ${count} records and gave ${found.length}`)
        }
        if (results.length === 0) return yield* failed("gave a page without records that is not the last")
        if (found.length >= mostRecords) {
          return yield* failed(`has more than ${mostRecords} records`)
        }
      }
    }
  )
  const addresses = (query: Query) => records("ipam/ip-addresses", query, readAddresses)

  const fieldOf = (fields: typeof Fields.Type | null | undefined) => textsOf(fields?.[field])
  const namesOf = (record: Address) => [...textsOf(record.dns_name), ...fieldOf(record.custom_fields)]

  const ofHost = Effect.fnUntraced(function*({ id, kind }: NonNullable<ReturnType<typeof hostOf>>) {
    const host = yield* ask(at(`${hostPaths[kind]}/${id}`), readHost)
    return host.id === id ? fieldOf(host.custom_fields) : []
  })

  const virtual = Effect.fnUntraced(function*({ id, kind }: NonNullable<ReturnType<typeof hostOf>>) {
    const found = yield* addresses([
      [`${kind}_id`, String(id)],
      ...vip_roles.map((role) => ["role", role] as const)
    ])
    // A server that does not know a filter returns all its records, so the records are filtered here again.
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
    // A custom field counts only if `sources` lists `custom_field`. Otherwise the field must not replace the names of
    // the device.
    const own = sources.includes("custom_field") ? fieldOf(record.custom_fields) : []
    const host = hostOf(record)
    if (sources.includes("dns_name")) names.push(...textsOf(record.dns_name))
    names.push(...own)
    if (sources.includes("device") && own.length === 0 && host !== undefined) names.push(...yield* ofHost(host))
    if (sources.includes("vip") && host !== undefined) names.push(...yield* virtual(host))
    const { assigned_object_id: id, assigned_object_type: type } = record
    // Redundancy groups are looked up only for an address that is assigned to an interface of a host.
    if (sources.includes("fhrp") && host !== undefined && id != null && type != null) {
      names.push(...yield* redundant(type, id))
    }
    return names
  })

  const byAddress = ({ text }: Comparable) => [["address", text]] as const

  return {
    placeOf: (client) => server.placeOf(at("ipam/ip-addresses", byAddress(client))),
    namesFor: Effect.fnUntraced(function*(client: Comparable) {
      const found = yield* addresses(byAddress(client))
      const records = found.filter(({ address }) => comparable(address.replace(/\/.*$/, ""))?.text === client.text)
      if (records.length === 0) return undefined
      return (yield* Effect.forEach(records, ofRecord)).flat()
    })
  }
}
