import { Effect } from "effect"
import { lookup } from "node:dns"
import type { Comparable } from "./Address.ts"
import { comparable } from "./Address.ts"

/** The address a host of this machine's is bound at: a literal's own, and what the system says of a name, if anything. */
export const hostAddress = (host: string): Effect.Effect<Comparable | undefined> =>
  Effect.async((resume) => {
    lookup(host, (error, address) => resume(Effect.succeed(error === null ? comparable(address) : undefined)))
  })
