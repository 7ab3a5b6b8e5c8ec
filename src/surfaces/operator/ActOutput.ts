import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AnyAct } from "./Act.ts"

/** What an act answers, as JSON. What does not fit its declaration is a defect, and what is not declared is left out. */
export const encoded = <R>({ output }: AnyAct<R>, value: unknown): Effect.Effect<unknown> =>
  Effect.orDie(Schema.encodeUnknownEffect(output)(value))
