import { sectionsOf } from "../../services/notify/NotifyRoutes.ts"
import type { Config } from "../../settings/AppConfig.ts"

/* What a new service still lacks before an organisation can rely on it. */

/** A step on the way to a service that others can rely on. */
export interface ChecklistStep {
  readonly title: string
  /** What the step is good for, as a sentence. */
  readonly reason: string
  readonly isDone: boolean
  /** The page of the panel that helps, as a path. */
  readonly path: string
}

/**
 * Returns the steps for a configuration, in their order. `orders` is the number of orders that were placed. Only what
 * the service itself can know is a step: it cannot know whether anybody makes backups.
 */
export const checklist = (config: Config, orders: number): ReadonlyArray<ChecklistStep> => {
  const served = config.profiles.filter(({ enabled }) => enabled)
  const open = served.filter(({ eab, filter }) => !eab.enabled && filter.rules.length === 0).map(({ name }) => name)
  const [first] = served
  return [
    {
      title: "Get a first certificate",
      reason: "The page of a profile has the lines for each client, and says how machines trust its CA.",
      isDone: orders > 0,
      path: first === undefined ? "/ui/profiles" : `/ui/profiles/${first.name}`
    },
    {
      title: "Say who may ask",
      reason: open.length === 0
        ? "Every profile has a policy or needs a credential."
        : `Whoever reaches ${open.join(", ")} may ask there: no policy and no credential is needed.`,
      isDone: open.length === 0,
      path: "/ui/eab"
    },
    {
      title: "Serve clients over TLS",
      reason: "Without TLS others on the network can read and change what clients ask.",
      isDone: config.server.base_url.startsWith("https://"),
      path: "/ui/configuration"
    },
    {
      title: "Be told of failures",
      reason: "Notifications go to mail, webhooks and programs.",
      isDone: [...sectionsOf(config).values()].some(({ enabled }) => enabled.length > 0),
      path: "/ui/notifications"
    },
    {
      title: "Ask operators for a second factor",
      reason: "A stolen password alone then opens nothing.",
      isDone: config.admin.require_mfa,
      path: "/ui/account"
    }
  ]
}
