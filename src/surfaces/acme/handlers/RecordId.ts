import * as Effect from "effect/Effect"
import { NotFound } from "../../../domain/AcmeError.ts"
import { isId } from "../../../domain/Id.ts"

/** The id of the path as an id of this service. Any other text is answered as a record that does not exist. */
export const recordId = <Id>(make: (id: string) => Id, id: string): Effect.Effect<Id, NotFound> =>
  isId(id) ? Effect.succeed(make(id)) : new NotFound()
