import * as Effect from "effect/Effect"
import { RateLimited } from "../../domain/OperatorError.ts"
import { Shares } from "../../engine/http/Shares.ts"
import { currentPeer, makeFairSemaphore } from "../../engine/net/FairSemaphore.ts"
import type { Peer } from "../../engine/net/Peer.ts"

/** Computes hashes in turn. */
export interface HashQueue {
  /** Computes a hash when its turn comes. If too many hashes wait, it is refused, and the caller may try again. */
  readonly inTurn: <A>(self: Effect.Effect<A>) => Effect.Effect<A, RateLimited>
  /** How many hashes of the current peer are in the queue, including those that are being computed. */
  readonly underWay: Effect.Effect<number>
}

/** A hash that waits. Calling it off makes room for another one. */
interface Waiter {
  readonly callOff: () => void
}

const retrySeconds = 1

/**
 * A queue that computes `atOnce` hashes at a time and lets `mostWaiting` more wait. Both are shared among peers ({@link
 * currentPeer}). The next turn goes to the peer with the fewest hashes. If no place is left, a new hash takes the place
 * of the newest one of the peer with the most (docs/decisions/shares.md).
 */
export const makeHashQueue = (atOnce: number, mostWaiting: number): HashQueue => {
  const turns = makeFairSemaphore(atOnce)
  const waiting = new Shares<Waiter>()
  /** How many hashes of each host are in the queue, including those that are being computed. */
  const present = new Map<string, number>()

  const add = (peer: Peer | undefined, by: 1 | -1): void => {
    if (peer === undefined) return
    const count = (present.get(peer.host) ?? 0) + by
    if (count === 0) present.delete(peer.host)
    else present.set(peer.host, count)
  }

  /** The refusal of a hash. It runs while the hash is still counted in the queue. */
  const refused = (peer: Peer | undefined) =>
    Effect.suspend(() =>
      new RateLimited({
        retryAfter: retrySeconds,
        isOwnDoing: peer !== undefined && (present.get(peer.host) ?? 0) > 1
      })
    )

  const wait = (peer: Peer | undefined, callOff: () => void): () => void => {
    if (waiting.size >= mostWaiting) {
      const victim = waiting.victimOf(peer)
      if (victim === undefined) {
        callOff()
        return () => {}
      }
      victim.callOff()
    }
    const leave = waiting.add(peer, {
      callOff: () => {
        leave()
        callOff()
      }
    })
    return leave
  }

  return {
    underWay: Effect.map(currentPeer, (peer) => peer === undefined ? 0 : present.get(peer.host) ?? 0),
    inTurn: (self) =>
      Effect.withFiber((fiber) => {
        const peer = fiber.getRef(currentPeer)
        let leave = () => {}
        add(peer, 1)
        // Yields first: a hash that has waited starts right where another one ends, and the event loop must run between
        // them.
        const begun = Effect.suspend(() => {
          leave()
          return Effect.andThen(Effect.yieldNow, self)
        })
        return Effect.ensuring(
          turns.takeUnless((callOff) => void (leave = wait(peer, callOff)), begun, refused(peer)),
          Effect.sync(() => {
            leave()
            add(peer, -1)
          })
        )
      })
  }
}
