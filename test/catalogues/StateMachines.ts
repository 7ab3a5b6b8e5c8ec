import { authorizationMoves } from "../../src/domain/Authorization.ts"
import { challengeMoves } from "../../src/domain/Challenge.ts"
import { orderMoves } from "../../src/domain/Order.ts"
import { jobMoves } from "../../src/engine/queue/Job.ts"

/* The statuses of orders, authorizations, challenges and jobs, as text for Graphviz, from the moves in the code. */

interface Move {
  readonly from: ReadonlyArray<string>
  readonly to: string
}

/** Returns the text of one machine. `words` says what happens at each move. */
const machineOf = <Moves extends { readonly [move: string]: Move }>(
  moves: Moves,
  begins: string,
  words: { readonly [move in keyof Moves]: string }
): string => {
  const statuses = new Set<string>([begins])
  for (const { from, to } of Object.values(moves)) for (const status of [...from, to]) statuses.add(status)
  const left = new Set(Object.values(moves).flatMap(({ from }) => from))
  const nodes = [...statuses].map((status) => `  ${status} [class="${left.has(status) ? "state" : "state last"}"]`)
  const edges = Object.entries(moves).flatMap(([name, { from, to }]) =>
    from.map((status) => `  ${status} -> ${to} [label="${words[name]}"]`)
  )
  return ["digraph {", "  rankdir=LR", "  begin [shape=point]", ...nodes, `  begin -> ${begins}`, ...edges, "}"].join(
    "\n"
  )
}

/** The texts of the machines by the names of their pictures. */
export const stateMachines: { readonly [picture: string]: () => string } = {
  "order-states": () =>
    machineOf(orderMoves, "pending", {
      promote: "all names are proved",
      demote: "an authorization\\nis deactivated",
      claim: "finalize",
      issue: "certificate stored",
      lapse: "expired",
      fail: "failed"
    }),
  "authorization-states": () =>
    // The expiry of a valid authorization is shown, but is not stored.
    machineOf({ ...authorizationMoves, expire: { from: ["pending", "valid"], to: "expired" } }, "pending", {
      accept: "a challenge is valid",
      refuse: "a challenge failed",
      expire: "expired",
      deactivate: "deactivated by the client"
    }),
  "challenge-states": () =>
    machineOf(challengeMoves, "pending", {
      claim: "the client asks for validation",
      accept: "proved",
      bypass: "validation is bypassed",
      refuse: "not proved"
    }),
  "job-states": () =>
    machineOf(jobMoves, "ready", {
      claim: "a worker takes it",
      reschedule: "again later",
      reclaim: "its worker is gone",
      finish: "succeeded",
      giveUp: "refused, or no attempts left",
      repeat: "jobs run-now",
      cancel: "jobs cancel"
    })
}
