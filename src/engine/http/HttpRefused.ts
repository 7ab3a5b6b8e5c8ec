import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { emit } from "../telemetry/EngineLog.ts"

/* The reasons for which a request is refused before its content is processed. */

/** The body has more octets than the listener accepts. */
export class BodyTooLarge extends Data.TaggedError("BodyTooLarge") {}

/** The body did not arrive in time. */
export class BodyTooSlow extends Data.TaggedError("BodyTooSlow") {}

/** There was no room for the request. */
export class Shed extends Data.TaggedError("Shed") {}

/** Sheds a request and logs it. */
export const shed: Effect.Effect<never, Shed> = Effect.andThen(emit("request_shed", {}), new Shed())
