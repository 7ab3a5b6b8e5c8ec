import type { OrderIdentifier } from "../domain/Order.ts"
import type { ProblemDocument } from "../domain/ProblemDocument.ts"
import type { ValidationCause } from "../domain/ValidationCause.ts"
import { json } from "../engine/sql/Column.ts"

/* JSON columns that several tables share. */

const has = (value: object, name: string, type: "number" | "string"): boolean =>
  typeof (value as { readonly [name: string]: unknown })[name] === type

const isIdentifier = (value: unknown): boolean =>
  typeof value === "object" && value !== null && has(value, "type", "string") && has(value, "value", "string")

/** An identifier of an order or of an authorization. */
export const identifierColumn = json<OrderIdentifier>({ fits: isIdentifier, standIn: { type: "dns", value: "" } })

/** The identifiers of an order. */
export const identifiersColumn = json<ReadonlyArray<OrderIdentifier>>({
  fits: (value) => Array.isArray(value) && value.every(isIdentifier),
  standIn: []
})

/** A problem document. */
export const problemColumn = json<ProblemDocument>({
  fits: (value) => has(value, "status", "number") && has(value, "detail", "string"),
  standIn: { status: 500, detail: "The stored problem cannot be read." }
})

/** Why a validation failed, as shown to operators. */
export const causeColumn = json<ValidationCause>({
  fits: (value) => has(value, "reason", "string") && has(value, "detail", "string"),
  standIn: { reason: "unreadable", detail: "The stored cause cannot be read." }
})
