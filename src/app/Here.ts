import * as Effect from "effect/Effect"
import { relative, resolve } from "node:path"
import { Host } from "./Host.ts"

/** Resolves a path that a command line or a URL contains. A relative path begins in the host's directory. */
export const fromHere = (path: string): Effect.Effect<string, never, Host> =>
  Effect.map(Host, ({ cwd }) => resolve(cwd, path))

/** Returns paths for a sentence, in the form in which people in the host's directory write them. */
export const seenFromHere = (...paths: ReadonlyArray<string>): Effect.Effect<string, never, Host> =>
  Effect.map(Host, ({ cwd }) =>
    paths.map((path) => {
      const near = relative(cwd, path)
      return near.startsWith("..") ? path : near
    }).join(", "))
