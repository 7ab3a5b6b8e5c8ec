import type { EventName, events } from "../Log.ts"
import type { Meaning } from "./Meaning.ts"

/**
 * The meaning of an event. For an event of success or progress, the remedy may be left out, because nothing has to be
 * done.
 */
type MeaningOf<D> = D extends { readonly outcome: "failure" | "advisory" } ? Meaning : Meaning | string

/** The meanings of all events. If an event has none, or a failure has no remedy, this does not compile. */
export type EveryMeaning = { readonly [E in EventName]: MeaningOf<(typeof events)[E]> }

/** The meanings of the events of one subject. */
export type SomeMeanings = Partial<EveryMeaning>
