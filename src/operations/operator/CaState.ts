import type { Issuer } from "../../services/signing/Issuers.ts"

/**
 * How long the chain of a CA is still valid: `expiring` in its last ninety days, which is the validity of most leaves,
 * and `ended` after its expiry. The certificate of the chain that expires first counts.
 */
export const caStates = ["ok", "expiring", "ended"] as const
export type CaState = (typeof caStates)[number]

const daySeconds = 86_400
const expiringSeconds = 90 * daySeconds

/** Returns the state of a CA at an epoch second. */
export const caStateOf = ({ firstToEnd }: Pick<Issuer, "firstToEnd">, now: number): CaState =>
  firstToEnd.notAfter < now ? "ended" : firstToEnd.notAfter - now < expiringSeconds ? "expiring" : "ok"
