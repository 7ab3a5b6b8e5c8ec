import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { sameBytes } from "../../crypto/asn1/DerReader.ts"
import { splitPem } from "../../crypto/asn1/Pem.ts"
import { listHead } from "../../crypto/x509/Crl.ts"
import { readTextFile } from "../../engine/host/KeyFile.ts"
import type { CrlIssuer } from "./Signer.ts"

const largest = 512 * 1024 * 1024

/**
 * Returns the number of the list that a CA has exported. Returns undefined if there is no list, or if the list belongs
 * to another CA.
 */
export const exportedNumber = (crl: CrlIssuer): Effect.Effect<number | undefined> =>
  Effect.map(Effect.result(readTextFile(crl.path, largest)), (file) => {
    const blocks = Result.flatMap(file, ({ text }) => splitPem(text, "nothing"))
    const [list] = Result.getOrElse(blocks, () => [])
    const head = list === undefined ? undefined : Result.getOrUndefined(listHead(list.der))
    if (head === undefined || !sameBytes(head.keyIdentifier, crl.keyIdentifier)) return undefined
    return Number.isSafeInteger(head.number) ? head.number : undefined
  })
