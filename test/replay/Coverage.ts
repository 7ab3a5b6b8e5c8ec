import { Effect } from "effect"
import { whole } from "../../src/app/Commands.ts"
import { leavesOf } from "../../src/surfaces/cli/CommandTree.ts"
import { documentOf } from "../../src/surfaces/operator/OpenApiDocument.ts"
import { panelRoutes, patternOf } from "../support/PanelRoutes.ts"
import { apiRoutes } from "./ApiRoutes.ts"
import { playedCommands } from "./CommandPlays.ts"
import { playedPaths } from "./PanelPlays.ts"

/* Finds the routes, commands, pages and forms that exist now and that no play uses. */

const routes = Object.entries(documentOf("", "")["paths"] as Readonly<Record<string, object>>).flatMap(([path, of]) =>
  Object.keys(of).map((method) => `${method.toUpperCase()} ${path}`)
).filter((route) => /^(?:GET|POST|PUT|PATCH|DELETE) /.test(route))

const commands = Effect.map(whole, (root) => leavesOf(root).map(({ path }) => path.slice(1).join(" ")))

const pages = panelRoutes.map(({ method, pattern }) => `${method} ${pattern}`)

const played = new Set([
  ...apiRoutes.map(({ route }) => route),
  ...playedCommands,
  ...playedPaths.map(([method, path]) => `${method} ${patternOf(path) ?? ""}`)
])

/** The routes of the API, commands, pages and forms that no play uses. */
export const unplayed: Effect.Effect<ReadonlyArray<string>> = Effect.map(
  commands,
  (commands) => [...routes, ...commands, ...pages].filter((way) => !played.has(way))
)
