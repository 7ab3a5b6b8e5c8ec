import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { foldSerial } from "../../crypto/x509/Serial.ts"
import { readTextFile, said } from "../../engine/host/KeyFile.ts"

/** A revocation in an old ledger. */
export interface LedgerEntry {
  /** The serial in lower-case hexadecimal, without leading zero octets. */
  readonly serial: string
  /** The date of the revocation, in epoch seconds. */
  readonly revokedAt: number
  readonly reason: number | undefined
}

/** An old ledger. */
export interface OldLedger {
  readonly entries: ReadonlyArray<LedgerEntry>
  /** The number of the last list that was made from the ledger. It is 0 if the ledger does not contain that number. */
  readonly number: number
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

/**
 * Returns the path of the ledger that belongs to a `signer.local_ca.crl_path`: the same path with the extension .json.
 */
export const ledgerPathOf = (crlPath: string): string => `${crlPath.replace(/\.[^./]*$/, "")}.json`

const largest = 64 * 1024 * 1024

const lastSecond = 253_402_300_799 // the last second of the year 9999, the latest time that a list can state

const serial = Schema.String.check(Schema.isPattern(/^[0-9a-fA-F]{1,64}$/))

const Entry = Schema.Struct({
  serial: Schema.optional(serial),
  serial_hex: Schema.optional(serial),
  revoked_at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: lastSecond })),
  reason: Schema.optional(Schema.NullOr(Schema.Int))
})

/** The newer form of a ledger: an object. Its only array contains the entries, and may have any name. */
const Numbered = Schema.StructWithRest(
  Schema.Struct({ crl_number: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)) }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)

const readLedgerText = Schema.decodeUnknownResult(
  Schema.fromJsonString(Schema.Union([Schema.Array(Schema.Unknown), Numbered]))
)
const readEntry = Schema.decodeUnknownResult(Entry)

const folded = (serial: string): string => {
  const octets = (serial.length % 2 === 0 ? serial : `0${serial}`).toLowerCase()
  return foldSerial(octets)
}

const isList = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value)

/** Returns the entries, which are not checked yet, and the number of the last list. */
const listIn = (text: string): Result.Result<readonly [ReadonlyArray<unknown>, number: number], string> => {
  const read = Result.getOrUndefined(readLedgerText(text))
  if (read === undefined) return Result.fail("is neither a JSON array nor an object with crl_number and an array")
  if (isList(read)) return Result.succeed([read, 0])
  const [list, ...others] = Object.values(read).filter(isList)
  return list === undefined || others.length > 0
    ? Result.fail("is an object with crl_number that does not have one array")
    : Result.succeed([list, read.crl_number])
}

const parse = (text: string): Result.Result<OldLedger, string> =>
  Result.gen(function*() {
    const [list, number] = yield* listIn(text)
    const entries: Array<LedgerEntry> = []
    for (const [index, one] of list.entries()) {
      const fault =
        `entry ${index} is not an object with serial or serial_hex (hexadecimal), revoked_at (epoch seconds)`
      const { reason, revoked_at, serial, serial_hex } = yield* Result.mapError(
        readEntry(one),
        () => `${fault} and reason`
      )
      const written = serial ?? serial_hex ?? (yield* Result.fail(`${fault} and reason`))
      entries.push({ serial: folded(written), revokedAt: revoked_at, reason: reason ?? undefined })
    }
    return { entries, number }
  })

/**
 * Reads the ledger. Returns `undefined` if there is no ledger. Fails if any entry is bad, and names the index of that
 * entry.
 */
export const readLedger = (path: string): Effect.Effect<OldLedger | undefined, LedgerUnusable> =>
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
