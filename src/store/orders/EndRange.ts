import { int } from "../../engine/sql/Column.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"

/* The filter by the end of certificates, which several searches share. */

/** When certificates end, in epoch seconds. */
export interface EndRange {
  /** Certificates end after this time. */
  readonly after: number
  /** Certificates end at this time or before it. */
  readonly upTo: number
  /** Whether revoked certificates are left out. */
  readonly isLiveOnly: boolean
}

/** The parameters of {@link endsWithin}. */
export const endColumns = { endsAfter: int, endsUpTo: int, liveOnly: int }

/** SQL for the orders `o` whose certificate ends within the range. No index is chosen by this condition. */
export const endsWithin = ({ aside }: Fragments): string =>
  `${aside("o.cert_not_after")} > :endsAfter AND ${aside("o.cert_not_after")} <= :endsUpTo
     AND (${aside("o.revoked_at")} IS NULL OR :liveOnly = 0)`

/** Returns the values of the parameters of {@link endsWithin}. */
export const endValues = (ends: EndRange | undefined) => ({
  endsAfter: ends?.after ?? 0,
  endsUpTo: ends?.upTo ?? 0,
  liveOnly: ends?.isLiveOnly === true ? 1 : 0
})

/** Returns whether the certificate of an order ends within the range. */
export const isWithin = (
  { after, isLiveOnly, upTo }: EndRange,
  order: { readonly certNotAfter: number | undefined; readonly revokedAt: number | undefined }
): boolean =>
  order.certNotAfter !== undefined && order.certNotAfter > after && order.certNotAfter <= upTo &&
  (!isLiveOnly || order.revokedAt === undefined)
