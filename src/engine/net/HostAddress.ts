import * as Effect from "effect/Effect"
import { lookup } from "node:dns"
import type { Comparable } from "./Address.ts"
import { comparable } from "./Address.ts"

/**
 * Returns the address that a listener with this configured host binds. For an address literal, this is the literal
 * itself. For a name, it is the result of the system's look-up, if there is one.
 */
export const hostAddress = (host: string): Effect.Effect<Comparable | undefined> =>
  Effect.callback((resume) => {
    lookup(host, (error, address) => resume(Effect.succeed(error === null ? comparable(address) : undefined)))
  })
