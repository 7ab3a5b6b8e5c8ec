import * as Schema from "effect/Schema"
import { parseSerial } from "../../../crypto/x509/Serial.ts"
import { campaignStates, keyKind, keyKinds, mostSerials } from "../../../domain/Campaign.ts"
import { namePattern } from "../../../domain/CredentialScope.ts"
import { AccountId } from "../../../domain/Id.ts"
import { mapped } from "../ComposedField.ts"
import type { Field } from "../Field.ts"
import { id, name, optional, textOf, time } from "../Field.ts"
import { created, Id, Int, intOf, Time } from "../schemas/Common.ts"

/* What the acts about campaigns take and answer. */

/** Reads serial numbers. Returns the end of a sentence that says what is wrong, if anything is. */
const readSerials = (text: string): ReadonlyArray<string> | string => {
  const found = new Set<string>()
  for (const [index, line] of text.split(/[\r\n,]+/).entries()) {
    const word = line.trim()
    if (word === "" || word.startsWith("#")) continue
    const serial = parseSerial(word)
    if (serial === undefined) return `takes serial numbers in hexadecimal; line ${index + 1} is none`
    found.add(serial)
  }
  if (found.size === 0) return "takes serial numbers; there are none"
  return found.size > mostSerials ? `takes at most ${mostSerials} serial numbers` : [...found]
}

const serials: Field<ReadonlyArray<string>> = {
  ...textOf({
    description: `Serial numbers in hexadecimal, one on each line, at most ${mostSerials}.`,
    help: `File with serial numbers in hexadecimal, one on each line, at most ${mostSerials}; - is standard input.`,
    shown: "file",
    takes: "serial numbers in hexadecimal, one on each line",
    read: (text) => {
      const read = readSerials(text)
      return typeof read === "string" ? undefined : read
    }
  }),
  fault: (written) => {
    const read = typeof written === "string" ? readSerials(written) : undefined
    return typeof read === "string" ? read : undefined
  },
  isFile: true
}

/** The members that say which certificates a campaign matches. All that are given must fit. */
export const filterFields = {
  issuer: optional(
    textOf({
      description: "The id of the CA that signed the certificate, as crl list shows it.",
      shown: "hex",
      takes: "the id of a CA: 64 hexadecimal digits",
      read: (text) => /^[0-9a-f]{64}$/i.test(text.trim()) ? text.trim().toLowerCase() : undefined
    })
  ),
  profile: optional(name("The name of a profile.")),
  kind: optional(name("The name of a kind of certificates.")),
  key: optional(
    textOf({
      description: `The kind of the certificate's key: ${keyKinds}.`,
      shown: "kind",
      takes: `a kind of key: ${keyKinds}`,
      read: keyKind
    })
  ),
  kid: optional(id("The key identifier of the credential of the account.")),
  accountId: optional(mapped(id("The id of the account."), AccountId)),
  name: optional(
    textOf({
      description: "A pattern of names: host.example, *.example for one label, **.example for any depth.",
      shown: "pattern",
      takes: "a pattern such as host.example, *.example or **.example",
      read: namePattern
    })
  ),
  serials: optional(serials),
  issuedBefore: optional(
    time(
      "The order was placed before this time: an RFC 3339 time, or a day as YYYY-MM-DD, which begins at midnight UTC."
    )
  )
}

const filter = Schema.Struct({
  issuer: Schema.optionalKey(Schema.String),
  profile: Schema.optionalKey(Schema.String),
  kind: Schema.optionalKey(Schema.String),
  key: Schema.optionalKey(Schema.String),
  kid: Schema.optionalKey(Id),
  accountId: Schema.optionalKey(Id),
  name: Schema.optionalKey(Schema.String),
  issuedBefore: Schema.optionalKey(Time),
  serials: Schema.optionalKey(intOf("How many serial numbers it has."))
})

const campaign = {
  id: Id,
  state: Schema.Literals(campaignStates),
  finished: Schema.Boolean.annotate({ description: "Whether it has ended because nothing was left." }),
  filter: filter.annotate({ description: "Which certificates it matches." }),
  reason: Schema.String,
  explanationUrl: Schema.optionalKey(Schema.String),
  pace: Schema.optionalKey(intOf("Certificates an hour.")),
  startedAt: Time,
  startedBy: Schema.optionalKey(Schema.String),
  filledAt: Schema.optionalKey(
    Time.annotate({ description: "When every certificate was looked for. Before that, matched still grows." })
  ),
  windowsFrom: Schema.optionalKey(Time.annotate({ description: "When the first renewal window begins." })),
  windowsUntil: Schema.optionalKey(Time.annotate({ description: "When the last renewal window ends." })),
  revokeAt: Schema.optionalKey(Time.annotate({ description: "When what is left is revoked, if that is confirmed." })),
  revokeReason: Schema.optionalKey(Schema.String),
  confirmedAt: Schema.optionalKey(Time.annotate({ description: "When the revocation was confirmed." })),
  confirmedBy: Schema.optionalKey(Schema.String),
  pausedAt: Schema.optionalKey(Time),
  endedAt: Schema.optionalKey(Time),
  matched: Int,
  asked: intOf("For how many of them a client has asked for renewal information since."),
  replaced: Int,
  neverAsks: intOf("How many are left for which no client has asked within two polling intervals, twelve hours."),
  revoked: Int,
  expired: Int,
  remaining: intOf("How many are left: neither replaced nor revoked nor expired.")
}

/** A campaign with its counts. */
export const Campaign = Schema.Struct(campaign).annotate({ identifier: "Campaign" })

/** A campaign that was just started. */
export const StartedCampaign = Schema.Struct(campaign).annotate(created("StartedCampaign"))

/** A campaign with the samples of its chart. */
export const CampaignDetail = Schema.Struct({
  ...campaign,
  samples: Schema.Array(Schema.Struct({ at: Time, remaining: Int, asked: Int })).annotate({
    description: "How many certificates were left, and for how many a client had asked, oldest first."
  })
}).annotate({ identifier: "CampaignDetail" })

/** A certificate of a campaign for which no client asks. */
export const SilentCertificate = Schema.Struct({
  orderId: Id,
  profile: Schema.String,
  accountId: Id,
  certSerial: Schema.optionalKey(Schema.String),
  identifiers: Schema.Array(Schema.String),
  notAfter: Schema.optionalKey(Time),
  askedAt: Schema.optionalKey(Time.annotate({ description: "When a client has last asked." })),
  mailedAt: Schema.optionalKey(Time.annotate({ description: "When the contacts were written to." })),
  contact: Schema.optionalKey(Schema.Array(Schema.String)),
  lastSeenAt: Schema.optionalKey(Time.annotate({ description: "When the account last sent a signed request." })),
  lastSeenIp: Schema.optionalKey(Schema.String),
  lastSeenPtr: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "SilentCertificate" })
