import type * as Effect from "effect/Effect"
import { timeMember } from "../../../engine/Members.ts"
import { rfc3339 } from "../../../engine/Time.ts"
import type * as purge from "../Purge.ts"

/** The orders that a purge would delete. */
export const purgePreviewObject = (found: Effect.Success<ReturnType<typeof purge.preview>>) => ({
  orders: found.orders,
  ...timeMember("oldest", found.oldest),
  ...timeMember("newest", found.newest),
  profiles: found.profiles.map(({ newest, oldest, orders, profile }) => ({
    profile,
    orders,
    ...timeMember("oldest", oldest),
    ...timeMember("newest", newest)
  })),
  left: found.left,
  cutoff: rfc3339(found.cutoff)
})

/** How many orders a purge deleted, and how many it kept because the expiry of their certificate is unknown. */
export const purgeObject = (done: Effect.Success<ReturnType<typeof purge.run>>) => ({
  orders: done.orders,
  authorizations: done.authorizations,
  left: done.left,
  cutoff: rfc3339(done.cutoff)
})
