import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import { groupOf } from "../operator/ActDocument.ts"
import { nouns } from "../operator/Nouns.ts"
import { WithCaller } from "./CurrentCaller.ts"
import { Fitting } from "./Fitting.ts"
import * as operators from "./groups/OperatorEndpoints.ts"
import * as sessions from "./groups/SessionEndpoints.ts"

/**
 * The API of operators, declared in one place. Its routes, decoding, errors, document and typed client are made from
 * this declaration (docs/decisions/admin.md).
 */
export class Api extends HttpApi.make("acme-svc")
  .add(
    sessions.own,
    operators.operators,
    operators.tokens
  )
  .middleware(WithCaller)
  .middleware(Fitting)
  .annotate(OpenApi.Title, "acme-svc")
  .annotate(OpenApi.Description, "Operators of acme-svc read and change its records here.") {}

/** Every route of operators: the acts, and what is declared above. */
export const declaration = nouns.map(groupOf).reduce((api, group) => api.add(group) as unknown as typeof Api, Api)
