import { triedClients } from "../interop/guides/Tried.ts"
import { tableOf } from "./Markdown.ts"

/** Returns the table of `docs/clients/README.md`: every client, with the features that `npm run interop` tests. */
export const renderClients = (): string =>
  tableOf(["Client", "Version tried", "EAB", "dns-01", "ARI", "What to set"], triedClients())
