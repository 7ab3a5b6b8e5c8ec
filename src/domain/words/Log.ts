import { makeLog } from "../../engine/telemetry/EventLog.ts"
import { events } from "./Event.ts"
import type { fields } from "./EventField.ts"

/** Writes one record of any event of the vocabulary. */
export const { emit } = makeLog<typeof fields, typeof events>(events)
