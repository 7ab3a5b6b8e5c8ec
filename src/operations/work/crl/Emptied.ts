import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { exportedNumber } from "../../../services/signing/ExportedCrl.ts"
import { ledgerPathOf, readLedger } from "../../../services/signing/Ledger.ts"
import { Signers } from "../../../services/signing/Signer.ts"
import * as crls from "../../../store/revocation/Crls.ts"
import { recordedNumber } from "./IssuedLists.ts"

/**
 * The database has no list of a CA that has already published a list. So it is not the same database as before. `path`
 * is the file of the published list.
 */
export class DatabaseEmptied extends Data.TaggedError("DatabaseEmptied")<{
  readonly path: string
  readonly number: number
}> {}

/**
 * Fails if a CA has a published list that the database does not know. A new list would omit the old revocations, and
 * all other data of the old database are missing too. If there is an old ledger, the published lists come from another
 * service, and there is no failure.
 */
export const refuseEmptied = Effect.gen(function*() {
  const { crlIssuers } = yield* Signers
  for (const crl of crlIssuers) {
    if ((yield* crls.shownHead(crl.id)) !== undefined) continue
    const exported = yield* exportedNumber(crl)
    const [path, number] = exported === undefined ? [crl.issued.path, yield* recordedNumber(crl)] : [crl.path, exported]
    if (number === undefined) continue
    const hasLedger = Result.getOrElse(
      Result.map(yield* Effect.result(readLedger(ledgerPathOf(crl.path))), (ledger) => ledger !== undefined),
      () => true // the ledger exists, and its import will report its fault
    )
    if (!hasLedger) return yield* new DatabaseEmptied({ path, number })
  }
})
