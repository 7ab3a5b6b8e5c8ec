import * as Effect from "effect/Effect"
import { relative, resolve } from "node:path"
import { Host } from "./Host.ts"

/** A path somebody gave on the command line or in a URL. A relative one starts at the directory of the host. */
export const fromHere = (path: string): Effect.Effect<string, never, Host> =>
  Effect.map(Host, ({ cwd }) => resolve(cwd, path))

/** Paths as people in the directory of the host write them, for a sentence. */
export const seenFromHere = (...paths: ReadonlyArray<string>): Effect.Effect<string, never, Host> =>
  Effect.map(Host, ({ cwd }) =>
    paths.map((path) => {
      const near = relative(cwd, path)
      return near.startsWith("..") ? path : near
    }).join(", "))
