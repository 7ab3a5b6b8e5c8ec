import type { accountDetailObject, accountObject } from "../../operations/objects/AccountObjects.ts"
import { renderDetail } from "./Detail.ts"
import type { Rendered } from "./Rendered.ts"
import { clientText } from "./Text.ts"
import { renderTable } from "./TextTable.ts"

/** `account list` for people. */
export const renderAccounts = (items: ReadonlyArray<ReturnType<typeof accountObject>>, total: number): Rendered =>
  renderTable(
    ["id", "profile", "status", "created", "last seen", "contact"],
    items.map(({ contact = [], createdAt, id, lastSeenAt = "", profile, status }) => [
      id,
      profile,
      status,
      createdAt,
      lastSeenAt,
      contact.join(" ")
    ]),
    total
  )

/** `account show` for people. */
export const renderAccount = (account: ReturnType<typeof accountDetailObject>): Rendered =>
  renderDetail({
    id: account.id,
    profile: account.profile,
    status: account.status,
    contact: account.contact,
    termsAgreed: account.termsOfServiceAgreed,
    key: `${account.keyType}, SHA-256 ${account.pubkeyFingerprint}`,
    credential: account.eabKid,
    created: account.createdAt,
    from: clientText(account.createdIp, account.createdPtr),
    lastSeen: account.lastSeenAt,
    lastFrom: clientText(account.lastSeenIp, account.lastSeenPtr),
    orders: account.orderCount,
    liveCertificates: account.liveCertificates
  })
