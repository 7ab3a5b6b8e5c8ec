import * as Effect from "effect/Effect"
import type { Roles } from "../../domain/Role.ts"
import { emit } from "../../domain/words/Log.ts"
import { isExecutable } from "../../engine/host/Files.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { keyOf } from "./Deliveries.ts"
import { hasDigest, sectionsOf } from "./NotifyRoutes.ts"

/** Warns if no entry receives the digest, or if certificates can expire between two digests. */
const adviseOfExpiry = Effect.fnUntraced(function*({ name, notify }: Config["profiles"][number]) {
  const { interval_days, lead_days } = notify.expiry
  if (lead_days === 0) return
  const key = `${keyOf(name)}.expiry`
  if (!hasDigest(notify)) yield* emit("notify_expiry_unused", { key: `${key}.lead_days` })
  else if (interval_days > lead_days) yield* emit("notify_expiry_gap", { key: `${key}.interval_days` })
})

/** Logs what an operator should know about the notification sections, at startup and at each reload. */
export const advise = (config: Config, roles: Roles): Effect.Effect<void> =>
  Effect.gen(function*() {
    for (const profile of config.profiles) if (profile.enabled) yield* adviseOfExpiry(profile)
    for (const [scope, section] of sectionsOf(config)) {
      const at = keyOf(scope)
      const { custom, custom_enabled, email, enabled, webhook, webhook_enabled } = section
      const unused = [
        ...Object.keys(webhook).filter((name) => !webhook_enabled.includes(name)).map((name) => `webhook.${name}`),
        ...Object.keys(custom).filter((name) => !custom_enabled.includes(name)).map((name) => `custom.${name}`)
      ]
      for (const entry of unused) yield* emit("notify_entry_unused", { key: `${at}.${entry}` })
      if (enabled.includes("email") && email.smtp_security === "none") {
        yield* emit("notify_email_plaintext", { key: `${at}.email.smtp_security` })
      }
      if (!enabled.includes("custom") || !roles.has("worker")) continue
      for (const name of custom_enabled) {
        const path = custom[name]?.script_path ?? ""
        if (yield* isExecutable(path)) continue
        yield* emit("script_not_executable", { key: `${at}.custom.${name}.script_path`, path })
      }
    }
  })
