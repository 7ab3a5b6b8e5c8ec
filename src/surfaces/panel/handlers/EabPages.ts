import * as Effect from "effect/Effect"
import type { AccountsMode } from "../../../domain/Audit.ts"
import { UnknownWord } from "../../../domain/OperatorError.ts"
import * as eab from "../../../operations/Eab.ts"
import { eabFile, mostOverApi } from "../../../operations/Exports.ts"
import { credentialObject } from "../../../operations/Objects.ts"
import { eabFilters, eabStatuses } from "../../../operations/RecordFilters.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import type { Filter } from "../Listing.ts"
import { filtersIn, listView, windowOf } from "../Listing.ts"
import { exportOf } from "../PanelExport.ts"
import { field } from "../PanelForm.ts"
import { orRefused, profilesOf } from "../PanelLists.ts"
import { forRole, moved, operatorIn, page } from "../Route.ts"

/* Credentials of external account binding. */

const names = ["status"] as const

const filters: ReadonlyArray<Filter> = [{ name: "status", label: "Status", kind: "choice", words: eabStatuses }]

/** The notice of the list after a deletion, by the fate of the accounts. */
const doneBy: { readonly [M in AccountsMode]: string } = {
  keep: "deleted",
  deactivate: "deleted-deactivated",
  delete: "deleted-all"
}

const modes = Object.keys(doneBy) as ReadonlyArray<AccountsMode>

/** Command-line flags for clients that use a credential, at a profile that accepts it. */
const clientsOf = ({ profiles, server }: Config, profile: string | undefined, kid: string, key: string) => {
  const served = profiles.filter(({ enabled }) => enabled)
  const accepting = served.find(({ eab, name }) => profile === undefined ? eab.enabled : name === profile) ?? served[0]
  const directory = `${server.base_url}/profile/${accepting?.name ?? "default"}/directory`
  return [
    { name: "certbot", flags: `--server ${directory} --eab-kid ${kid} --eab-hmac-key ${key}` },
    { name: "lego", flags: `--server ${directory} --eab --kid ${kid} --hmac ${key}` },
    { name: "acme.sh", flags: `--register-account --server ${directory} --eab-kid ${kid} --eab-hmac-key ${key}` }
  ]
}

/** The routes of credentials. */
export const eabRoutes = (config: Config) => [
  forRole("viewer")("GET", "/ui/eab", ({ query }) =>
    Effect.gen(function*() {
      const window = windowOf(query, config)
      const { items, problem, total } = yield* orRefused(
        Effect.flatMap(eabFilters(filtersIn(query, names)), ({ status }) => eab.list({ status, ...window }))
      )
      return page("credentials", "EAB credentials", {
        rows: items.map(credentialObject),
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
  forRole("viewer")(
    "GET",
    "/ui/eab/export",
    (given) =>
      exportOf(given, "eab", (format) =>
        Effect.flatMap(
          eabFilters(filtersIn(given.query, names)),
          (filters) => eabFile(filters, { format, most: mostOverApi })
        ))
  ),
  forRole("operator")("POST", "/ui/eab", (given) =>
    Effect.gen(function*() {
      const wanted = { label: field(given.form, "label") ?? "", profile: field(given.form, "profile") }
      const { credential, secret } = yield* eab.create(operatorIn(given), yield* eab.checkRequest(config, wanted))
      const hmacKey = Buffer.from(secret).toString("base64url")
      return page("minted", "New credential", {
        credential: { ...credentialObject(credential), hmacKey },
        clients: clientsOf(config, credential.profile, credential.kid, hmacKey)
      })
    })),
  forRole("viewer")(
    "GET",
    "/ui/eab/{kid}",
    ({ parameters: { kid = "" }, query }) =>
      Effect.map(
        eab.detail(kid),
        ({ credential, liveCertificates, orderCount }) =>
          page("credential", `Credential ${kid}`, {
            credential: credentialObject(credential),
            liveCertificates,
            orderCount,
            done: query.get("done") ?? ""
          })
      )
  ),
  forRole("operator")("POST", "/ui/eab/{kid}/revoke", (given) => {
    const { kid = "" } = given.parameters
    return Effect.as(eab.revoke(operatorIn(given), kid), moved(`/ui/eab/${kid}?done=revoked`))
  }),
  forRole("operator")("POST", "/ui/eab/{kid}/delete", (given) =>
    Effect.gen(function*() {
      const word = field(given.form, "accounts") ?? "keep"
      const mode = modes.find((one) => one === word)
      if (mode === undefined) return yield* new UnknownWord({ name: "accounts", word: word.slice(0, 64), known: modes })
      yield* eab.remove(operatorIn(given), given.parameters["kid"] ?? "", mode)
      return moved(`/ui/eab?done=${doneBy[mode]}`)
    }))
]
