import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Csr } from "../crypto/x509/Csr.ts"
import { checkCsrNames } from "../crypto/x509/Csr.ts"
import { CsrRefused } from "../crypto/x509/CsrRefused.ts"
import { unrequestedFault } from "../crypto/x509/RequestedExtensions.ts"
import type { CertificateKind } from "../domain/CertificateKind.ts"
import { PublicKeys } from "../services/keys/PublicKeys.ts"
import { confusesScripts } from "./PolicyGate.ts"

/** What a CSR is compared with. */
export interface Compared {
  /** The names of the order. */
  readonly names: ReadonlyArray<string>
  readonly kind: CertificateKind
  /** Whether the signer may copy the subject of the CSR. A local CA never does this. */
  readonly mayCopySubject: boolean
  /** Whether a program of the policy is told the names. */
  readonly isForScripts: boolean
}

/** Refuses a CSR whose key is weak, or that does not fit the names and the kind of its order. */
export const judgeCsr = Effect.fnUntraced(
  function*(csr: Csr, { isForScripts, kind, mayCopySubject, names }: Compared) {
    const fault = yield* (yield* PublicKeys).faultOf(csr.spki)
    if (fault !== undefined) return yield* new CsrRefused(fault)
    const named = checkCsrNames(csr, names, mayCopySubject)
    if (Result.isFailure(named)) return yield* named.failure
    if (isForScripts && confusesScripts([...names, ...csr.subjectNames])) {
      return yield* new CsrRefused({
        reason: "common_name",
        detail: "A common name of the CSR is too long or holds a comma or a control character."
      })
    }
    const surplus = unrequestedFault(csr, { ...kind.content, name: kind.name, unrequested: kind.unrequested })
    if (surplus !== undefined) return yield* new CsrRefused({ reason: "unrequested", detail: surplus })
  }
)
