import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { readTextFile, said } from "../../kernel/host/KeyFile.ts"
import { foldSerial } from "../../pki/x509/Serial.ts"

/** A revocation of an old ledger. */
export interface LedgerEntry {
  /** Lower-case hexadecimal without leading zero octets. */
  readonly serial: string
  /** Epoch seconds. */
  readonly revokedAt: number
  readonly reason: number | undefined
}

/** The ledger exists but cannot be read. */
export class LedgerUnusable extends Data.TaggedError("LedgerUnusable")<{
  readonly path: string
  readonly detail: string
}> {
  override get message(): string {
    return `${this.path}: ${this.detail}`
  }
}

/** The ledger that belongs to a `signer.local_ca.crl_path`: the same path with the extension .json. */
export const ledgerPathOf = (crlPath: string): string => `${crlPath.replace(/\.[^./]*$/, "")}.json`

const largest = 64 * 1024 * 1024

const lastSecond = 253_402_300_799 // of the year 9999, the latest time that a list can state

const Entry = Schema.Struct({
  serial: Schema.String.check(Schema.isPattern(/^[0-9a-fA-F]{1,64}$/)),
  revoked_at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: lastSecond })),
  reason: Schema.optional(Schema.NullOr(Schema.Int))
})

const readList = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Array(Schema.Unknown)))
const readEntry = Schema.decodeUnknownResult(Entry)

const folded = (serial: string): string => {
  const octets = (serial.length % 2 === 0 ? serial : `0${serial}`).toLowerCase()
  return foldSerial(octets)
}

const parse = (text: string): Result.Result<ReadonlyArray<LedgerEntry>, string> =>
  Result.gen(function*() {
    const list = yield* Result.mapError(readList(text), () => "is not a JSON array")
    const entries: Array<LedgerEntry> = []
    for (const [index, one] of list.entries()) {
      const { reason, revoked_at, serial } = yield* Result.mapError(
        readEntry(one),
        () => `entry ${index} is not an object with serial (hexadecimal), revoked_at (epoch seconds) and reason`
      )
      entries.push({ serial: folded(serial), revokedAt: revoked_at, reason: reason ?? undefined })
    }
    return entries
  })

/** Reads the ledger; `undefined` when there is none. One bad entry fails the whole ledger, and its index is named. */
export const readLedger = (path: string): Effect.Effect<ReadonlyArray<LedgerEntry> | undefined, LedgerUnusable> =>
  readTextFile(path, largest).pipe(
    Effect.map(({ text }) => text),
    Effect.catchIf(({ reason }) => reason === "absent", () => Effect.succeed(undefined)),
    Effect.mapError((error) => new LedgerUnusable({ path, detail: said(error) })),
    Effect.flatMap((text) =>
      text === undefined
        ? Effect.succeed(undefined)
        : Effect.mapError(Effect.fromResult(parse(text)), (detail) => new LedgerUnusable({ path, detail }))
    )
  )
