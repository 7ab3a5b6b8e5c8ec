import { cellOf, routes, senders } from "../support/Roles.ts"
import { tableOf } from "./Markdown.ts"

/**
 * Returns the table of `docs/reference/api-roles.md`: every route, and the answer of the checks before it for each kind
 * of caller.
 */
export const renderRoles = (): string =>
  tableOf(
    ["Route", ...senders],
    routes.map((route) => [
      `\`${route.method} ${route.pattern}\``,
      ...senders.map((sender) => String(cellOf(route, sender)))
    ])
  )
