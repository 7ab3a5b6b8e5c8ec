import { cellOf, routes, senders } from "../support/Roles.ts"
import { tableOf } from "./Markdown.ts"

/** The table of `docs/api-roles.md`: every route, and what whoever asks is answered by the checks before it. */
export const renderRoles = (): string =>
  tableOf(
    ["Route", ...senders],
    routes.map((route) => [
      `\`${route.method} ${route.pattern}\``,
      ...senders.map((sender) => String(cellOf(route, sender)))
    ])
  )
