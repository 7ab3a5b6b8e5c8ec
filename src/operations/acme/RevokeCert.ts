import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { sameBytes } from "../../crypto/asn1/DerReader.ts"
import { base64urlFault, decodeBase64url, isPem } from "../../crypto/Base64url.ts"
import type { AccountKey } from "../../crypto/jose/Jwk.ts"
import { readCertificate } from "../../crypto/x509/Certificate.ts"
import { readStoredChain } from "../../crypto/x509/Chain.ts"
import { serialText } from "../../crypto/x509/Serial.ts"
import type { Account } from "../../domain/Account.ts"
import type { AcmeError } from "../../domain/AcmeError.ts"
import {
  AlreadyRevoked,
  BadRevocationReason,
  Malformed,
  NoSuchCertificate,
  RevocationPending,
  RevocationStopped,
  ServerInternal,
  Unauthorized
} from "../../domain/AcmeError.ts"
import type { RevokeFailureCause } from "../../domain/Audit.ts"
import { readFailure } from "../../domain/JobFailure.ts"
import { problemType } from "../../domain/Problem.ts"
import { isAcceptedReason } from "../../domain/RevocationReason.ts"
import type { SignerBackend } from "../../domain/SignerBackend.ts"
import type { ClientFacts } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { Waits } from "../../engine/queue/Waits.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { AuditAllowance } from "../../services/audit/AuditAllowance.ts"
import * as audit from "../../store/AuditRows.ts"
import * as certificates from "../../store/orders/CertificateRows.ts"
import { auditFacts } from "../Caller.ts"
import { isReadable, refuseChain } from "../StoredCertificate.ts"
import { burn, revoke } from "../work/Revocation.ts"
import { problemBy } from "../work/SignerRevocation.ts"

/** A revokeCert request whose signature and nonce have been checked. */
export interface RevocationRequest {
  readonly profile: string
  /** The profile's signing backend. */
  readonly backend: SignerBackend
  /** The account that signed, whatever its status, or the key in the header of the request. */
  readonly signer: { readonly account: Account } | { readonly key: AccountKey }
  /** The certificate as base64url DER. */
  readonly certificate: string
  /** The reason code of RFC 5280. If it is undefined, no reason is stored. */
  readonly reason: number | undefined
  readonly client: ClientFacts
}

type Found = Effect.Success<ReturnType<typeof certificates.findBySerial>>[number] & { readonly serial: string }

const accountOf = ({ signer }: RevocationRequest) => "account" in signer ? signer.account : undefined

const isAuthorized = ({ signer }: RevocationRequest, found: Found): boolean =>
  "account" in signer
    ? signer.account.id === found.accountId
    : found.certPubkey !== undefined && sameBytes(found.certPubkey, signer.key.spki)

const refused = Effect.fnUntraced(function*(
  request: RevocationRequest,
  certSerial: string,
  error: AcmeError,
  cause: RevokeFailureCause | undefined,
  found: Found | undefined
) {
  yield* emit("certificate_revoke_rejected", { cert_serial: certSerial, reason: problemType(error) })
  const account = accountOf(request)
  // Anyone can generate a key and name a certificate, even a certificate that they only saw on a server. So the number
  // of rows that such requests write is limited.
  const isOutsider = account === undefined && (found === undefined || !isAuthorized(request, found))
  if (isOutsider && !(yield* (yield* AuditAllowance).take)) return yield* error
  yield* audit.record({
    event: "certificate_revoke_failed",
    actorKind: "acme",
    actorId: account?.id,
    accountId: account?.id,
    orderId: found?.orderId,
    certSerial,
    identifiers: found?.identifiers.map(({ value }) => value),
    reason: problemType(error),
    ...auditFacts(request.profile, request.client),
    detail: cause === undefined ? {} : { cause }
  })
  return yield* error
}, Effect.uninterruptible)

/**
 * The highest number of hexadecimal digits in a serial that is looked up and recorded. No certificate of ours has more
 * than forty (RFC 5280 section 4.1.2.2).
 */
const longestSerial = 64

/**
 * Handles revokeCert (RFC 8555 section 7.6; docs/reference/protocol.md, "Revocation"). The stored leaf and the
 * submitted leaf must be equal, octet for octet. The sender's right to revoke is checked before any answer that would
 * show whether the certificate is revoked. If an external signer must revoke the certificate, the request waits for
 * that signer. A key compromise burns the key even if the certificate had already been revoked.
 */
export const revokeCert = Effect.fnUntraced(function*(request: RevocationRequest) {
  const { client, profile, reason, signer } = request
  const der = decodeBase64url(request.certificate)
  const read = der === undefined ? undefined : Result.getOrUndefined(readCertificate(der))
  if (der === undefined || read === undefined) {
    const fault = der === undefined
      ? `base64url: ${base64urlFault(request.certificate)}`
      : isPem(der)
      ? "DER but PEM; send the DER inside it, as base64url"
      : "the DER of one certificate"
    const error = new Malformed({ detail: `The certificate is not ${fault}.` })
    yield* emit("certificate_revoke_rejected", { cert_serial: undefined, reason: problemType(error) })
    return yield* error
  }
  const serial = serialText(read.serial).slice(0, longestSerial)
  let found: Found | undefined
  const rows = yield* certificates.findBySerial(profile, serial)
  for (const row of rows) {
    const leaf = readStoredChain(row.certificate)?.leaf
    if (leaf !== undefined && sameBytes(leaf, der)) found = { ...row, serial }
  }
  const refuse = (error: AcmeError, cause?: RevokeFailureCause) => refused(request, serial, error, cause, found)
  if (found === undefined) {
    const lost = rows.find(({ certificate }) => !isReadable(certificate))
    if (lost !== undefined) return yield* refuseChain("certificate_by_serial", lost.orderId)
    return yield* refuse(new NoSuchCertificate({}))
  }
  if (!isAuthorized(request, found)) {
    const detail = "Neither the account of the certificate nor its own key signed the request."
    return yield* refuse(new Unauthorized({ detail }), "unauthorized")
  }
  if (reason !== undefined && !isAcceptedReason(reason)) {
    return yield* refuse(new BadRevocationReason({ code: reason }), "bad_reason")
  }
  const { clientIp, clientPtr, requestId, userAgent } = auditFacts(profile, client)
  const by = {
    actorKind: "acme",
    actorId: accountOf(request)?.id,
    requestId,
    clientIp,
    clientPtr,
    userAgent,
    detail: { authorized_by: "account" in signer ? "account" : "certificate_key" }
  } as const
  const burning = burn({ ...found, profile }, reason, by)
  if (found.revokedAt !== undefined) {
    yield* transaction(burning)
    return yield* refuse(new AlreadyRevoked(), "already_revoked")
  }
  const revoking = revoke({ ...found, profile }, request.backend, reason, by, burning)
  const { isRevoked, job } = yield* Effect.catchTags(revoking, {
    WasRevoked: () => refuse(new AlreadyRevoked(), "already_revoked"),
    IssuerUnknown: () => refuse(new ServerInternal({}), "issuer_mismatch"),
    ListsStopped: () => refuse(new RevocationStopped(), "list_stopped")
  })
  if (isRevoked) return
  const ended = yield* (yield* Waits).settled(job)
  if (ended?.status === "failed" || ended?.status === "cancelled") {
    return yield* problemBy(ended.status === "failed" ? readFailure(ended.lastError) : undefined)
  }
  if (ended?.status !== "done") return yield* new RevocationPending()
})
