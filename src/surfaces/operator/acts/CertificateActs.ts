import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { certificateStates } from "../../../domain/CertificateState.ts"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { BadRequest } from "../../../domain/OperatorError.ts"
import { operatorProblemOf } from "../../../domain/OperatorProblem.ts"
import { JobId } from "../../../engine/queue/Job.ts"
import * as certificates from "../../../operations/operator/CertificateRecords.ts"
import { certificateSorts } from "../../../operations/operator/CertificateRecords.ts"
import { certificateObject } from "../../../operations/operator/Objects.ts"
import * as orders from "../../../operations/operator/OrderRecords.ts"
import { findBySerial } from "../../../operations/operator/Serials.ts"
import { act, noun } from "../Act.ts"
import { Configured, paged } from "../Acting.ts"
import { each } from "../ComposedField.ts"
import type { InputOf } from "../Field.ts"
import { ofProfile, optional, paging, serial, time, word } from "../Field.ts"
import { Id, walkedPageOf } from "../schemas/Common.ts"
import { IssuedCertificate } from "../schemas/OrderSchemas.ts"
import { byName, ofAccount, oneNameFits } from "./OrderFilters.ts"
import type { Begun } from "./Revoking.ts"
import { begin, begunText, reason, waitingFor } from "./Revoking.ts"

/*
 * Declares the acts about certificates. They are revoked by their serial numbers, because an operator who looks at a
 * certificate sees its serial number.
 */

const filters = {
  ...ofProfile,
  ...ofAccount,
  state: optional(
    word(
      certificateStates,
      "The state of the certificate. ending means that it ends within notify.expiry.lead_days, or within 30 days if that key is 0. ended means that it ended and was not revoked.",
      "The state of the certificate: valid, ending (within notify.expiry.lead_days), ended, or revoked."
    )
  ),
  ...byName("certificates"),
  endsAfter: optional(
    time("Certificates that end from this time on: an RFC 3339 time, or a day as YYYY-MM-DD.", {
      help: "Only certificates that end from this time on."
    })
  ),
  endsBefore: optional(
    time("Certificates that end before this time.", { help: "Only certificates that end before this time." })
  ),
  sort: optional(
    word(
      certificateSorts,
      "The order: newest (ordered last), soonest (ends first) or latest (ends last). The default is newest. For the states valid and ending and for ends it is soonest, and for ended it is latest, unless there is a filter for an account, a kind, a name or a serial number. With such a filter, only newest is possible."
    )
  )
}

/** Refuses filters that do not fit together. */
const filtersFit = ({ sort, ...given }: InputOf<typeof filters>) =>
  oneNameFits(
    given,
    given.endsAfter !== undefined && given.endsBefore !== undefined && given.endsBefore <= given.endsAfter
      ? new BadRequest({ detail: "endsBefore takes a time after that of endsAfter." })
      : certificates.checkSort(given, sort)
  )

/** Lists certificates. */
export const listCertificates = act({
  id: "listCertificates",
  does: "List certificates",
  access: "viewer",
  mayLag: true,
  input: { ...filters, ...paging },
  output: walkedPageOf(IssuedCertificate),
  errors: ["conflicting_identifier_filter"],
  fits: filtersFit,
  run: Effect.fnUntraced(function*({ limit, offset, ...filters }) {
    const config = yield* Configured.config
    yield* orders.checkKind(config, filters.kind)
    return yield* paged(
      { limit, offset },
      (window) => certificates.list(config, filters, window),
      certificateObject
    )
  }),
  http: { route: "GET /api/certificates" },
  cli: {
    command: "cert list",
    help: "List certificates, by default those that were ordered last first.",
    example: "cert list --state ending --profile web",
    columns: ({ accountId, accountLabel, certSerial, identifiers, kind, notAfter, profile, replacedBy, state }) => ({
      names: identifiers.join(" "),
      kind,
      ends: notAfter ?? "",
      state: replacedBy === undefined ? state : `${state}, replaced`,
      account: accountLabel ?? accountId,
      profile,
      serial: certSerial ?? ""
    }),
    needsConfig: () => true,
    remark: ({ truncated }) =>
      truncated === true ? "The search ended early; narrow it by account or profile." : undefined
  }
})

/** The highest number of certificates that are revoked at once. */
export const mostRevoked = 1000

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

/** Revokes certificates. */
export const revokeCertificates = act({
  id: "revokeCertificates",
  does: "Revoke certificates by their serial numbers. If one of them is unknown, none is revoked",
  access: "operator",
  input: {
    serials: each(
      serial(`The serial number of the certificate, in hexadecimal, with or without colons. At most ${mostRevoked}.`),
      mostRevoked
    ),
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
  http: { route: "POST /api/certificates/revoke" },
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

/** The acts about certificates. */
export const certificateActs = noun({
  name: "certificates",
  description: "Certificates.",
  commands: { cert: "Certificates." },
  acts: [listCertificates, revokeCertificates]
})
