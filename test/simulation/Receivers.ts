import { Effect, Layer } from "effect"
import { Deliveries } from "../../src/services/notify/Deliveries.ts"
import { DeliveryRefused } from "../../src/services/notify/Delivery.ts"
import type { Facts } from "./Facts.ts"
import type { Machine } from "./Machine.ts"
import type { Random } from "./Random.ts"
import type { World } from "./World.ts"

/*
 * The receivers of events, which are webhooks that are slow, refuse events for a while, or accept an event but answer
 * so late that it is sent again.
 */

/** How long a receiver may take to answer. */
export const timeoutMillis = 5000

/** The names of the webhooks. */
export const receiverNames = ["chat", "pager"] as const

/** The sections of the configuration that name these receivers. */
export const receiversToml = `
[notify]
enabled = ["webhook"]
webhook_enabled = ${JSON.stringify(receiverNames)}
${receiverNames.map((name) => `[notify.webhook.${name}]\nurl = "https://${name}.example.org/"`).join("\n")}
`

/** The receivers of a run. Every event that arrives is recorded as a fact, even if the answer is lost. */
export class Receivers {
  readonly #machine: Machine
  readonly #random: Random
  readonly #world: World
  readonly #facts: Facts

  constructor(given: {
    readonly machine: Machine
    readonly random: Random
    /** The outside world, which determines how often the receivers fail. */
    readonly world: World
    readonly facts: Facts
  }) {
    this.#machine = given.machine
    this.#random = given.random
    this.#world = given.world
    this.#facts = given.facts
  }

  private readonly passing = Effect.suspend(() => {
    const isSlow = this.#random.chance(this.#world.malice)
    const millis = isSlow ? this.#random.between(500, 20_000) : this.#random.between(1, 30)
    return Effect.callback<void>((resume) => this.#machine.after(millis, () => resume(Effect.void)))
  })

  /** Returns the real backends, which can reach only these receivers. */
  readonly layer = (): Layer.Layer<Deliveries> =>
    Deliveries.layerScripted(({ entry, fields }) =>
      Effect.gen({ self: this }, function*() {
        yield* this.passing
        if (this.#random.chance(this.#world.malice)) {
          return yield* new DeliveryRefused({ detail: "answered 503", hope: "retry", status: 503 })
        }
        this.#facts.told(entry, fields)
        yield* this.passing
        return { answer: "taken" }
      }).pipe(Effect.timeoutOrElse({
        duration: timeoutMillis,
        orElse: () =>
          Effect.fail(new DeliveryRefused({ detail: `no answer within ${timeoutMillis} ms`, hope: "retry" }))
      }))
    )
}
