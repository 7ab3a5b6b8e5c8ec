import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { sameBytes } from "../../crypto/asn1/DerReader.ts"
import type { CaMaterial, CaUnusable } from "../../crypto/x509/CaMaterial.ts"
import { loadCa } from "../../crypto/x509/CaMaterial.ts"
import { nameConstraintsViolation } from "../../crypto/x509/NameConstraints.ts"
import { readTextFile } from "../../engine/host/KeyFile.ts"
import type { CaKeySettings } from "./CaFiles.ts"
import { CaFilesUnusable, sectionOf, sentence } from "./CaFiles.ts"

/*
 * Cross-certificates of a CA: certificates of the same CA that were signed by other CAs. Clients whose machines trust
 * only one of the other CAs choose the chain that leads there (docs/contribute/decisions/rotation.md, "Two chains").
 */

/** The keys of a CA with cross-certificates. */
interface CrossSettings extends Pick<CaKeySettings, "cert_path" | "section"> {
  /** Files with a cross-certificate each, PEM, followed by its chain. */
  readonly cross_cert_paths: ReadonlyArray<string>
}

/** A chain that replaces the chain of the CA. */
export interface CrossChain {
  /** The certificates as PEM, the cross-certificate first. */
  readonly chainPem: string
  readonly nameConstraints: CaMaterial["nameConstraints"]
  /** When the first certificate of the chain expires, in epoch seconds. */
  readonly notAfter: number
}

/** Returns why a certificate is no cross-certificate of a CA, as a clause, or undefined if it is one. */
const faultOf = (cross: CaMaterial, ca: CaMaterial): string | undefined => {
  if (cross.issuerId !== ca.issuerId) return "its first certificate has another key than the CA"
  if (!sameBytes(cross.subject, ca.subject)) return "its first certificate has another subject than the CA"
  if (!sameBytes(cross.keyIdentifier, ca.keyIdentifier)) {
    return "its first certificate has another subject key identifier than the CA"
  }
  return cross.chainPem === ca.chainPem ? "it has the same chain as the CA" : undefined
}

/** Reads one cross-certificate of a CA. Fails with a sentence that names the file. */
const readOne = Effect.fnUntraced(function*(settings: CrossSettings, path: string, ca: CaMaterial) {
  const key = `${sectionOf(settings)}.cross_cert_paths`
  const { text } = yield* Effect.mapError(readTextFile(path), sentence(key))
  const refuse = (detail: string) => new CaFilesUnusable({ detail: `${key}: ${path} cannot be used: ${detail}.` })
  const refused = ({ detail }: CaUnusable) => refuse(detail)
  const cross = yield* Effect.mapError(Effect.fromResult(loadCa(text, undefined)), refused)
  const fault = faultOf(cross, ca)
  if (fault !== undefined) return yield* refuse(fault)
  const spki = ca.publicKey.export({ type: "spki", format: "der" })
  const { chainPem, firstToEnd, nameConstraints } = yield* Effect.mapError(
    Effect.fromResult(loadCa(text, { spki })),
    refused
  )
  return { chainPem, nameConstraints, notAfter: firstToEnd.notAfter } satisfies CrossChain
})

/** Returns the chains of the cross-certificates that can be read, and a sentence for each of the others. */
export const readCrosses = Effect.fnUntraced(function*(settings: CrossSettings, ca: CaMaterial) {
  const chains: Array<CrossChain> = []
  const faults: Array<string> = []
  for (const path of settings.cross_cert_paths) {
    const read = yield* Effect.result(readOne(settings, path, ca))
    if (Result.isSuccess(read)) chains.push(read.success)
    else faults.push(read.failure.detail)
  }
  return { chains, faults }
})

/** Returns the chains that are valid for a leaf with these names at an epoch second. */
export const chainsFor = (
  crosses: ReadonlyArray<CrossChain>,
  names: ReadonlyArray<string>,
  now: number
): ReadonlyArray<string> =>
  crosses
    .filter(({ nameConstraints, notAfter }) =>
      now <= notAfter && nameConstraintsViolation(nameConstraints, names) === undefined
    )
    .map(({ chainPem }) => chainPem)
