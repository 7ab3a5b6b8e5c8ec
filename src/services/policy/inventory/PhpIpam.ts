import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type { Comparable } from "../../../kernel/net/Address.ts"
import { comparable } from "../../../kernel/net/Address.ts"
import type { ProfileConfig } from "../../../settings/AppConfig.ts"
import type { Inventory } from "./Inventory.ts"
import { decoded, Fields, InventoryFailed } from "./Inventory.ts"
import type { InventoryServer } from "./InventoryGet.ts"

// `Schema.FiniteFromString` alone reads a blank text as 0.
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

const readEnvelope = decoded(Envelope)
const readAddresses = decoded(Schema.Array(Fields))
const readDevice = decoded(Fields)

const textOf = (value: unknown): string => typeof value === "string" ? value : ""

const listOf = (value: unknown): ReadonlyArray<string> => textOf(value).split(",").filter((one) => one.trim() !== "")

/** Ids are text or numbers; 0 means that there is no device. */
const deviceOf = (value: unknown): string | undefined => {
  const id = typeof value === "number" ? String(value) : textOf(value)
  return /^[1-9][0-9]*$/.test(id) ? id : undefined
}

/** phpIPAM: the address and, if `sources` has it, its device. */
export const phpIpam = (config: ProfileConfig["ipam"]["phpipam"], server: InventoryServer): Inventory => {
  const { app_id, custom_field: field, sources } = config
  const headers = { token: Redacted.value(config.token).trim() }
  const pathOf = (path: string) => `api/${app_id}/${path}/`
  /** The data of an answer; `undefined` for its 404. */
  const ask = Effect.fnUntraced(function*(path: string) {
    const { json, status } = yield* server.get(pathOf(path), [], headers)
    if (status === 404) return undefined
    if (status < 200 || status > 299) return yield* new InventoryFailed({ detail: `the answer has status ${status}` })
    const { code, data, success } = yield* readEnvelope(json)
    if (success === true || success === 1) return data ?? []
    if (code === 404) return undefined
    return yield* new InventoryFailed({ detail: "the answer says that it failed" })
  })

  const ofDevice = Effect.fnUntraced(function*(id: string) {
    const data = yield* ask(`devices/${id}`)
    return data === undefined ? [] : listOf((yield* readDevice(data))[field])
  })

  const ofRecord = Effect.fnUntraced(function*(record: typeof Fields.Type) {
    const names: Array<string> = []
    // A field that is no source has no names, and keeps the device from nothing.
    const own = sources.includes("custom_field") ? listOf(record[field]) : []
    const device = deviceOf(record["deviceId"])
    const hostname = textOf(record["hostname"])
    if (sources.includes("dns_name") && hostname !== "") names.push(hostname)
    names.push(...own)
    if (sources.includes("device") && own.length === 0 && device !== undefined) names.push(...yield* ofDevice(device))
    return names
  })

  const search = ({ text }: Comparable) => `addresses/search/${encodeURIComponent(text)}`

  return {
    placeOf: (client) => `phpIPAM at ${server.urlOf(pathOf(search(client)), []).href}`,
    namesFor: Effect.fnUntraced(function*(client: Comparable) {
      const data = yield* ask(search(client))
      if (data === undefined) return undefined
      const found = yield* readAddresses(data)
      const records = found.filter((record) => comparable(textOf(record["ip"]))?.text === client.text)
      return records.length === 0 ? undefined : (yield* Effect.forEach(records, ofRecord)).flat()
    })
  }
}
