import type { Guarded } from "../../src/surfaces/operator/gate/RouteMatcher.ts"
import { matcherOf } from "../../src/surfaces/operator/gate/RouteMatcher.ts"
import { routesOf } from "../../src/surfaces/panel/PanelRoutes.ts"
import { configOf } from "./Graph.ts"

/* The routes as the panel declares them, for tests that must know all routes. */

/** Every route of the panel. */
export const panelRoutes: ReadonlyArray<Guarded> = routesOf({ config: configOf(), sources: new Map() }, {
  urls: {},
  answer: () => undefined
})

/** Returns the patterns of every route with this method. */
export const patternsOf = (method: "GET" | "POST"): ReadonlyArray<string> =>
  panelRoutes.filter((route) => route.method === method).map(({ pattern }) => pattern).toSorted()

/** The pattern that fits a path. */
export const patternOf: (path: string) => string | undefined = (
  (known) => (path: string) => known(path)?.pattern
)(matcherOf(panelRoutes))
