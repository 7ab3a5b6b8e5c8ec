import * as Effect from "effect/Effect"
import type { ListUnusable } from "../../crypto/x509/RevocationList.ts"
import { listInFile, publicKeyOf, readRevocationList, verifyList } from "../../crypto/x509/RevocationList.ts"
import { BadRequest } from "../../domain/OperatorError.ts"
import { transaction } from "../../engine/sql/Database.ts"
import * as audit from "../../store/AuditRows.ts"
import type { AtKeyboard } from "../Operator.ts"
import { actorOf } from "../Operator.ts"
import { enqueueList } from "../work/crl/ListJob.ts"
import type { Compared, Source } from "../work/crl/RestoredRevocations.ts"
import { compare, raiseAbove, restore } from "../work/crl/RestoredRevocations.ts"
import { find, signing } from "./CrlRecords.ts"

/*
 * Imports revocations after a restore, from a list that an operator has kept
 * (docs/contribute/decisions/issued-lists.md).
 */

/** A list that may be imported, and the revocations in it that the database lacks. */
export interface Importable extends Source {
  readonly compared: Compared
}

/**
 * Reads a list of a CA with which one of the profiles signs, and compares the list with the database. Accepts only a
 * complete list that this CA signed.
 */
export const examine = Effect.fn("ListImport.examine")(
  function*(profiles: ReadonlyArray<string>, issuer: string, path: string, octets: Buffer) {
    yield* find(issuer)
    const ca = (yield* signing(profiles)).get(issuer)?.ca
    if (ca === undefined) {
      return yield* new BadRequest({
        detail:
          `No enabled profile signs with the CA ${issuer}, so its list cannot be verified; give it a profile first.`
      })
    }
    const refused = ({ detail }: ListUnusable) => new BadRequest({ detail: `${path} cannot be imported: ${detail}.` })
    const list = yield* Effect.mapError(
      Effect.tap(
        Effect.flatMap(Effect.fromResult(listInFile(octets)), readRevocationList),
        (read) => verifyList(read, publicKeyOf(ca.certificate))
      ),
      refused
    )
    return { issuer, path, list, compared: yield* compare({ issuer, list }) } satisfies Importable
  }
)

/**
 * Records the revocations that the database lacks, and ensures that the next list has a higher number than the imported
 * list. If either step changed something, queues the signing of the next list. Returns how many revocations were new.
 */
export const importList = Effect.fn("ListImport.importList")(
  function*(operator: AtKeyboard, { compared, issuer, list, path }: Importable) {
    const { actorId } = actorOf(operator)
    const restored = yield* restore({ issuer, list, path }, compared, { actorKind: "cli", actorId })
    const { crlNumber: before } = yield* find(issuer)
    yield* transaction(Effect.gen(function*() {
      const isRaised = yield* raiseAbove(issuer, list.number)
      if (isRaised) {
        yield* audit.insert({
          event: "crl_number_raised",
          actorKind: "cli",
          actorId,
          detail: { issuer, before, after: list.number }
        })
      }
      if (isRaised || restored > 0) yield* enqueueList(issuer)
    }))
    return restored
  },
  Effect.uninterruptible
)
