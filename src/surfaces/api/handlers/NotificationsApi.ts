import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { deliveryObject, list } from "../../../operations/notify/Recent.ts"
import * as trial from "../../../operations/notify/Trial.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { Api } from "../Api.ts"
import { answering } from "../ApiRefusals.ts"
import { paged, windowOf } from "./Paging.ts"
import { operator } from "./RequestCaller.ts"

/** Notifications. */
export const notificationsHandlers = (config: Config) =>
  HttpApiBuilder.group(Api, "notifications", (handlers) =>
    handlers
      .handle("listDeliveries", ({ query }) => {
        const window = windowOf(query, config.admin.page_size_max)
        return answering(Effect.map(list(window), (found) => paged(found, deliveryObject, window)))
      })
      .handle("testNotifications", ({ payload: { event, profile, target } }) =>
        answering(Effect.map(
          Effect.flatMap(operator, (by) =>
            trial.test(config, by, {
              event: event ?? undefined,
              profile: profile ?? undefined,
              target: target ?? undefined
            })),
          (items) => ({ items })
        ))))
