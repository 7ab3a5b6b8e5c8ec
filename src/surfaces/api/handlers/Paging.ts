/** The window of a list, as its operation takes it. */
export interface Window {
  readonly limit: number
  readonly offset: number
}

const usualLimit = 50

/** What a query asks for, within bounds: an unusable number is moved to the nearest one that can be used. */
export const windowOf = (
  { limit = usualLimit, offset = 0 }: { readonly limit?: number | undefined; readonly offset?: number | undefined },
  most: number
): Window => ({ limit: Math.min(Math.max(limit, 1), most), offset: Math.max(offset, 0) })

/** A page as lists answer it. */
export const paged = <A, B>(
  { items, total }: { readonly items: ReadonlyArray<A>; readonly total: number },
  shown: (item: A) => B,
  { limit, offset }: Window
) => ({ items: items.map(shown), total, limit, offset })
