import * as Context from "effect/Context"
import type { Access, Guard } from "./gate/OperatorChecks.ts"

/** Who may use an endpoint. */
export class AccessRule extends Context.Service<AccessRule, Guard>()("acme/surfaces/operator/AccessRule") {}

/**
 * States who may use an endpoint, and whether a standby may answer. The surface cannot be built if an endpoint lacks
 * this statement.
 */
export const reachedBy = (
  access: Access,
  rest: Partial<Pick<Guard, "isStepUp" | "isWithoutCsrf" | "mayLag">> = {}
): Context.Context<AccessRule> => AccessRule.context({ access, isWithoutCsrf: false, isStepUp: false, ...rest })
