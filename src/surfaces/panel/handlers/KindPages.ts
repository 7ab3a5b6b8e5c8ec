import * as Effect from "effect/Effect"
import { NoSuch } from "../../../domain/OperatorError.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { listKinds, tryKind } from "../../operator/acts/KindActs.ts"
import { submitted } from "../PanelActs.ts"
import { profilesOf } from "../PanelLists.ts"
import { forRole, page } from "../Route.ts"

/** Returns the routes of the pages about the kinds of certificates of a profile. */
export const kindRoutes = (config: Config) => [
  forRole("viewer")(
    "GET",
    "/ui/profiles/{profile}/kinds",
    ({ parameters: { profile = "" } }) =>
      Effect.gen(function*() {
        if (!profilesOf(config).includes(profile)) return yield* new NoSuch({ noun: "profile", id: profile })
        const { items } = yield* listKinds.run({ profile })
        return page("kinds", `Kinds of certificates of ${profile}`, { profile, kinds: items })
      })
  ),
  forRole("operator")(
    "POST",
    "/ui/profiles/{profile}/kinds/try",
    (given) => Effect.map(submitted(tryKind, given), (tried) => page("kind-trial", "A CSR", { tried }))
  )
]
