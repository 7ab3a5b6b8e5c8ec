import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { largestNumber } from "../../../crypto/x509/RevocationList.ts"
import { NumberNotAbove } from "../../../domain/OperatorError.ts"
import * as crls from "../../../operations/operator/CrlRecords.ts"
import { act, noun } from "../Act.ts"
import { ActingAtKeyboard } from "../Acting.ts"
import { key, serial, whole } from "../Field.ts"
import { Int } from "../schemas/Common.ts"
import { reason } from "./Revoking.ts"

/* Declares the acts that change revocation lists after a restore. These acts exist only as commands. */

const issuer = key("The CA's id, as crl list shows it.")

const raiseNumber = act({
  id: "raiseCrlNumber",
  does: "Raise the number of a revocation list after a restore",
  access: "admin",
  input: {
    issuer,
    above: whole("A number that clients may have seen.", { least: 0, most: largestNumber })
  },
  output: Schema.Struct({ issuer: Schema.String, before: Int, after: Int }),
  errors: ["number_not_above"],
  run: ({ above, issuer }) => Effect.flatMap(ActingAtKeyboard, (operator) => crls.raise(operator, issuer, above)),
  cli: {
    command: "crl raise",
    example: "crl raise ISSUER --above 41",
    args: ["issuer"],
    confirm: ({ above, issuer }) =>
      Effect.gen(function*() {
        const { crlNumber } = yield* crls.find(issuer)
        if (above <= crlNumber) return yield* new NumberNotAbove({ current: crlNumber })
        return `Raise the number of the revocation list from ${crlNumber} to ${above}? This cannot be undone.`
      }),
    text: ({ after, before }) => `Raised from ${before} to ${after}; the next list has a higher number.`
  }
})

const revokeUnknown = act({
  id: "revokeUnknownCertificate",
  does: "Revoke a certificate that no order has, after a restore",
  access: "admin",
  input: {
    issuer,
    serial: serial("The serial number of the certificate, in hexadecimal, with or without colons."),
    reason
  },
  output: Schema.Struct({ issuer: Schema.String, serial: Schema.String }),
  errors: ["already_revoked", "issuer_stopped"],
  run: ({ issuer, reason, serial }) =>
    Effect.gen(function*() {
      yield* crls.revokeUnknown(yield* ActingAtKeyboard, issuer, serial, reason)
      return { issuer, serial }
    }),
  cli: {
    command: "crl revoke",
    example: "crl revoke ISSUER SERIAL",
    args: ["issuer", "serial"],
    confirm: ({ serial }) =>
      Effect.succeed(`Put certificate ${serial} on the revocation list for good? No order here has it.`),
    text: ({ serial }) => `Certificate ${serial} is revoked; the next list names it.`
  }
})

/** The acts that change revocation lists after a restore. */
export const crlActs = noun({
  name: "crl",
  description: "Revocation lists of the local CAs.",
  commands: { crl: "Revocation lists of the local CAs." },
  acts: [raiseNumber, revokeUnknown]
})
