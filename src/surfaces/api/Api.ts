import * as HttpApi from "@effect/platform/HttpApi"
import * as OpenApi from "@effect/platform/OpenApi"
import { WithCaller } from "./CurrentCaller.ts"
import * as accounts from "./groups/Accounts.ts"
import { notifications } from "./groups/Notifications.ts"
import * as operators from "./groups/Operators.ts"
import * as orders from "./groups/Orders.ts"
import * as service from "./groups/Service.ts"
import * as sessions from "./groups/Sessions.ts"
import { everywhere } from "./Refusals.ts"

/**
 * The API of operators, declared in one place. Its routes, decoding, errors, document and typed client are made from
 * this declaration (docs/decisions/admin.md).
 */
export class Api extends HttpApi.make("acme-svc")
  .add(sessions.session)
  .add(sessions.own)
  .add(accounts.accounts)
  .add(accounts.eab)
  .add(orders.orders)
  .add(orders.expiring)
  .add(orders.upstreamOrders)
  .add(service.audit)
  .add(service.jobs)
  .add(notifications)
  .add(service.nonces)
  .add(service.service)
  .add(operators.operators)
  .add(operators.tokens)
  .add(service.health)
  .addError(everywhere)
  .middleware(WithCaller)
  .annotate(OpenApi.Title, "acme-svc")
  .annotate(OpenApi.Description, "Operators of acme-svc read and change its records here.") {}
