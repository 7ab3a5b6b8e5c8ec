import * as Schema from "effect/Schema"
import { orphanObject } from "../../../operations/operator/objects/OrphanedCertificate.ts"
import { list } from "../../../operations/operator/OrphanRecords.ts"
import { act, noun } from "../Act.ts"
import { paged } from "../Acting.ts"
import { ofProfile, optional, paging, word } from "../Field.ts"
import { Id, pageOf, Time } from "../schemas/Common.ts"

/* Declares the act about certificates that a signer issued although their orders ended without a certificate. */

const Status = Schema.Literals(["waiting", "revoked", "kept", "stored", "expired"])

const OrphanedCertificate = Schema.Struct({
  orderId: Id,
  profile: Schema.String,
  serial: Schema.String,
  names: Schema.Array(Schema.String),
  cause: Schema.Literals(["order_ended", "chain_rejected", "signer_failed"]),
  status: Status,
  error: Schema.optionalKey(Schema.String),
  notAfter: Time,
  foundAt: Time,
  updatedAt: Time
}).annotate({ identifier: "OrphanedCertificate" })

const listOrphanedCertificates = act({
  id: "listOrphanedCertificates",
  does: "List certificates whose order ended without them, newest first",
  access: "viewer",
  mayLag: true,
  input: {
    ...ofProfile,
    status: optional(
      word(
        Status.literals,
        "What became of the certificate: it waits for its revocation, was revoked, could not be revoked, belongs to an order, or expired."
      )
    ),
    ...paging
  },
  output: pageOf(OrphanedCertificate),
  errors: [],
  run: ({ profile, status, ...window }) => paged(window, (window) => list({ profile, status }, window), orphanObject),
  http: { route: "GET /api/orphaned-certificates" },
  cli: {
    command: "order orphaned",
    help: "List certificates whose order ended without them, and what became of them.",
    example: "order orphaned --status kept",
    columns: ({ error = "", foundAt, names, notAfter, orderId, profile, serial, status }) => ({
      order: orderId,
      profile,
      serial,
      status,
      found: foundAt,
      ends: notAfter,
      names: names.join(" "),
      error
    })
  }
})

/** The act about certificates that were issued although their orders ended without a certificate. */
export const orphanActs = noun({
  name: "orphanedCertificates",
  description: "Certificates that a signer issued for orders that ended without them.",
  commands: { order: "Orders and their certificates." },
  acts: [listOrphanedCertificates]
})
