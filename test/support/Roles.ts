import { declaration } from "../../src/surfaces/operator/ActDocument.ts"
import type { Route } from "../../src/surfaces/operator/ApiRoutes.ts"
import { routesOf } from "../../src/surfaces/operator/ApiRoutes.ts"
import type { Access } from "../../src/surfaces/operator/gate/OperatorChecks.ts"

/*
 * Which caller reaches which route of the API. `docs/reference/api-roles.md` shows this table, and a test sends a
 * request for each cell.
 */

/** The caller. `half` is a session that still needs its second factor. */
export const senders = [
  "nobody",
  "half",
  "viewer",
  "operator",
  "admin",
  "token viewer",
  "token operator",
  "token admin"
] as const
export type Sender = (typeof senders)[number]

/** Every route, in the order of the declaration. */
export const routes: ReadonlyArray<Route> = routesOf(declaration)

/** `yes` means that the request reaches the operation. A number is the status of a refusal. */
export type Cell = "yes" | 401 | 403

type Row = { readonly [S in Sender]: Cell }

const tokens = <C extends Cell>(viewer: C, operator: C, admin: C) =>
  ({ "token viewer": viewer, "token operator": operator, "token admin": admin }) as const

/** One row for each kind of access. A new kind without a row does not compile. */
const rows: { readonly [A in Access]: Row } = {
  public: { nobody: "yes", half: "yes", viewer: "yes", operator: "yes", admin: "yes", ...tokens("yes", "yes", "yes") },
  half: { nobody: 401, half: "yes", viewer: 401, operator: 401, admin: 401, ...tokens(403, 403, 403) },
  own: { nobody: 401, half: 401, viewer: "yes", operator: "yes", admin: "yes", ...tokens(403, 403, 403) },
  viewer: { nobody: 401, half: 401, viewer: "yes", operator: "yes", admin: "yes", ...tokens("yes", "yes", "yes") },
  operator: {
    nobody: 401,
    half: 401,
    viewer: 403,
    operator: "yes",
    admin: "yes",
    ...tokens<Cell>(403, "yes", "yes")
  },
  admin: { nobody: 401, half: 401, viewer: 403, operator: 403, admin: "yes", ...tokens<Cell>(403, 403, "yes") }
}

/**
 * Returns the result of the checks before the operation. Routes that ask for a password or begin a session are closed
 * to tokens.
 */
export const cellOf = ({ access, isStepUp, isWithoutCsrf }: Route, sender: Sender): Cell =>
  sender.startsWith("token ") && (isStepUp || isWithoutCsrf) ? 403 : rows[access][sender]
