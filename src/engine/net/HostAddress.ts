import * as Effect from "effect/Effect"
import { lookup } from "node:dns"
import type { Comparable } from "./Address.ts"
import { comparable } from "./Address.ts"

/**
 * The address at which a host of this machine is bound: a literal itself, or the system's answer for a name, if any.
 */
export const hostAddress = (host: string): Effect.Effect<Comparable | undefined> =>
  Effect.callback((resume) => {
    lookup(host, (error, address) => resume(Effect.succeed(error === null ? comparable(address) : undefined)))
  })
