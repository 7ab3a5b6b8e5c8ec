import type { OrderId } from "../../domain/Id.ts"
import { name, uuid } from "../../engine/sql/Column.ts"
import { first } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/* Finds the order to which an authorization or a challenge belongs. */

const order = { orderId: uuid<OrderId>(), profile: name() }

const ofAuthorization = statement({
  name: "order_of_authorization",
  params: { id: uuid() },
  row: order,
  sql: () =>
    `SELECT o.id AS "orderId", o.profile AS "profile"
     FROM authorizations a JOIN orders o ON o.id = a.order_id WHERE a.id = :id`
})

const ofChallenge = statement({
  name: "order_of_challenge",
  params: { id: uuid() },
  row: order,
  sql: () =>
    `SELECT o.id AS "orderId", o.profile AS "profile" FROM challenges c
       JOIN authorizations a ON a.id = c.authz_id JOIN orders o ON o.id = a.order_id WHERE c.id = :id`
})

/** Finds the order of an authorization. */
export const findByAuthorization = (id: string) => first(ofAuthorization, { id })

/** Finds the order of a challenge. */
export const findByChallenge = (id: string) => first(ofChallenge, { id })
