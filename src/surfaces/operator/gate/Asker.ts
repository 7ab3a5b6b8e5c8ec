import * as Effect from "effect/Effect"
import { currentAsker } from "../../../engine/sql/ReaderSemaphore.ts"
import type { Sender } from "./OperatorChecks.ts"

/** The share of all who are not signed in. */
const strangers = ""

/**
 * Counts what a request reads beside the service in the share of its operator: all sessions and tokens of one operator together, from
 * whichever address they come.
 */
export const askedBy = (sender: Sender) => {
  const name = sender?.userId ?? strangers
  return Effect.provideService(currentAsker, { host: name, network: name })
}
