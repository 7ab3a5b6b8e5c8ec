import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { NoSuch } from "../../../domain/OperatorError.ts"
import { Activity } from "../../../operations/Activity.ts"
import { trendObject } from "../../../operations/objects/AuditObjects.ts"
import { configKeyObject } from "../../../operations/objects/SettingObjects.ts"
import * as operators from "../../../operations/operators/Operators.ts"
import { profilesShown } from "../../../operations/ProfileHealth.ts"
import { search, searchObject } from "../../../operations/Search.ts"
import { viewOf } from "../../../services/policy/PolicyView.ts"
import { effectiveKeys } from "../../../settings/Effective.ts"
import type { Resolved } from "../../../settings/Resolve.ts"
import { Api } from "../Api.ts"
import { answering } from "../ApiRefusals.ts"
import { documentOf } from "../Document.ts"
import { identity } from "./RequestCaller.ts"

/** The configuration and the activity of the service. */
export const serviceHandlers = (resolved: Pick<Resolved, "config" | "sources">, version: string) => {
  const { config } = resolved
  const mounted = config.profiles.filter(({ enabled }) => enabled)
  return HttpApiBuilder.group(Api, "service", (handlers) =>
    handlers
      .handle("listProfiles", () =>
        Effect.map(
          profilesShown(config),
          (items) => ({ items, total: items.length, limit: items.length, offset: 0 })
        ))
      .handle("readPolicy", ({ params: { name } }) => {
        const profile = mounted.find((one) => one.name === name)
        return answering(
          profile === undefined ? new NoSuch({ noun: "profile", id: name }) : Effect.succeed(viewOf(profile))
        )
      })
      .handle("readConfig", ({ query: { profile } }) => {
        const keys = effectiveKeys(resolved, profile)
        return answering(
          keys === undefined
            ? new NoSuch({ noun: "profile", id: profile ?? "" })
            : Effect.succeed({ items: keys.map(configKeyObject) })
        )
      })
      .handle("search", ({ query: { q } }) =>
        answering(Effect.gen(function*() {
          const { role } = yield* identity
          const found = yield* search(q, {
            maySeeOperators: role === "admin",
            operators: operators.containing
          })
          return searchObject(found)
        })))
      .handle("readTrends", ({ query: { profile, range = "24h" } }) =>
        answering(Effect.map(
          Effect.flatMap(Activity, ({ trend }) => trend(profile, range)),
          trendObject
        )))
      .handle("readOpenApi", () => Effect.succeed(documentOf(version, config.admin.base_url))))
}
