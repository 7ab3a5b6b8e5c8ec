import { Effect } from "effect"
import { Shed } from "../../domain/AcmeError.ts"
import { emit } from "../../subsystems/log/EventLog.ts"

/** A bound on requests being worked on: `server.max_concurrent_requests` and `server.admission_wait_ms`. */
export interface Admission {
  /** Runs `self` once there is a slot; sheds it when none comes free in time. The slot returns on every exit. */
  readonly admit: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Shed, R>
}

/** What a request holds or waits for. The slot is given in one step, so that no interruption falls in between. */
interface Ticket {
  held: boolean
  called: () => void
}

export const make = (options: { readonly slots: number; readonly waitMillis: number }): Effect.Effect<Admission> =>
  Effect.sync(() => bounded(options.slots, options.waitMillis))

const bounded = (slots: number, waitMillis: number): Admission => {
  const queue = new Set<Ticket>()
  let free = slots
  const shed = Effect.zipRight(emit("request_shed", {}), new Shed())

  const leave = (ticket: Ticket) =>
    Effect.sync(() => {
      queue.delete(ticket)
      if (!ticket.held) return
      const [next] = queue
      if (next === undefined) {
        free++
        return
      }
      queue.delete(next)
      next.held = true
      next.called()
    })
  const turn = (ticket: Ticket) =>
    Effect.async<void>((resume) => {
      ticket.called = () => resume(Effect.void)
      queue.add(ticket)
    })

  const admit = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | Shed, R> =>
    Effect.uninterruptibleMask((restore) => {
      const ticket: Ticket = { held: free > 0, called: () => {} }
      // The uncontended path needs neither a timer nor a fiber.
      if (ticket.held) {
        free--
        return Effect.ensuring(restore(self), leave(ticket))
      }
      const wait = restore(Effect.timeoutOption(turn(ticket), waitMillis))
      const admitted = Effect.flatMap(wait, (): Effect.Effect<A, E | Shed, R> => ticket.held ? restore(self) : shed)
      return Effect.ensuring(admitted, leave(ticket))
    })
  return { admit }
}
