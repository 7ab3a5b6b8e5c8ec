import { renderApi } from "./Api.ts"
import { renderClients } from "./Clients.ts"
import { renderCommands } from "./Commands.ts"
import { renderEvents } from "./Events.ts"
import { renderProblems } from "./Problems.ts"
import { renderRoles } from "./Roles.ts"

/** The documents that contain a catalogue made from the code, each with the function that makes it. */
export const catalogues: { readonly [document: string]: () => string } = {
  "docs/reference/api-reference.md": renderApi,
  "docs/reference/api-roles.md": renderRoles,
  "docs/reference/cli.md": renderCommands,
  "docs/clients/README.md": renderClients,
  "docs/reference/errors.md": renderProblems,
  "docs/reference/log-events.md": renderEvents
}
