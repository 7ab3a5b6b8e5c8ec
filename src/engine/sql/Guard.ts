/**
 * Returns the `from` of a domain move as an SQL condition. So a statement always checks the state that the domain's
 * rule requires.
 */
export const leaving = (move: { readonly from: ReadonlyArray<string> }, column = "status"): string =>
  `${column} IN (${move.from.map((status) => `'${status}'`).join(", ")})`

/** Returns the `to` of a domain move as an SQL literal. */
export const reached = (move: { readonly to: string }): string => `'${move.to}'`
