import { Effect } from "effect"
import { whole } from "../../src/app/Commands.ts"
import { leavesOf } from "../../src/surfaces/cli/CommandTree.ts"
import { panelRoutes, patternOf } from "../support/PanelRoutes.ts"
import { apiRoutes } from "./ApiRoutes.ts"
import { playedCommands } from "./CommandPlays.ts"
import { playedPaths } from "./PanelPlays.ts"

/* Finds the routes, commands, pages and forms that exist now and that no play uses. */

/** Returns the routes of a document that no play uses. */
export const unplayedRoutes = (document: string): ReadonlyArray<string> => {
  const { paths } = JSON.parse(document) as { readonly paths: Readonly<Record<string, object>> }
  const played = new Set(apiRoutes.map(({ route }) => route))
  return Object.entries(paths).flatMap(([path, of]) =>
    Object.keys(of).map((method) => `${method.toUpperCase()} ${path}`).filter((route) =>
      /^(?:GET|POST|PUT|PATCH|DELETE) /.test(route) && !played.has(route)
    )
  )
}

/** The commands that no play runs. */
export const unplayedCommands: Effect.Effect<ReadonlyArray<string>> = Effect.map(
  whole,
  (root) =>
    leavesOf(root).map(({ path }) => path.slice(1).join(" ")).filter((command) => !playedCommands.includes(command))
)

/** The pages and forms that no play uses. */
export const unplayedPages: ReadonlyArray<string> =
  ((played) => panelRoutes.map(({ method, pattern }) => `${method} ${pattern}`).filter((route) => !played.has(route)))(
    new Set(playedPaths.map(([method, path]) => `${method} ${patternOf(path) ?? ""}`))
  )
