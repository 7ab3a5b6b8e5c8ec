import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { sameBytes } from "../../../crypto/asn1/DerReader.ts"
import { encodePem, splitPem } from "../../../crypto/asn1/Pem.ts"
import { sha256 } from "../../../crypto/Digest.ts"
import { Entropy } from "../../../crypto/Entropy.ts"
import { judgeAnswer } from "../../../crypto/x509/CaAnswer.ts"
import { signIssuing } from "../../../crypto/x509/CaCertificate.ts"
import type { CaFacts } from "../../../crypto/x509/CaFacts.ts"
import { caFacts } from "../../../crypto/x509/CaFacts.ts"
import { draftKey } from "../../../crypto/x509/CaKey.ts"
import type { CaMaterial } from "../../../crypto/x509/CaMaterial.ts"
import type { CaRequest } from "../../../crypto/x509/CaRequest.ts"
import { readCaRequest } from "../../../crypto/x509/CaRequest.ts"
import { serialFrom } from "../../../crypto/x509/Leaf.ts"
import { nameConstraintsViolation } from "../../../crypto/x509/NameConstraints.ts"
import { said, writeNewFile } from "../../../engine/host/KeyFile.ts"
import { currentSeconds, rfc3339 } from "../../../engine/Time.ts"
import { CaFilesUnusable } from "../../../services/signing/CaFiles.ts"
import { readRoot, rootFiles } from "../../../services/signing/RootFolder.ts"

/* Signs the request of an issuing CA with a root, on the machine of the root. Nothing of the service need be there. */

const backdateSeconds = 3600
const daySeconds = 86_400

/** How long an issuing CA lives if nobody says otherwise, and if its root lives so long. */
export const usualDays = 1827

/** What the operator of a root grants. */
export interface Grant {
  /** The lifetime. Undefined: {@link usualDays}, but no longer than the root. */
  readonly days: number | undefined
  readonly permitted: ReadonlyArray<string>
}

const refused = (detail: string) => new CaFilesUnusable({ detail })

const labels: ReadonlyArray<string> = ["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"]
const sequenceTag = 0x30

/** Finds the one request in a file, which is DER or PEM. */
const requestIn = (octets: Uint8Array): Result.Result<Uint8Array, CaFilesUnusable> => {
  if (octets[0] === sequenceTag) return Result.succeed(octets)
  const no = (detail: string) => Result.fail(refused(`The request cannot be used: ${detail}.`))
  const blocks = splitPem(Buffer.from(octets).toString("utf8"), "around")
  if (Result.isFailure(blocks)) return no(`it is not readable PEM: ${blocks.failure.detail}`)
  const other = blocks.success.find(({ label }) => !labels.includes(label))
  if (other !== undefined) return no(`the file holds a ${other.label} and not a CERTIFICATE REQUEST`)
  const [one, another] = blocks.success
  if (one === undefined) return no("the file holds no request in PEM or DER")
  return another === undefined ? Result.succeed(one.der) : no("the file holds more than one request")
}

const readRequest = (octets: Uint8Array, root: CaMaterial): Effect.Effect<CaRequest, CaFilesUnusable> =>
  Effect.gen(function*() {
    const request = yield* Effect.mapError(
      Effect.fromResult(Result.flatMap(requestIn(octets), readCaRequest)),
      (error) => error._tag === "CsrRefused" ? refused(error.detail) : error
    )
    if (sha256(request.spki) === root.issuerId) {
      return yield* refused(
        "The key of the request is the key of the root itself. An issuing CA must have its own key."
      )
    }
    if (sameBytes(request.subject, root.subject)) {
      return yield* refused(
        "The request asks for the name of the root itself. An issuing CA must have another name (signer.local_ca.subject)."
      )
    }
    return request
  })

const datesOf = (root: CaMaterial, days: number | undefined, now: number) =>
  Effect.gen(function*() {
    const wanted = now + (days ?? usualDays) * daySeconds
    if (days !== undefined && wanted > root.notAfter) {
      return yield* refused(
        `--days: the certificate would outlive the root, which ends at ${rfc3339(root.notAfter)}.`
      )
    }
    return { notBefore: Math.max(now - backdateSeconds, root.notBefore), notAfter: Math.min(wanted, root.notAfter) }
  })

const factsOf = (der: Uint8Array): Effect.Effect<CaFacts, CaFilesUnusable> => {
  const facts = caFacts(der)
  return facts === undefined ? refused("The request asks for a name that cannot be shown.") : Effect.succeed(facts)
}

/** A certificate of an issuing CA that is ready to be signed. */
export interface DraftedCa {
  readonly root: CaFacts
  /** What the certificate will say. Its fingerprint is not known yet. */
  readonly draft: Omit<CaFacts, "sha256">
  /** Signs it. Returns it as PEM followed by the root. A copy stays in the folder of the root. */
  readonly sign: (
    passphrase: string
  ) => Effect.Effect<{ readonly chainPem: string; readonly facts: CaFacts; readonly copy: string }, CaFilesUnusable>
}

/** Judges a request, and says what the certificate will contain. Nothing is signed yet. */
export const draftAuthority = Effect.fnUntraced(function*(folder: string, octets: Uint8Array, grant: Grant) {
  const entropy = yield* Entropy
  const now = yield* currentSeconds
  const { ca: root, open } = yield* readRoot(folder)
  const foreign = nameConstraintsViolation(root.nameConstraints, grant.permitted)
  if (foreign !== undefined) return yield* refused(`--permit: the name constraints of the root forbid ${foreign}.`)
  const { spki, subject } = yield* readRequest(octets, root)
  const fields = {
    subject,
    spki,
    serial: serialFrom(yield* entropy.bytes(16)),
    permitted: grant.permitted,
    ...yield* datesOf(root, grant.days, now)
  }
  const { sha256: _, ...drafted } = yield* factsOf(yield* Effect.orDie(signIssuing({ ...root, key: draftKey }, fields)))
  const rootFacts = yield* factsOf(root.certificates[0] ?? new Uint8Array())
  const suffix = yield* entropy.token
  const sign = Effect.fnUntraced(function*(passphrase: string) {
    const { ca, key } = yield* open(passphrase)
    const der = yield* Effect.mapError(
      signIssuing({ ...ca, key }, fields),
      ({ detail }) => refused(`The certificate cannot be signed: ${detail}.`)
    )
    const chainPem = encodePem("CERTIFICATE", der) + ca.chainPem
    yield* Effect.mapError(
      Effect.fromResult(judgeAnswer(chainPem, spki, now)),
      ({ detail }) => refused(`The certificate would not be accepted: ${detail}.`)
    )
    const copy = rootFiles(folder).signed(drafted.serial)
    yield* Effect.mapError(
      writeNewFile({ path: copy, content: chainPem, mode: 0o644, suffix }),
      (error) =>
        new CaFilesUnusable({
          detail: `${error.path} cannot be written: ${said(error)}. Nothing was signed.`,
          mayPass: error.reason !== "exists"
        })
    )
    return { chainPem, facts: yield* factsOf(der), copy }
  })
  const result: DraftedCa = { root: rootFacts, draft: drafted, sign }
  return result
})
