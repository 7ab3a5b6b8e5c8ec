import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type { Comparable } from "../../../engine/net/Address.ts"
import { comparable } from "../../../engine/net/Address.ts"
import type { ProfileConfig } from "../../../settings/AppConfig.ts"
import type { Inventory } from "./Inventory.ts"
import { Fields, unfit } from "./Inventory.ts"
import type { Asked, InventoryServer } from "./InventoryGet.ts"
import { refusedBy } from "./InventoryGet.ts"

// On its own, `Schema.FiniteFromString` would read a blank text as 0.
const Code = Schema.Union([
  Schema.Int,
  Schema.String.check(Schema.isPattern(/\S/)).pipe(
    Schema.decodeTo(Schema.Finite, SchemaTransformation.numberFromString)
  )
])
const Envelope = Schema.Struct({
  success: Schema.Unknown,
  code: Schema.optional(Code),
  data: Schema.optional(Schema.Unknown)
})

const isFields = Schema.is(Fields)
const readEnvelope = Schema.decodeUnknownOption(Envelope)
/** The name of the product in refusals and in the log, and the section with its keys. */
export const phpIpamProduct = { name: "phpIPAM", section: "ipam.phpipam" }

const isList = Schema.is(Schema.Array(Fields))

/**
 * Returns the records of an answer. PHP writes a list with gaps as an object, and an object without members as a list.
 */
const recordsOf = (data: unknown): ReadonlyArray<typeof Fields.Type> | undefined => {
  if (isList(data)) return data
  if (!isFields(data)) return undefined
  const hasGaps = Object.keys(data).every((key) => /^[0-9]+$/.test(key))
  const values = Object.values(data)
  return hasGaps ? (isList(values) ? values : undefined) : [data]
}

const textOf = (value: unknown): string => typeof value === "string" ? value : ""

const listOf = (value: unknown): ReadonlyArray<string> =>
  (Array.isArray(value) ? value : [value]).flatMap((one) => textOf(one).split(",")).filter((one) => one.trim() !== "")

/**
 * Returns the value of a custom field. Depending on the settings of an app, custom fields are below `custom_fields`.
 */
const customOf = (record: typeof Fields.Type, field: string): unknown => {
  const nested = record["custom_fields"]
  return record[field] ?? (isFields(nested) ? nested[field] : undefined)
}

/** Returns the id of a device. Ids are text or numbers; 0 means that there is no device. */
const deviceOf = (value: unknown): string | undefined => {
  const id = typeof value === "number" ? String(value) : textOf(value).trim()
  return /^[1-9][0-9]*$/.test(id) ? id : undefined
}

/**
 * Makes the inventory for phpIPAM. It reads the address. If `sources` lists the device, it also reads the device of the
 * address.
 */
export const phpIpam = (config: ProfileConfig["ipam"]["phpipam"], server: InventoryServer): Inventory => {
  const { app_id, custom_field: field, sources } = config
  const headers = { token: Redacted.value(config.token).trim() }
  const ofToken = `it was sent as the code of the app ${app_id}`
  const at = (path: string): Asked => ({ path: `api/${app_id}/${path}/` })
  /**
   * Sends a query and returns the records in the answer. A 404 means that there are no records only if it has phpIPAM's
   * own form, because a proxy or a wrong path also causes a 404.
   */
  const ask = Effect.fnUntraced(function*(asked: Asked) {
    const answer = yield* server.get(asked, headers)
    const { json, status } = answer
    const envelope = Option.getOrUndefined(readEnvelope(json))
    const hasFailed = envelope !== undefined && (envelope.success === false || envelope.success === 0)
    if (hasFailed && envelope.code === 404 && (status === 404 || status === 200)) return []
    if (status < 200 || status > 299) return yield* refusedBy(server, asked, answer, { ...phpIpamProduct, ofToken })
    if (envelope === undefined) return yield* server.unusable(asked, answer, unfit)
    if (envelope.success !== true && envelope.success !== 1) {
      return yield* server.unusable(asked, answer, "says that it failed")
    }
    return recordsOf(envelope.data ?? []) ?? (yield* server.unusable(asked, answer, unfit))
  })

  const ofDevice = Effect.fnUntraced(function*(id: string) {
    const [device] = yield* ask(at(`devices/${id}`))
    return device === undefined ? [] : listOf(customOf(device, field))
  })

  const ofRecord = Effect.fnUntraced(function*(record: typeof Fields.Type) {
    const names: Array<string> = []
    // A custom field counts only if `sources` lists `custom_field`. Otherwise the field must not replace the names of
    // the device.
    const own = sources.includes("custom_field") ? listOf(customOf(record, field)) : []
    const device = deviceOf(record["deviceId"])
    const hostname = textOf(record["hostname"])
    if (sources.includes("dns_name") && hostname !== "") names.push(hostname)
    names.push(...own)
    if (sources.includes("device") && own.length === 0 && device !== undefined) names.push(...yield* ofDevice(device))
    return names
  })

  const search = ({ text }: Comparable) => at(`addresses/search/${encodeURIComponent(text)}`)

  return {
    placeOf: (client) => server.placeOf(search(client)),
    namesFor: Effect.fnUntraced(function*(client: Comparable) {
      const found = yield* ask(search(client))
      const records = found.filter((record) => comparable(textOf(record["ip"]))?.text === client.text)
      return records.length === 0 ? undefined : (yield* Effect.forEach(records, ofRecord)).flat()
    })
  }
}
