import type { Issuer } from "../../services/signing/Issuers.ts"

/**
 * Whether the chain of a CA is still valid. `expiring` means the last ninety days, because most leaves are valid that
 * long. `ended` means that a certificate of the chain has expired. The certificate that expires first counts.
 */
export const caStates = ["ok", "expiring", "ended"] as const
export type CaState = (typeof caStates)[number]

const daySeconds = 86_400
const expiringSeconds = 90 * daySeconds

/** Returns the state of a CA at an epoch second. */
export const caStateOf = ({ firstToEnd }: Pick<Issuer, "firstToEnd">, now: number): CaState =>
  firstToEnd.notAfter < now ? "ended" : firstToEnd.notAfter - now < expiringSeconds ? "expiring" : "ok"
