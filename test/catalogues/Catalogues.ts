import { renderApi } from "./Api.ts"
import { renderClients } from "./Clients.ts"
import { renderCommands } from "./Commands.ts"
import { renderEvents } from "./Events.ts"
import { renderProblems } from "./Problems.ts"
import { renderRoles } from "./Roles.ts"

/** The documents that contain a catalogue made from the code, each with the function that makes it. */
export const catalogues: { readonly [document: string]: () => string } = {
  "docs/api-reference.md": renderApi,
  "docs/api-roles.md": renderRoles,
  "docs/cli.md": renderCommands,
  "docs/clients.md": renderClients,
  "docs/errors.md": renderProblems,
  "docs/log-events.md": renderEvents
}
