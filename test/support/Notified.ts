import { Effect, Layer } from "effect"
import { proxiesOf } from "../../src/app/Graph.ts"
import type { MessageKind, Payload } from "../../src/domain/Notification.ts"
import { Scripts } from "../../src/engine/host/Scripts.ts"
import { Mail } from "../../src/engine/net/Mail.ts"
import { Resolver } from "../../src/engine/net/Resolver.ts"
import { Web } from "../../src/engine/net/Web.ts"
import { Deliveries } from "../../src/services/notify/Deliveries.ts"
import type { Delivery } from "../../src/services/notify/Delivery.ts"
import { sectionsOf } from "../../src/services/notify/NotifyRoutes.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import { installationOf } from "../../src/settings/Installation.ts"
import { configOf } from "./Graph.ts"

/** The outside world of {@link deliveries}. */
interface Outside {
  /** The addresses of names, by default none. */
  readonly names?: { readonly [name: string]: ReadonlyArray<string> }
}

/** Returns the real backends of a configuration. Webhooks go through its `[proxy]`. */
export const deliveriesOf = (config: Config, { names = {} }: Outside = {}) =>
  Deliveries.layer(sectionsOf(config), installationOf(config)).pipe(
    Layer.provide(Layer.mergeAll(
      Mail.layer,
      Scripts.layer,
      Layer.provide(Web.layer("1", proxiesOf(config).outbound), Resolver.layerStatic(names))
    ))
  )

/** Returns the backends for the text of a configuration. */
export const deliveries = (toml: string, outside?: Outside) => deliveriesOf(configOf(toml), outside)

/** The id of every {@link payload}. */
export const deliveryId = "019064f0-0000-7000-8000-000000000001"

/** Returns an event with some members. */
export const payload = (hook: MessageKind, members: Readonly<Record<string, unknown>> = {}): Payload => ({
  hook,
  profile: hook.startsWith("admin_") ? "__admin__" : "default",
  at: 1_927_947_906,
  delivery_id: deliveryId,
  ...members
})

/** Returns the event of an issuance. */
export const issued = (members: Readonly<Record<string, unknown>> = {}): Payload =>
  payload("certificate_issued", {
    order_id: "o1",
    account_id: "a1",
    cert_serial: "0badcafe",
    identifiers: ["a.example", "b.example"],
    not_after: 1_927_947_906,
    client_ip: "192.0.2.1",
    ...members
  })

/** Makes one delivery to an entry of the profile `default`. */
export const deliver = (
  backend: Delivery["backend"],
  entry: string,
  fields: Payload = issued(),
  scope = "default"
) => Effect.flatMap(Deliveries, (all) => all.deliver({ scope, backend, entry, fields }))
