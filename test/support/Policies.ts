import { Effect, Layer } from "effect"
import { Scripts } from "../../src/engine/host/Scripts.ts"
import { comparable } from "../../src/engine/net/Address.ts"
import { JsonGet } from "../../src/engine/net/JsonGet.ts"
import { Resolver } from "../../src/engine/net/Resolver.ts"
import { Web } from "../../src/engine/net/Web.ts"
import type { IdentifiersQuestion } from "../../src/services/policy/Check.ts"
import { Policies } from "../../src/services/policy/Policies.ts"
import type { Config } from "../../src/settings/AppConfig.ts"

/** Returns the policies of a configuration, with real programs and sockets. `resolver` answers the DNS questions. */
export const policiesOf = (
  { dns, profiles }: Config,
  resolver: Layer.Layer<Resolver> = Resolver.layer(dns.resolver)
): Layer.Layer<Policies> =>
  Policies.layer(profiles).pipe(
    Layer.provide(Layer.mergeAll(Layer.provide(JsonGet.layer, Web.layer("1")), Scripts.layer)),
    Layer.provide(resolver),
    Layer.orDie
  )

/** Asks the connection stage of the profile `default`. */
export const connecting = (ip: string, path = "/newOrder", method = "POST") =>
  Effect.flatMap(Policies, (policies) => {
    const stage = policies.get("default")?.connection
    return stage === undefined
      ? Effect.die(new Error("no rule applies to the connection stage"))
      : stage({ stage: "connection", client: comparable(ip), method, path })
  })

/** Asks the identifiers stage of the profile `default` about names: `cn:x` is a common name. */
export const ordering = (
  ip: string,
  names: ReadonlyArray<string>,
  more: Partial<Pick<IdentifiersQuestion, "at" | "credential" | "kind">> = {}
) =>
  Effect.flatMap(Policies, (policies) => {
    const stage = policies.get("default")?.identifiers
    return stage === undefined
      ? Effect.die(new Error("no rule applies to the identifiers stage"))
      : stage({
        stage: "identifiers",
        client: comparable(ip),
        accountId: "account-1",
        at: "newOrder",
        kind: "default",
        identifiers: names.map((name) =>
          name.startsWith("cn:") ? { type: "cn", value: name.slice(3) } : { type: "dns", value: name }
        ),
        credential: Effect.succeed(undefined),
        ...more
      })
  })
