import { Effect } from "effect"
import { forRole, page } from "../Route.ts"

/** The first page: what needs attention, and how things go. */
export const overviewRoutes = [
  forRole("viewer")("GET", "/ui/", () => Effect.succeed(page("overview", "Overview", {})))
]
