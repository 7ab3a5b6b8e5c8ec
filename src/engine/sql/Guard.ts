/**
 * The `from` of a domain move as an SQL condition, so that a statement cannot check another state than the domain's
 * rule does.
 */
export const leaving = (move: { readonly from: ReadonlyArray<string> }, column = "status"): string =>
  `${column} IN (${move.from.map((status) => `'${status}'`).join(", ")})`

/** The `to` of a domain move as an SQL literal. */
export const reached = (move: { readonly to: string }): string => `'${move.to}'`
