import { sha256 } from "../../../crypto/Digest.ts"
import { keyName } from "../../../crypto/keys/KeyName.ts"
import { listMember, member, timeMember } from "../../../engine/Members.ts"
import { rfc3339 } from "../../../engine/Time.ts"
import type { AccountRecord } from "../../../store/AccountSearch.ts"
import type { AccountDetail } from "../AccountRecords.ts"

/** An account. */
export const accountObject = (account: AccountRecord) => ({
  id: account.id,
  profile: account.profile,
  status: account.status,
  ...timeMember("blockedAt", account.blockedAt),
  ...member("blockReason", account.blockReason),
  ...listMember("contact", account.contact),
  ...member("termsOfServiceAgreed", account.termsOfServiceAgreed),
  pubkeyFingerprint: sha256(account.pubkey),
  keyType: keyName(account.pubkey),
  ...member("eabKid", account.eabKid),
  createdAt: rfc3339(account.createdAt),
  ...member("createdIp", account.createdIp),
  ...member("createdPtr", account.createdPtr),
  ...timeMember("lastSeenAt", account.lastSeenAt),
  ...member("lastSeenIp", account.lastSeenIp),
  ...member("lastSeenPtr", account.lastSeenPtr)
})

/** An account, with the numbers of its orders and of its live certificates, and its recent orders. */
export const accountDetailObject = ({ account, liveCertificates, orderCount, recent }: AccountDetail) => ({
  ...accountObject(account),
  orderCount,
  liveCertificates,
  ordersInDay: recent.day,
  ordersInWeek: recent.week,
  topNames: recent.names
})
