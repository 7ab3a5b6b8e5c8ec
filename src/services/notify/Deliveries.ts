import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Scope } from "../../domain/Notification.ts"
import { operatorScope } from "../../domain/Notification.ts"
import { emit } from "../../domain/words/Log.ts"
import { sectionText } from "../../engine/config/Section.ts"
import { Scripts } from "../../engine/host/Scripts.ts"
import { longestMillis, Mail } from "../../engine/net/Mail.ts"
import { Web } from "../../engine/net/Web.ts"
import type { Delivery, DeliveryRefused, Receipt } from "./Delivery.ts"
import { TargetMissing } from "./Delivery.ts"
import type { Messages, MessagesRefused } from "./MessageTemplates.ts"
import { compileMessages } from "./MessageTemplates.ts"
import { run } from "./NotifyProgram.ts"
import type { Section } from "./NotifyRoutes.ts"
import { routesOf } from "./NotifyRoutes.ts"
import { send } from "./Post.ts"
import { post } from "./Webhook.ts"

/** Returns the configuration key of a scope's section. */
export const keyOf = (scope: Scope): string => scope === operatorScope ? "admin.notify" : `profiles.${scope}.notify`

/** Delivers messages to the entries of the sections in force, by mail, webhook or script. */
export class Deliveries extends Context.Service<Deliveries, {
  /** Makes one attempt to deliver, within the time limit of the entry. */
  readonly deliver: (delivery: Delivery) => Effect.Effect<Receipt, DeliveryRefused | TargetMissing>
  /**
   * Returns how many milliseconds one attempt may take, together with the wait of a mail for a connection. Returns
   * `undefined` if the entry does not exist.
   */
  readonly timeoutMillis: (target: Omit<Delivery, "fields">) => number | undefined
}>()("acme/services/notify/Deliveries") {
  /**
   * Makes the service. Compiles the messages of every section that delivers anything. Sections with the same messages
   * share the compiled ones. `host` names the installation.
   */
  static readonly layer = (
    sections: ReadonlyMap<Scope, Section>,
    host: string
  ): Layer.Layer<Deliveries, MessagesRefused, Mail | Scripts | Web> => Layer.effect(this, make(sections, host))

  /** Delivers nothing. Passes every delivery to a function instead. */
  static readonly layerScripted = (script: Deliveries["Service"]["deliver"]): Layer.Layer<Deliveries> =>
    Layer.succeed(this, { deliver: script, timeoutMillis: () => 5000 })
}

interface Ready {
  readonly section: Section
  readonly messages: Messages
}

const compiled = Effect.fnUntraced(function*(sections: ReadonlyMap<Scope, Section>, host: string) {
  const ready = new Map<Scope, Ready>()
  const known = new Map<string, Messages>()
  for (const [scope, section] of sections) {
    if (routesOf(section).length === 0) continue
    const { template_dir, webhook } = section
    const key = sectionText({ template_dir, webhook })
    const messages = known.get(key) ?? (yield* compileMessages(section, keyOf(scope), host))
    known.set(key, messages)
    ready.set(scope, { section, messages })
  }
  return ready
})

const timeoutOf = (section: Section, { backend, entry }: Pick<Delivery, "backend" | "entry">): number | undefined => {
  if (!routesOf(section).some((route) => route.backend === backend && route.entry === entry)) return undefined
  // A message waits for a connection as long as it may then take.
  return backend === "email" ? 2 * longestMillis(section.email.timeout_ms) : section[backend][entry]?.timeout_ms
}

const make = Effect.fnUntraced(function*(sections: ReadonlyMap<Scope, Section>, host: string) {
  const ready = yield* compiled(sections, host)
  const unused = new Set([...ready.values()].flatMap(({ messages }) => messages.unused))
  for (const path of unused) yield* emit("notify_template_unused", { path })
  const [mail, scripts, web] = [yield* Mail, yield* Scripts, yield* Web]
  const timeoutMillis = (target: Omit<Delivery, "fields">) => {
    const found = ready.get(target.scope)
    return found === undefined ? undefined : timeoutOf(found.section, target)
  }
  return Deliveries.of({
    timeoutMillis,
    deliver: (delivery): Effect.Effect<Receipt, DeliveryRefused | TargetMissing> => {
      const { backend, entry, fields, scope, to } = delivery
      const found = ready.get(scope)
      if (found === undefined || timeoutMillis(delivery) === undefined) return new TargetMissing()
      const { messages, section } = found
      if (backend === "email") return send({ mail, messages }, section.email, fields, to)
      const [webhook, program] = [section.webhook[entry], section.custom[entry]]
      if (backend === "webhook" && webhook !== undefined) return post({ web, messages }, entry, webhook, fields)
      if (backend === "custom" && program !== undefined) return run(scripts, entry, program, fields)
      return new TargetMissing()
    }
  })
})
