import * as Result from "effect/Result"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { CsrfFailed, InsufficientRole, MfaPending, SessionInvalid } from "../../../domain/OperatorError.ts"
import { permits } from "../../../domain/OperatorRole.ts"
import type { Request } from "../../../engine/http/Message.ts"
import { header } from "../../../engine/http/Message.ts"
import type { HalfIdentity, Identity } from "../../../operations/operator/identity/Identity.ts"
import { hasCsrfToken } from "../../../operations/operator/identity/Identity.ts"
import type { Shown } from "./Credentials.ts"

/**
 * Who may use a route (docs/contribute/decisions/admin.md, "Roles"). `public` means anyone. `half` means a session that
 * lacks its second factor. `own` means every operator, for their own account and only with a session. A role means
 * operators with this role or a higher one, with a session or a token.
 */
export type Access = "public" | "half" | "own" | "viewer" | "operator" | "admin"

/** Who may use a route, and what its requests must contain. */
export interface Guard {
  readonly access: Access
  /** Whether a request needs no CSRF token. Sign-in has no token yet, and the check of the origin protects it. */
  readonly isWithoutCsrf: boolean
  /** Whether the request must contain the caller's password. A token has no password. */
  readonly isStepUp: boolean
  /** Whether the route is a page for people. No token may use such a route. */
  readonly isForPeople?: boolean
  /** Whether the route only reads, and its answer may lack the changes of the last seconds. */
  readonly mayLag?: boolean
}

/* The checks of a request, in the order of docs/contribute/decisions/admin.md, "Order of the checks". */

/**
 * Who sent a request: an unknown client, an operator whose session lacks its second factor, an operator, or a token of
 * an operator.
 */
export type Sender = Identity | HalfIdentity | undefined

/**
 * Returns whether the state of a session fits a route. A session that lacks its second factor may use only the routes
 * of the second factor.
 */
export const stateFits = ({ access }: Guard, sender: Sender): Result.Result<void, OperatorError> => {
  if (access === "public") return Result.void
  if (sender === undefined) return Result.fail(new SessionInvalid())
  if (sender.kind === "half") return access === "half" ? Result.void : Result.fail(new MfaPending())
  return access === "half" && sender.kind === "session" ? Result.fail(new SessionInvalid()) : Result.void
}

/** Returns whether a request may change something. */
export const isChange = (method: string): boolean => method !== "GET" && method !== "HEAD"

/**
 * Checks that a change has the CSRF token of its session. A request with an API token needs no CSRF token, because no
 * browser sends an API token by itself.
 */
export const csrfFits = (
  request: Request,
  { isWithoutCsrf }: Guard,
  sender: Sender
): Result.Result<void, OperatorError> => {
  if (!isChange(request.method) || isWithoutCsrf || sender === undefined || sender.kind === "token") return Result.void
  return hasCsrfToken(sender, header(request, "x-csrf-token")) ? Result.void : Result.fail(new CsrfFailed())
}

/**
 * Returns whether the role of the sender permits the route. A token cannot be used for sign-in, for its owner's
 * account, or for a route that requires a password.
 */
export const roleFits = (
  { access, isForPeople = false, isStepUp, isWithoutCsrf }: Guard,
  sender: Sender,
  shown: Shown
): Result.Result<void, OperatorError> => {
  const isForSessions = access === "half" || access === "own" || isStepUp || isWithoutCsrf ||
    isForPeople
  if (shown.kind === "token" && isForSessions) return Result.fail(new InsufficientRole())
  if (access === "public" || access === "half" || access === "own") return Result.void
  if (sender === undefined || sender.kind === "half") return Result.fail(new SessionInvalid())
  return permits(sender.role, access) ? Result.void : Result.fail(new InsufficientRole())
}
