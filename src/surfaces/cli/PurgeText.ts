import type { purgeObject, purgePreviewObject } from "../../operations/operator/objects/PurgeObject.ts"

const leftText = (left: number): string =>
  left === 0 ? "" : `\n${left} order(s) are not deleted, because the end of their certificate is not known.`

/** Renders `order purge --dry-run`, and the question before a purge. */
export const renderPreview = (found: ReturnType<typeof purgePreviewObject>): string =>
  [
    ...found.profiles.map(({ newest = "", oldest = "", orders, profile }) =>
      `${profile}: ${orders} order(s), expired from ${oldest} to ${newest}`
    ),
    `${found.orders} order(s) whose certificate expired by ${found.cutoff}.${leftText(found.left)}`
  ].join("\n")

/** Renders `order purge` for people. */
export const renderPurge = ({ authorizations, cutoff, left, orders }: ReturnType<typeof purgeObject>): string =>
  `Deleted ${orders} order(s) and ${authorizations} authorization(s) of certificates that expired by ${cutoff}.${
    leftText(left)
  }`
