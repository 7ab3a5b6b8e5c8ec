import * as Effect from "effect/Effect"
import { listKinds, tryKind } from "../../operator/acts/KindActs.ts"
import { submitted } from "../PanelActs.ts"
import { forRole, page } from "../Route.ts"

/** The routes of the page about the kinds of certificates of a profile. */
export const kindRoutes = [
  forRole("viewer")("GET", "/ui/profiles/{profile}/kinds", ({ parameters: { profile = "" } }) =>
    Effect.map(
      listKinds.run({ profile }),
      ({ items }) => page("kinds", `Kinds of certificates of ${profile}`, { profile, kinds: items })
    )),
  forRole("operator")(
    "POST",
    "/ui/profiles/{profile}/kinds/try",
    (given) => Effect.map(submitted(tryKind, given), (tried) => page("kind-trial", "A CSR", { tried }))
  )
]
