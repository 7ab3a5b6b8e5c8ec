import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { encodePem } from "../../crypto/asn1/Pem.ts"
import { Entropy } from "../../crypto/Entropy.ts"
import type { CaMaterial } from "../../crypto/x509/CaMaterial.ts"
import { datesFault } from "../../crypto/x509/CaMaterial.ts"
import { checkChain } from "../../crypto/x509/Chain.ts"
import { makeCrlSigner } from "../../crypto/x509/Crl.ts"
import { makeLeafIssuer, serialFrom, validityWindow } from "../../crypto/x509/Leaf.ts"
import { lintLeaf } from "../../crypto/x509/Lint.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Web } from "../../engine/net/Web.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { SigningCa } from "./CaFiles.ts"
import { CaFilesUnusable, endedText, loadForSigning, purposeAdvice, sectionOf } from "./CaFiles.ts"
import type { OneCaSettings } from "./ConfiguredCas.ts"
import { urlsOf } from "./ConfiguredCas.ts"
import { chainsFor, readCrosses } from "./CrossCertificates.ts"
import * as IssuedCrl from "./IssuedCrl.ts"
import { permittedCommonName } from "./PermittedNames.ts"
import { isRemote, loadRemote } from "./RemoteCa.ts"
import type { CrlIssuer, DirectSigner } from "./Signer.ts"
import { SigningFailed } from "./Signer.ts"

const daySeconds = 86_400
const rfc3339 = (epochSeconds: number): string => new Date(epochSeconds * 1000).toISOString()

/** A CA whose key signs certificates and lists. */
export interface SigningIssuer {
  readonly ca: CaMaterial
  readonly issue: NonNullable<DirectSigner["issue"]>
  /** Returns why the CA cannot sign now, as a sentence for operators, or undefined if it can sign. */
  readonly trouble: Effect.Effect<string | undefined>
  readonly crl: CrlIssuer
}

/** Reads the cross certificates of a CA, and warns about those that cannot be used. */
const usableCrosses = (settings: OneCaSettings, ca: CaMaterial) =>
  Effect.tap(readCrosses(settings, ca), ({ faults }) =>
    Effect.forEach(
      faults,
      (error) => emit("local_ca_cross_certificate_unusable", { issuer: ca.issuerId, error }),
      { discard: true }
    ))

/**
 * Makes the signer of one CA whose files exist. The parts of a leaf that depend only on the issuer are encoded once.
 * Each leaf is read back and linted before it is returned.
 */
export const make = (settings: OneCaSettings): Effect.Effect<SigningIssuer, CaFilesUnusable, Entropy | Web> =>
  Effect.gen(function*() {
    const entropy = yield* Entropy
    const signing: SigningCa = yield* isRemote(settings) ? loadRemote(settings) : loadForSigning(settings)
    const { ca, key } = signing
    const urls = {
      crlDistributionPoints: urlsOf(settings.crl_distribution_points, ca.issuerId),
      caIssuerUrls: urlsOf(settings.ca_issuer_urls, ca.issuerId)
    }
    const issuerCertDer = ca.certificates[0] ?? new Uint8Array()
    const leafIssuer = yield* Effect.mapError(
      Effect.fromResult(makeLeafIssuer({ issuerCertDer, ...urls }, key)),
      ({ detail }) => new CaFilesUnusable({ detail: `${sectionOf(settings)}: ${settings.cert_path} holds ${detail}.` })
    )
    const signCrl = makeCrlSigner(ca, key)
    const end = ca.firstToEnd.notAfter
    const lintIssuer = { ...ca, notAfter: end, ...urls }

    const now = yield* currentSeconds
    yield* emit("local_ca_loaded", { issuer: ca.issuerId, not_after: rfc3339(ca.notAfter), key_type: ca.keyType })
    const expiring = emit("local_ca_expiring", { issuer: ca.issuerId, not_after: rfc3339(end) })
    let isExpiryTold = end < now + settings.leaf_validity_days * daySeconds
    if (isExpiryTold) yield* expiring

    const crosses = yield* usableCrosses(settings, ca)
    const adviseOn = purposeAdvice(settings.cert_path, ca)
    const issued = IssuedCrl.make(settings.crl_path, ca.publicKey)
    const trouble = Effect.gen(function*() {
      const fault = datesFault(ca, yield* currentSeconds)
      const ended = fault === undefined ? undefined : endedText(settings, fault)
      const ofKey = signing.trouble === undefined ? undefined : yield* signing.trouble
      const texts = [ended, ofKey, yield* issued.trouble].filter((text) => text !== undefined)
      return texts.length === 0 ? undefined : texts.join(" ")
    })
    const issue: SigningIssuer["issue"] = Effect.fnUntraced(function*(request) {
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
          detail: "the CA certificate, or one above it, has expired",
          isAway: true
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
        ({ detail }) => new SigningFailed({ cause: "signer_failed", detail, isAway: true })
      )
      const check = lintLeaf(der, { issuer: lintIssuer, request: leafRequest })
      if (check !== undefined) {
        yield* emit("local_ca_lint_failed", { order_id: orderId, check })
        return yield* new SigningFailed({ cause: "lint_failed", detail: `the leaf failed the check ${check}` })
      }
      yield* adviseOn(kind.content.usages)
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
      return {
        chain,
        alternates: chainsFor(crosses.chains, names, now),
        serial: hex,
        notAfter,
        issuer: ca.issuerId,
        discarded: emit("local_ca_leaf_discarded", facts)
      }
    })
    const { crl_der_path, crl_path: path } = settings
    const derPath = crl_der_path === "" ? undefined : crl_der_path
    const crl = { id: ca.issuerId, keyIdentifier: ca.keyIdentifier, until: end, sign: signCrl, path, derPath, issued }
    return { ca, issue, trouble, crl }
  })
