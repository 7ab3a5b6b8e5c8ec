import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { readCertificate } from "../../../crypto/x509/Certificate.ts"
import { readStoredChain } from "../../../crypto/x509/Chain.ts"
import { OrderId } from "../../../domain/Id.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import * as certificates from "../../../store/orders/CertificateRows.ts"

/*
 * Finds certificates whose URL of the revocation list does not name a CA. Such a URL leads to the list of the CA that
 * issues now. After a change of the CA, this is not the list of the CA that signed these certificates
 * (docs/contribute/decisions/rotation.md).
 */

const distributionPoints = "2.5.29.31"
const pageSize = 500
const noOrder = OrderId("00000000-0000-0000-0000-000000000000")

/** Returns whether a text contains the URL of the list of the CA that issues for a profile. */
export const hasSharedUrl = (profile: string, text: string): boolean =>
  new RegExp(`/profile/${profile}/crl(?![\\w./-])`).test(text)

/** Returns the expiry of a leaf whose URL leads to the list of the CA that issues, in epoch seconds. */
const endIfShared = (profile: string, chain: string): number | undefined => {
  const stored = readStoredChain(chain)
  const leaf = stored && Result.getOrUndefined(readCertificate(stored.leaf))
  const points = leaf?.extensions.find(({ oid }) => oid === distributionPoints)
  const isShared = points !== undefined && hasSharedUrl(profile, Buffer.from(points.value).toString("latin1"))
  return isShared ? leaf?.notAfter : undefined
}

/** Certificates whose verifiers would read the list of another CA. */
export interface SharedUrls {
  readonly count: number
  /** The expiry of the certificate that expires last, in epoch seconds. 0 if there is none. */
  readonly lastEnd: number
}

/**
 * Counts the valid certificates of a profile whose URL leads to the list of the CA that issues. Reads all certificates
 * of the service, and reports after each page how many it has read.
 */
export const sharedUrls = Effect.fnUntraced(function*<R>(
  profile: string,
  report: (done: number) => Effect.Effect<void, never, R>
) {
  const now = yield* currentSeconds
  let [count, lastEnd, done, after] = [0, 0, 0, noOrder]
  for (;;) {
    const page = yield* certificates.livePage({ now, after, limit: pageSize })
    for (const row of page) {
      const end = row.profile === profile ? endIfShared(profile, row.certificate) : undefined
      if (end === undefined) continue
      count++
      lastEnd = Math.max(lastEnd, end)
    }
    done += page.length
    after = page.at(-1)?.orderId ?? after
    yield* report(done)
    if (page.length < pageSize) return { count, lastEnd } satisfies SharedUrls
  }
})
