import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { readCertificate } from "../../crypto/x509/Certificate.ts"
import type { ChainMaker } from "../../crypto/x509/Chain.ts"
import { checkChain, faultText, readAlternate, readStoredChain } from "../../crypto/x509/Chain.ts"
import { findLeaf } from "../../crypto/x509/FoundLeaf.ts"
import { keyPurposes } from "../../crypto/x509/KeyPurpose.ts"
import { asksForUsage } from "../../crypto/x509/RequestedExtensions.ts"
import { serialText } from "../../crypto/x509/Serial.ts"
import { defaultKind } from "../../domain/CertificateKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { Issued, IssueRequest } from "./Signer.ts"
import { SigningFailed } from "./Signer.ts"

/** By how much a certificate may outlive the bound of a credential, because clocks differ and dates are rounded. */
const toleranceSeconds = 3600

/** The highest number of bytes in a chain. */
export const maxChainBytes = 65_536

/**
 * Checks a chain from another party against the request (docs/contribute/decisions/keys-and-chains.md). If a refused
 * chain contains a certificate for the key of the request, the failure contains that certificate, because it was signed
 * although the client will not get it (docs/contribute/decisions/orphaned-certificates.md).
 */
export const accept = (
  chain: string,
  request: IssueRequest,
  maker: ChainMaker
): Effect.Effect<Issued, SigningFailed> =>
  Effect.gen(function*() {
    const { csr, kind, names, orderId } = request
    const now = yield* currentSeconds
    const bound = request.validityBound
    const check = chain.length > maxChainBytes
      ? "undecodable"
      : checkChain(chain, {
        spki: csr.spki,
        names,
        now,
        request: {
          csr: csr.der,
          mayLackServerAuth: kind.name !== defaultKind && !asksForUsage(csr, keyPurposes.server_auth)
        }
      })
    const stored = check === undefined ? readStoredChain(chain) : undefined
    const leaf = stored === undefined ? undefined : Result.getOrUndefined(readCertificate(stored.leaf))
    const isTooLong = leaf !== undefined && bound !== undefined && leaf.notAfter > now + bound + toleranceSeconds
    if (leaf === undefined || isTooLong) {
      const fault = check ?? (isTooLong ? "lifetime" : "undecodable")
      const made = findLeaf(chain, csr.spki)
      yield* emit("order_finalize_chain_rejected", { order_id: orderId, check: fault, cert_serial: made?.serial })
      return yield* new SigningFailed({ cause: "chain_rejected", detail: faultText(fault, maker), made: made?.leaf })
    }
    return { chain, serial: serialText(leaf.serial), notAfter: leaf.notAfter }
  })

/**
 * Returns those of the alternate chains of a certificate that are chains for it, without the leaf, each once. `chain` is
 * the usual chain.
 */
export const alternatesOf = (chain: string, others: ReadonlyArray<string>): ReadonlyArray<string> => {
  const leaf = readStoredChain(chain)?.leaf
  if (leaf === undefined) return []
  const usual = readAlternate(chain, leaf)
  const found = others.flatMap((other) =>
    other.length > maxChainBytes ? [] : [readAlternate(`${other.trimEnd()}\n`, leaf) ?? ""]
  )
  return [...new Set(found)].filter((above) => above !== "" && above !== usual)
}
