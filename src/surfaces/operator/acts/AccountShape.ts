import * as Schema from "effect/Schema"
import type { AccountStatus } from "../../../domain/Account.ts"
import { accountState } from "../../../domain/Account.ts"
import { clientText } from "../../cli/Text.ts"
import { key } from "../Field.ts"
import { Id, Int, intOf, Time } from "../schemas/Common.ts"

/* The form of accounts in answers. */

/** The status words of an account (RFC 8555 section 7.1.6). */
const accountStatuses = ["valid", "deactivated", "revoked"] as const satisfies ReadonlyArray<AccountStatus>

const account = {
  id: Id,
  profile: Schema.String,
  status: Schema.Literals(accountStatuses),
  blockedAt: Schema.optionalKey(Time).annotateKey({
    description: "Since when an operator has blocked the account. Absent if it is not blocked."
  }),
  blockReason: Schema.optionalKey(Schema.String).annotateKey({
    description: "Why the operator has blocked the account. Its client is not told."
  }),
  contact: Schema.optionalKey(Schema.Array(Schema.String)),
  termsOfServiceAgreed: Schema.optionalKey(Schema.Boolean),
  pubkeyFingerprint: Schema.String.annotate({
    description: "The SHA-256 of the SubjectPublicKeyInfo, in hexadecimal."
  }),
  keyType: Schema.String.annotate({ examples: ["ecdsa-p256"] }),
  eabKid: Schema.optionalKey(Id),
  createdAt: Time,
  createdIp: Schema.optionalKey(Schema.String),
  createdPtr: Schema.optionalKey(Schema.String),
  lastSeenAt: Schema.optionalKey(Time),
  lastSeenIp: Schema.optionalKey(Schema.String),
  lastSeenPtr: Schema.optionalKey(Schema.String)
}

/** An account. */
export const Account = Schema.Struct(account).annotate({ identifier: "Account" })

/** An account with its orders and certificates in numbers. */
export const AccountDetail = Schema.Struct({
  ...account,
  orderCount: Int,
  liveCertificates: intOf("Certificates that are neither revoked nor expired."),
  ordersInDay: intOf("Orders of the last 24 hours."),
  ordersInWeek: intOf("Orders of the last 7 days."),
  topNames: Schema.Array(Schema.Struct({ name: Schema.String, orders: Int })).annotate({
    description:
      "The names that the newest 1000 orders of the last 7 days have most often, with the numbers of the orders."
  })
}).annotate({ identifier: "AccountDetail" })

/** The member that names an account. */
export const accountId = key("The id of the account.")
/** Returns an account in the form that a command prints. */
export const printedAccount = ({
  blockedAt,
  blockReason,
  createdAt,
  createdIp,
  createdPtr,
  eabKid,
  keyType,
  lastSeenAt,
  lastSeenIp,
  lastSeenPtr,
  pubkeyFingerprint,
  termsOfServiceAgreed,
  ...shown
}: typeof AccountDetail.Type) => ({
  id: shown.id,
  profile: shown.profile,
  status: accountState({ blockedAt, status: shown.status }),
  blocked: blockedAt,
  blockReason,
  contact: shown.contact,
  termsAgreed: termsOfServiceAgreed,
  key: `${keyType}, SHA-256 ${pubkeyFingerprint}`,
  credential: eabKid,
  created: createdAt,
  from: clientText(createdIp, createdPtr),
  lastSeen: lastSeenAt,
  lastFrom: clientText(lastSeenIp, lastSeenPtr),
  orders: shown.orderCount,
  ordersInDay: shown.ordersInDay,
  ordersInWeek: shown.ordersInWeek,
  topNames: shown.topNames.map(({ name, orders }) => `${name} (${orders})`),
  liveCertificates: shown.liveCertificates
})
