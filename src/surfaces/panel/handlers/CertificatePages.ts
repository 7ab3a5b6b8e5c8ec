import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { certificateStates } from "../../../domain/CertificateState.ts"
import { BadRequest } from "../../../domain/OperatorError.ts"
import { revocationReasons } from "../../../domain/RevocationReason.ts"
import type { CertificateSort } from "../../../operations/operator/CertificateRecords.ts"
import * as certificates from "../../../operations/operator/CertificateRecords.ts"
import { certificateObject } from "../../../operations/operator/Objects.ts"
import * as orders from "../../../operations/operator/OrderRecords.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { listCertificates, mostRevoked, revokeCertificates } from "../../operator/acts/CertificateActs.ts"
import type { Filter } from "../Listing.ts"
import { filtersIn, listView, urlOf, windowOf } from "../Listing.ts"
import { askedOf, looked, submitted } from "../PanelActs.ts"
import { directoriesOf, orderFilters, orRefused, severalKinds } from "../PanelLists.ts"
import type { Given } from "../Route.ts"
import { forRole, laggingPage, page } from "../Route.ts"

/* The pages that list certificates and revoke several of them. */

const path = "/ui/certificates"

const filtersOf = (config: Config): ReadonlyArray<Filter> =>
  orderFilters(config, { name: "state", label: "State", kind: "choice", words: certificateStates }, [
    { name: "endsAfter", label: "Ends after", kind: "date" },
    { name: "endsBefore", label: "Ends before", kind: "date" }
  ])

const labels: { readonly [S in CertificateSort]: string } = {
  newest: "newest",
  soonest: "ends soonest",
  latest: "ends last"
}

/** Returns the links that sort a list, if there is more than one way. A link to the end toggles its direction. */
const sortsOf = (given: Given, filters: ReadonlyArray<Filter>) => {
  const { limit: _, offset: __, ...known } = listCertificates.input
  const asked = askedOf(known, given)
  if (Result.isFailure(asked)) return undefined
  const { sort, ...wanted } = asked.success
  const current = certificates.sortOf(wanted, sort)
  if (!certificates.canSortByEnd(wanted)) return { current, links: [], byEnd: undefined }
  const to = (one: CertificateSort) => urlOf(path, { ...filtersIn(given.query, filters), sort: one })
  return {
    current,
    links: certificates.certificateSorts.map((one) => ({
      label: labels[one],
      url: to(one),
      isCurrent: one === current
    })),
    byEnd: to(current === "soonest" ? "latest" : "soonest")
  }
}

/** Returns the routes of the pages about certificates. */
export const certificateRoutes = (config: Config, filters = filtersOf(config), several = severalKinds(config)) => [
  laggingPage(
    path,
    Effect.fnUntraced(function*(given) {
      const { query } = given
      const { isCut, items, problem, total } = yield* orRefused(looked(listCertificates, given))
      const counted = { total, limit: windowOf(query, config).limit, shown: items.length, isCut }
      const sort = query.get("sort") ?? undefined
      return page("certificates", "Certificates", {
        rows: items,
        several,
        problem,
        directories: directoriesOf(config),
        sorts: sortsOf(given, filters),
        list: listView(path, query, filters, counted, undefined, sort)
      }, problem === undefined ? {} : { status: problem.status })
    })
  ),
  forRole("operator")(
    "GET",
    `${path}/revoke`,
    Effect.fnUntraced(function*({ query }) {
      const ids = new Set(query.getAll("order"))
      if (ids.size > mostRevoked) {
        return yield* new BadRequest({ detail: `At most ${mostRevoked} certificates are revoked at once.` })
      }
      const found = yield* Effect.forEach(ids, orders.issuedOrder)
      const rows = (yield* certificates.described(config, found)).map(certificateObject)
      return page("revoking", "Revoke certificates", {
        rows,
        live: rows.flatMap(({ certSerial, state }) =>
          state === "revoked" || certSerial === undefined ? [] : certSerial
        ),
        several,
        reasons: revocationReasons
      })
    })
  ),
  forRole("operator")(
    "POST",
    `${path}/revoke`,
    Effect.fnUntraced(function*(given) {
      const { items, refused } = yield* submitted(revokeCertificates, given)
      return page("revoked", "Certificates revoked", {
        revoked: items.filter(({ status }) => status === "revoked").length,
        queued: items.filter(({ status }) => status === "queued").length,
        jobs: [...new Set(items.map(({ job }) => job))],
        already: refused.filter(({ error }) => error === "already_revoked"),
        refused: refused.filter(({ error }) => error !== "already_revoked")
      })
    })
  )
]
