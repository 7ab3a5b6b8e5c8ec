import * as Effect from "effect/Effect"
import { relative, resolve } from "node:path"
import { Host } from "./Host.ts"

/** Resolves a path from the command line or a URL. A relative path starts at the directory of the host. */
export const fromHere = (path: string): Effect.Effect<string, never, Host> =>
  Effect.map(Host, ({ cwd }) => resolve(cwd, path))

/** Returns paths as people in the directory of the host write them, for a sentence. */
export const seenFromHere = (...paths: ReadonlyArray<string>): Effect.Effect<string, never, Host> =>
  Effect.map(Host, ({ cwd }) =>
    paths.map((path) => {
      const near = relative(cwd, path)
      return near.startsWith("..") ? path : near
    }).join(", "))
