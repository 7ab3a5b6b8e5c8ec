/** The window of a list, in the form that operations take. */
export interface Window {
  readonly limit: number
  readonly offset: number
}

const usualLimit = 50

/** The window that a query asks for. A number that is out of bounds is moved to the nearest one within them. */
export const windowOf = (
  { limit = usualLimit, offset = 0 }: { readonly limit?: number | undefined; readonly offset?: number | undefined },
  most: number
): Window => ({ limit: Math.min(Math.max(limit, 1), most), offset: Math.max(offset, 0) })

/** A page, in the form that lists answer it. */
export const paged = <A, B>(
  { items, total }: { readonly items: ReadonlyArray<A>; readonly total: number },
  shown: (item: A) => B,
  { limit, offset }: Window
) => ({ items: items.map(shown), total, limit, offset })
