import * as Effect from "effect/Effect"
import { NoSuch } from "../../domain/OperatorError.ts"
import { emit } from "../../domain/words/Log.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as audit from "../../store/AuditRows.ts"
import * as compromised from "../../store/revocation/CompromisedIssuers.ts"
import * as crls from "../../store/revocation/Crls.ts"
import type { Operator } from "../Operator.ts"
import { actorFields, actorOf } from "../Operator.ts"
import { enqueueList } from "../work/crl/ListJob.ts"

/**
 * Declares a CA compromised (docs/contribute/decisions/rotation.md, "A compromised CA"). From this commit on, no
 * process stores a certificate of the CA, and a job revokes every certificate that it has signed. Returns whether the
 * CA was not compromised before. Fails if there is no list of such a CA.
 */
export const compromise = Effect.fn("CaCompromise.compromise")(
  function*(operator: Operator, issuer: string) {
    if ((yield* crls.findHead(issuer)) === undefined) return yield* new NoSuch({ noun: "issuer", id: issuer })
    const now = yield* currentSeconds
    const actor = actorOf(operator)
    const isNew = yield* transaction(Effect.gen(function*() {
      const { actorId, actorKind } = actor
      if ((yield* compromised.insert({ issuer, now, actorKind, actorId })) === undefined) return false
      yield* audit.insert({ event: "authority_compromised", ...actor, detail: { issuer } })
      yield* enqueueList(issuer)
      return true
    }))
    if (isNew) yield* emit("admin_authority_compromised", { ...actorFields(operator), issuer })
    return isNew
  },
  Effect.uninterruptible
)
