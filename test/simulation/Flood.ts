import { Effect } from "effect"
import type { AuthorizationBody, OrderBody } from "../support/AcmeSession.ts"
import { idOf, jsonOf, pathOf, Session } from "./Session.ts"
import type { Surroundings } from "./Session.ts"
import { stuckZone } from "./World.ts"

/** An account that requests more validations than there are slots, for names whose servers never answer. */
export class Flood extends Session {
  readonly #names: number

  constructor(surroundings: Surroundings, names: number) {
    super(surroundings)
    this.#names = names
  }

  readonly #ask = (authorizationUrl: string) =>
    Effect.gen({ self: this }, function*() {
      const answer = yield* this.post(pathOf(authorizationUrl), undefined)
      if (answer?.status !== 200) return
      const { challenges } = jsonOf<AuthorizationBody>(answer)
      const url = challenges[0]?.url
      if (url !== undefined) yield* this.post(pathOf(url), {})
    })

  /** Places one order, and triggers all of its challenges at once. */
  readonly life: Effect.Effect<void> = Effect.gen({ self: this }, function*() {
    if (!(yield* this.register)) return
    yield* this.pause(0, 5000)
    const names = Array.from({ length: this.#names }, (_, at) => `n${at}.${stuckZone}`)
    const answer = yield* this.post(this.target("/newOrder"), {
      identifiers: names.map((value) => ({ type: "dns", value }))
    })
    const url = answer?.headers["location"]
    if (answer?.status !== 201 || typeof url !== "string") return
    this.at.ledger.orders.set(idOf(url), names)
    yield* Effect.forEach(jsonOf<OrderBody>(answer).authorizations, this.#ask, { concurrency: 4 })
  })
}
