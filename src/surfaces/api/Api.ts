import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import { WithCaller } from "./CurrentCaller.ts"
import { Fitting } from "./Fitting.ts"
import * as accounts from "./groups/Accounts.ts"
import { notifications } from "./groups/Notifications.ts"
import * as operators from "./groups/Operators.ts"
import * as orders from "./groups/Orders.ts"
import * as service from "./groups/Service.ts"
import * as sessions from "./groups/Sessions.ts"

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
