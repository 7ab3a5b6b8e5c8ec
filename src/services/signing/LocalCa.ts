import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { encodePem } from "../../crypto/asn1/Pem.ts"
import { Entropy } from "../../crypto/Entropy.ts"
import { datesFault } from "../../crypto/x509/CaMaterial.ts"
import { checkChain } from "../../crypto/x509/Chain.ts"
import { makeCrlSigner } from "../../crypto/x509/Crl.ts"
import { makeLeafIssuer, serialFrom, validityWindow } from "../../crypto/x509/Leaf.ts"
import { lintLeaf } from "../../crypto/x509/Lint.ts"
import { emit } from "../../domain/words/Log.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { CaFileSettings, SigningCa } from "./CaFiles.ts"
import {
  CaFilesUnusable,
  check as checkFiles,
  endedText,
  generateIfAbsent,
  isSuppliedRoot,
  loadForSigning
} from "./CaFiles.ts"
import * as IssuedCrl from "./IssuedCrl.ts"
import { permittedCommonName } from "./PermittedNames.ts"
import { checkRemote, loadRemote } from "./RemoteCa.ts"
import type { DirectSigner } from "./Signer.ts"
import { SigningFailed } from "./Signer.ts"

/** The keys of `signer.local_ca`. */
export interface LocalCaSettings extends CaFileSettings {
  readonly leaf_validity_days: number
  readonly crl_path: string
  /** The file for the list as DER. Empty if the list is exported only as PEM. */
  readonly crl_der_path: string
  readonly crl_distribution_points: ReadonlyArray<string>
  readonly ca_issuer_urls: ReadonlyArray<string>
}

const daySeconds = 86_400
const rfc3339 = (epochSeconds: number): string => new Date(epochSeconds * 1000).toISOString()

/**
 * Refuses what {@link make} would refuse, and also a CA that is not valid now or whose lists have stopped. Changes
 * nothing.
 */
export const check = (settings: LocalCaSettings): Effect.Effect<void, CaFilesUnusable> =>
  Effect.gen(function*() {
    const ca = yield* settings.key_source === "file" ? checkFiles(settings) : checkRemote(settings)
    const detail = ca && (yield* IssuedCrl.make(settings.crl_path, ca.publicKey).trouble)
    if (detail !== undefined) return yield* new CaFilesUnusable({ detail, isOutside: true, isLoaded: true })
  })

/**
 * Makes a signer with a key of our own (docs/decisions/local-ca.md). If the CA does not exist, makes the CA first. The parts
 * of a leaf that depend only on the issuer are encoded once. Each leaf is read back and linted before it is returned.
 */
export const make = (settings: LocalCaSettings): Effect.Effect<DirectSigner, CaFilesUnusable, Entropy> =>
  Effect.gen(function*() {
    const entropy = yield* Entropy
    yield* generateIfAbsent(settings)
    const signing: SigningCa = yield* settings.key_source === "file" ? loadForSigning(settings) : loadRemote(settings)
    const { ca, key } = signing
    const urls = {
      crlDistributionPoints: settings.crl_distribution_points,
      caIssuerUrls: settings.ca_issuer_urls
    }
    const issuerCertDer = ca.certificates[0] ?? new Uint8Array()
    const leafIssuer = yield* Effect.mapError(
      Effect.fromResult(makeLeafIssuer({ issuerCertDer, ...urls }, key)),
      ({ detail }) => new CaFilesUnusable({ detail: `signer.local_ca: ${settings.cert_path} holds ${detail}.` })
    )
    const signCrl = makeCrlSigner(ca, key)
    const end = ca.firstToEnd.notAfter
    const lintIssuer = { ...ca, notAfter: end, ...urls }

    const now = yield* currentSeconds
    yield* emit("local_ca_loaded", { issuer: ca.issuerId, not_after: rfc3339(ca.notAfter), key_type: ca.keyType })
    if (isSuppliedRoot(ca, settings)) yield* emit("local_ca_is_root", { issuer: ca.issuerId })
    const expiring = emit("local_ca_expiring", { issuer: ca.issuerId, not_after: rfc3339(end) })
    let isExpiryTold = end < now + settings.leaf_validity_days * daySeconds
    if (isExpiryTold) yield* expiring

    const issued = IssuedCrl.make(settings.crl_path, ca.publicKey)
    const trouble = Effect.gen(function*() {
      const fault = datesFault(ca, yield* currentSeconds)
      const ended = fault === undefined ? undefined : endedText(settings, fault)
      const ofKey = signing.trouble === undefined ? undefined : yield* signing.trouble
      const texts = [ended, ofKey, yield* issued.trouble].filter((text) => text !== undefined)
      return texts.length === 0 ? undefined : texts.join(" ")
    })
    const issue: DirectSigner["issue"] = Effect.fnUntraced(function*(request) {
      const { csr, kind, names, orderId } = request
      const commonName = yield* permittedCommonName(ca.nameConstraints, request)
      const now = yield* currentSeconds
      const window = validityWindow({
        now,
        orderedAt: request.orderedAt,
        validitySeconds: kind.validitySeconds,
        requestedNotBefore: request.notBefore,
        requestedNotAfter: request.notAfter,
        issuerNotBefore: ca.notBefore,
        issuerNotAfter: end
      })
      if (Result.isFailure(window)) {
        yield* emit("local_ca_issuer_expired", { issuer: ca.issuerId })
        return yield* new SigningFailed({
          cause: "signer_failed",
          detail: "the CA certificate, or one above it, has expired"
        })
      }
      const { discardedRequest, notAfter, notBefore } = window.success
      if (discardedRequest) yield* emit("local_ca_requested_validity_discarded", { order_id: orderId })
      // This is checked here as well as when the CA is loaded: the lifetime of a kind may be longer than
      // leaf_validity_days, and a process may run for a long time.
      if (!isExpiryTold && notAfter === end && end < now + kind.validitySeconds) {
        isExpiryTold = true
        yield* expiring
      }
      const serial = serialFrom(yield* entropy.bytes(16))
      const leafRequest = {
        spki: csr.spki,
        keyType: csr.keyType,
        names,
        commonName,
        content: kind.content,
        serial,
        notBefore,
        notAfter
      }
      const der = yield* Effect.mapError(
        leafIssuer.build(leafRequest),
        ({ detail }) => new SigningFailed({ cause: "signer_failed", detail })
      )
      const check = lintLeaf(der, { issuer: lintIssuer, request: leafRequest })
      if (check !== undefined) {
        yield* emit("local_ca_lint_failed", { order_id: orderId, check })
        return yield* new SigningFailed({ cause: "lint_failed", detail: `the leaf failed the check ${check}` })
      }
      const chain = encodePem("CERTIFICATE", der) + ca.chainPem
      // A client may request a certificate whose validity begins later. In that case, it is correct that the leaf is
      // not valid yet.
      const fault = checkChain(chain, {
        spki: csr.spki,
        names,
        now: Math.max(now, notBefore),
        issuer: ca,
        lintedLeaf: der
      })
      if (fault !== undefined) {
        yield* emit("order_finalize_chain_rejected", { order_id: orderId, check: fault, cert_serial: undefined })
        return yield* new SigningFailed({ cause: "chain_rejected", detail: `the chain failed the check ${fault}` })
      }
      const hex = Buffer.from(serial).toString("hex")
      const facts = { order_id: orderId, cert_serial: hex }
      yield* emit("local_ca_leaf_issued", facts)
      return { chain, serial: hex, notAfter, discarded: emit("local_ca_leaf_discarded", facts) }
    })
    const { crl_der_path, crl_path: path } = settings
    const derPath = crl_der_path === "" ? undefined : crl_der_path
    const crl = { id: ca.issuerId, keyIdentifier: ca.keyIdentifier, sign: signCrl, path, derPath, issued }
    return { issue, trouble, crl }
  })
