import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { BadRequest } from "../../../domain/OperatorError.ts"
import { operatorProblemOf } from "../../../domain/OperatorProblem.ts"
import { JobId } from "../../../engine/queue/Job.ts"
import { findBySerial } from "../../../operations/operator/Serials.ts"
import { act, noun } from "../Act.ts"
import { each } from "../ComposedField.ts"
import { serial } from "../Field.ts"
import { Id } from "../schemas/Common.ts"
import type { Begun } from "./Revoking.ts"
import { begin, begunText, reason, waitingFor } from "./Revoking.ts"

/*
 * Revokes certificates by their serial numbers, because an operator who looks at a certificate sees its serial number.
 */

/** Finds the order of each serial number. If any order cannot be found, nothing is revoked. */
const ordersOf = Effect.fnUntraced(function*(serials: ReadonlyArray<string>) {
  const faults: Array<OperatorError> = []
  const found: Array<{ readonly serial: string; readonly id: string }> = []
  for (const serial of serials) {
    const sought = yield* Effect.result(findBySerial(serial))
    if (Result.isSuccess(sought)) found.push({ serial, id: sought.success.id })
    else if (sought.failure._tag === "StorageFailed" || serials.length === 1) return yield* sought.failure
    else faults.push(sought.failure)
  }
  if (faults.length === 0) return found
  const sentences = faults.map((error) => operatorProblemOf(error).message)
  return yield* new BadRequest({ detail: [...sentences, "No certificate was revoked."].join("\n") })
})

/** Revokes one certificate. A refusal or failure does not stop the revocation of the other certificates. */
const revokeOne = ({ id, serial }: { readonly id: string; readonly serial: string }, reason: number | undefined) =>
  Effect.match(begin(id, reason), {
    onSuccess: ({ isRevoked, job }) =>
      Result.succeed({ serial, orderId: id, status: isRevoked ? "revoked" as const : "queued" as const, job }),
    onFailure: (error) => {
      const { code, message } = error._tag === "StorageFailed"
        ? { code: "internal", message: error.message }
        : operatorProblemOf(error)
      return Result.fail({ serial, error: code, message })
    }
  })

const begunOf = ({ job, status }: { readonly job: string; readonly status: string }): Begun => ({
  isRevoked: status === "revoked",
  job: JobId(job)
})

const Output = Schema.Struct({
  items: Schema.Array(
    Schema.Struct({ serial: Schema.String, orderId: Id, status: Schema.Literals(["revoked", "queued"]), job: Id })
  ),
  refused: Schema.Array(Schema.Struct({ serial: Schema.String, error: Schema.String, message: Schema.String }))
})

const revokeCertificates = act({
  id: "revokeCertificates",
  does: "Revoke certificates by their serial numbers. If one of them is unknown, none is revoked",
  access: "operator",
  input: {
    serials: each(serial("The serial number of the certificate, in hexadecimal, with or without colons.")),
    reason
  },
  output: Output,
  errors: [],
  run: ({ reason, serials }) =>
    Effect.gen(function*() {
      const found = yield* ordersOf([...new Set(serials)])
      const [refused, items] = yield* Effect.map(
        Effect.forEach(found, (one) => revokeOne(one, reason)),
        (results) =>
          [
            results.flatMap((one) => Result.isFailure(one) ? [one.failure] : []),
            results.flatMap((one) => Result.isSuccess(one) ? [one.success] : [])
          ] as const
      )
      return { items, refused }
    }),
  cli: {
    command: "cert revoke",
    example: "cert revoke 4A:1B:90:C2 --reason keyCompromise --wait 10",
    args: ["serials"],
    flags: { serials: { flag: "serial" } },
    text: ({ items }) => items.map((one) => `${one.serial}: ${begunText(begunOf(one))}`).join("\n"),
    also: waitingFor(({ items }: typeof Output.Type) => items.map(begunOf)),
    faults: ({ refused }) =>
      refused.map(({ error, message, serial }) => ({
        code: error === "internal" ? 1 as const : 3 as const,
        message: `${serial}: ${message}`
      }))
  }
})

/** The acts about certificates, by their serial numbers. These acts have no route. */
export const certificateActs = noun({
  name: "certificates",
  description: "Certificates by their serial numbers.",
  commands: { cert: "Certificates by their serial numbers." },
  acts: [revokeCertificates]
})
