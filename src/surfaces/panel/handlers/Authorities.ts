import * as Effect from "effect/Effect"
import * as crlRecords from "../../../operations/operator/CrlRecords.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { compromiseCa, listCas, showCa } from "../../operator/acts/AuthorityActs.ts"
import { looked, submitted } from "../PanelActs.ts"
import { profilesOf } from "../PanelLists.ts"
import { forRole, moved, page } from "../Route.ts"
import { rotationPlans } from "./Rotation.ts"

/* The page about the CAs of this service and their revocation lists. */

const sent = (body: Uint8Array | string, type: string, name: string) => ({
  _tag: "Sent" as const,
  answer: {
    status: 200,
    headers: { "content-type": type, "content-disposition": `attachment; filename="${name}"` },
    body
  }
})

/** Returns the first characters of an issuer's id, for a file name. */
const stem = (issuer: string): string => issuer.slice(0, 16)

/** Returns the routes of the page about CAs. */
export const authorityRoutes = (config: Config) => [
  forRole("viewer")("GET", "/ui/authorities", (given) =>
    Effect.gen(function*() {
      const { items } = yield* looked(listCas, given)
      return page("authorities", "Authorities", {
        rows: items.map((ca) => ({ ...ca, isSigning: ca.sha256 !== undefined })),
        isAdmin: given.sender.role === "admin",
        compromising: given.query.get("compromise") ?? "",
        done: given.query.get("done") ?? "",
        others: config.profiles.filter(({ enabled, signer }) => enabled && signer.backend !== "local_ca").map((
          { name, signer }
        ) => ({ name, backend: signer.backend }))
      })
    })),
  forRole("viewer")("GET", "/ui/authorities/{issuer}", (given) =>
    Effect.gen(function*() {
      const { items } = yield* looked(listCas, given)
      const found = items.find((one) => one.issuer === given.parameters["issuer"])
      // Counting may take seconds, so it is a link on the page.
      const ca = found === undefined || given.query.has("count") ? yield* looked(showCa, given) : found
      return page("authority", ca.subject ?? "A CA", { ca, plans: rotationPlans(ca, items) })
    })),
  forRole("admin")(
    "POST",
    "/ui/authorities/{issuer}/compromise",
    (given) => Effect.as(submitted(compromiseCa, given), moved("/ui/authorities?done=compromised"))
  ),
  forRole("viewer")(
    "GET",
    "/ui/authorities/{issuer}/ca.pem",
    ({ parameters: { issuer = "" } }) =>
      Effect.map(
        crlRecords.certificatePem(profilesOf(config), issuer),
        (pem) => sent(pem, "application/x-pem-file", `ca-${stem(issuer)}.pem`)
      )
  ),
  forRole("viewer")(
    "GET",
    "/ui/authorities/{issuer}/ca.crl",
    ({ parameters: { issuer = "" } }) =>
      Effect.map(
        crlRecords.revocationList(issuer),
        (der) => sent(der, "application/pkix-crl", `ca-${stem(issuer)}.crl`)
      )
  )
]
