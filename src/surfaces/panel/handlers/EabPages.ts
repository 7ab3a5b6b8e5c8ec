import * as Effect from "effect/Effect"
import { clientLines, unknownKey } from "../../../operations/ClientLines.ts"
import * as eab from "../../../operations/operator/Eab.ts"
import { mostOverApi } from "../../../operations/operator/Exports.ts"
import { credentialObject } from "../../../operations/operator/Objects.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import {
  changeCredential,
  createCredential,
  deleteCredential,
  exportCredentials,
  listCredentials,
  revokeCredential
} from "../../operator/acts/CredentialActs.ts"
import type { Credential } from "../../operator/acts/CredentialShape.ts"
import type { Filter } from "../Listing.ts"
import { listView, windowOf } from "../Listing.ts"
import { downloaded, looked, submitted } from "../PanelActs.ts"
import { orRefused, profilesOf } from "../PanelLists.ts"
import { forRole, laggingPage, moved, page } from "../Route.ts"

/* The pages about credentials of external account binding. */

const filters: ReadonlyArray<Filter> = [{ name: "status", label: "Status", kind: "choice", words: eab.eabStatuses }]

/** Returns what clients of a profile that accepts a credential need. There is nothing if its only profile is not served. */
const linesOf = (
  { profiles, server }: Config,
  { externalKid, kid, names, profile }: typeof Credential.Type,
  hmacKey: string = unknownKey
) => {
  const served = profiles.filter(({ enabled }) => enabled)
  const accepting = profile === undefined
    ? served.find(({ eab }) => eab.enabled) ?? served[0]
    : served.find(({ name }) => name === profile)
  if (accepting === undefined) return []
  const directory = `${server.base_url}/profile/${accepting.name}/directory`
  return clientLines({ directory, credential: { kid: externalKid ?? kid, hmacKey }, names })
}

/** Returns the routes of the pages about credentials. */
export const eabRoutes = (config: Config) => [
  laggingPage("/ui/eab", (given) =>
    Effect.gen(function*() {
      const { query } = given
      const { items, problem, total } = yield* orRefused(looked(listCredentials, given))
      return page("credentials", "EAB credentials", {
        rows: items,
        problem,
        profiles: profilesOf(config),
        isOn: config.profiles.some((profile) => profile.enabled && profile.eab.enabled),
        done: query.get("done") ?? "",
        list: listView(
          "/ui/eab",
          query,
          filters,
          { total, limit: windowOf(query, config).limit, shown: items.length },
          {
            path: "/ui/eab/export",
            most: mostOverApi
          }
        )
      }, problem === undefined ? {} : { status: problem.status })
    })),
  laggingPage("/ui/eab/export", (given) => downloaded(exportCredentials, given)),
  forRole("operator")("POST", "/ui/eab", (given) =>
    Effect.gen(function*() {
      const credential = yield* submitted(createCredential, given)
      return page("minted", "New credential", { credential, clients: linesOf(config, credential, credential.hmacKey) })
    })),
  laggingPage(
    "/ui/eab/{kid}",
    ({ parameters: { kid = "" }, query }) =>
      Effect.map(eab.detail(kid), ({ credential: found, ...counts }) => {
        const credential = credentialObject(found)
        return page("credential", `Credential ${kid}`, {
          ...counts,
          credential,
          clients: linesOf(config, credential),
          done: query.get("done") ?? ""
        })
      })
  ),
  forRole("operator")(
    "POST",
    "/ui/eab/{kid}/scope",
    (given) => Effect.map(submitted(changeCredential, given), ({ kid }) => moved(`/ui/eab/${kid}?done=changed`))
  ),
  forRole("operator")(
    "POST",
    "/ui/eab/{kid}/revoke",
    (given) => Effect.map(submitted(revokeCredential, given), ({ kid }) => moved(`/ui/eab/${kid}?done=revoked`))
  ),
  forRole("operator")(
    "POST",
    "/ui/eab/{kid}/delete",
    (given) =>
      Effect.map(submitted(deleteCredential, given), ({ deactivatedAccounts, deleted }) => {
        const done = deleted.accounts > 0 ? "deleted-all" : deactivatedAccounts > 0 ? "deleted-deactivated" : "deleted"
        return moved(`/ui/eab?done=${done}`)
      })
  )
]
