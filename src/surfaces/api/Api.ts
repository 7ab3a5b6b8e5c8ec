import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import { WithCaller } from "./CurrentCaller.ts"
import { Fitting } from "./Fitting.ts"
import * as accounts from "./groups/AccountEndpoints.ts"
import { notifications } from "./groups/NotificationEndpoints.ts"
import * as operators from "./groups/OperatorEndpoints.ts"
import * as orders from "./groups/OrderEndpoints.ts"
import * as service from "./groups/ServiceEndpoints.ts"
import * as sessions from "./groups/SessionEndpoints.ts"

/**
 * The API of operators, declared in one place. Its routes, decoding, errors, document and typed client are made from
 * this declaration (docs/decisions/admin.md).
 */
export class Api extends HttpApi.make("acme-svc")
  .add(
    sessions.session,
    sessions.own,
    accounts.accounts,
    accounts.eab,
    orders.orders,
    orders.expiring,
    orders.upstreamOrders,
    orders.orphanedCertificates,
    service.audit,
    service.jobs,
    notifications,
    service.nonces,
    service.service,
    operators.operators,
    operators.tokens,
    service.health
  )
  .middleware(WithCaller)
  .middleware(Fitting)
  .annotate(OpenApi.Title, "acme-svc")
  .annotate(OpenApi.Description, "Operators of acme-svc read and change its records here.") {}
