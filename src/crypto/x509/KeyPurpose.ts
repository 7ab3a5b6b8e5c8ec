/**
 * The purposes of an extendedKeyUsage that have a word in the configuration, with their OIDs (RFC 5280 section
 * 4.2.1.12).
 */
export const keyPurposes = {
  server_auth: "1.3.6.1.5.5.7.3.1",
  client_auth: "1.3.6.1.5.5.7.3.2",
  code_signing: "1.3.6.1.5.5.7.3.3",
  email_protection: "1.3.6.1.5.5.7.3.4",
  time_stamping: "1.3.6.1.5.5.7.3.8"
} as const

const words = new Map<string, string>(Object.entries(keyPurposes).map(([word, oid]) => [oid, word]))

/** Returns the OID of a purpose. The purpose is a word of {@link keyPurposes} or already an OID in dotted form. */
export const purposeOid = (purpose: string): string =>
  Object.entries(keyPurposes).find(([word]) => word === purpose)?.[1] ?? purpose

/** Returns the word for a purpose with this OID, or the OID itself if the purpose has no word. */
export const purposeWord = (oid: string): string => words.get(oid) ?? oid
