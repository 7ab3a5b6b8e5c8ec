import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type { Comparable } from "../../../kernel/net/Address.ts"
import { comparable } from "../../../kernel/net/Address.ts"
import type { ProfileConfig } from "../../../settings/AppConfig.ts"
import type { Inventory, Read } from "./Inventory.ts"
import { Fields, unfit } from "./Inventory.ts"
import type { Asked, InventoryServer } from "./InventoryGet.ts"
import { refusedBy } from "./InventoryGet.ts"

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

const readEnvelope = Schema.decodeUnknownOption(Envelope)
const readAddresses = Schema.decodeUnknownOption(Schema.Array(Fields))
const readDevice = Schema.decodeUnknownOption(Fields)

/** What refusals and the log call it, and where its keys are. */
export const phpIpamProduct = { name: "phpIPAM", section: "ipam.phpipam" }

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
  const ofToken = `it was sent as the code of the app ${app_id}`
  const at = (path: string): Asked => ({ path: `api/${app_id}/${path}/` })
  /** The data of an answer; `undefined` for its 404. */
  const ask = Effect.fnUntraced(function*<A>(asked: Asked, read: Read<A>) {
    const answer = yield* server.get(asked, headers)
    const { json, status } = answer
    if (status === 404) return undefined
    if (status < 200 || status > 299) return yield* refusedBy(server, asked, answer, { ...phpIpamProduct, ofToken })
    const envelope = readEnvelope(json)
    if (Option.isNone(envelope)) return yield* server.unusable(asked, answer, unfit)
    const { code, data, success } = envelope.value
    if (success !== true && success !== 1) {
      return code === 404 ? undefined : yield* server.unusable(asked, answer, "says that it failed")
    }
    const found = read(data ?? [])
    return Option.isSome(found) ? found.value : yield* server.unusable(asked, answer, unfit)
  })

  const ofDevice = Effect.fnUntraced(function*(id: string) {
    const device = yield* ask(at(`devices/${id}`), readDevice)
    return device === undefined ? [] : listOf(device[field])
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

  const search = ({ text }: Comparable) => at(`addresses/search/${encodeURIComponent(text)}`)

  return {
    placeOf: (client) => server.placeOf(search(client)),
    namesFor: Effect.fnUntraced(function*(client: Comparable) {
      const found = yield* ask(search(client), readAddresses)
      if (found === undefined) return undefined
      const records = found.filter((record) => comparable(textOf(record["ip"]))?.text === client.text)
      return records.length === 0 ? undefined : (yield* Effect.forEach(records, ofRecord)).flat()
    })
  }
}
