import type { Fragments } from "../../engine/sql/Statement.ts"

/**
 * Returns the condition that an order has no certificate. Every order whose status is not `valid` meets it. A query of
 * such orders needs the condition on PostgreSQL, where no index has the status (docs/contribute/decisions/hot-path.md,
 * "Orders without index entries"). `order` is the alias of the table with a dot, if it has one. The condition begins
 * with AND.
 */
export const unissued = ({ dialect }: Pick<Fragments, "dialect">, order: "" | "o." = ""): string =>
  dialect === "postgres" ? ` AND ${order}certificate IS NULL` : ""
