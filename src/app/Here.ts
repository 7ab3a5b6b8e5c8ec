import * as Effect from "effect/Effect"
import { relative, resolve } from "node:path"
import { Host } from "./Host.ts"

/** Resolves a path from a command line or a URL. A relative path starts from the host's directory. */
export const fromHere = (path: string): Effect.Effect<string, never, Host> =>
  Effect.map(Host, ({ cwd }) => resolve(cwd, path))

/**
 * Returns paths in the form that a sentence shows. A path inside the host's directory is shown relative to this
 * directory.
 */
export const seenFromHere = (...paths: ReadonlyArray<string>): Effect.Effect<string, never, Host> =>
  Effect.map(Host, ({ cwd }) =>
    paths.map((path) => {
      const near = relative(cwd, path)
      return near.startsWith("..") ? path : near
    }).join(", "))
