import type { Issuer } from "../../services/signing/Issuers.ts"

/**
 * How long the chain of a CA still lasts: `expiring` in its last ninety days, which is as long as most leaves are
 * valid, and `ended` after them. The certificate of the chain that expires first counts.
 */
export const caStates = ["ok", "expiring", "ended"] as const
export type CaState = (typeof caStates)[number]

const daySeconds = 86_400
const expiringSeconds = 90 * daySeconds

/** The state of a CA at a time in epoch seconds. */
export const caStateOf = ({ firstToEnd }: Pick<Issuer, "firstToEnd">, now: number): CaState =>
  firstToEnd.notAfter < now ? "ended" : firstToEnd.notAfter - now < expiringSeconds ? "expiring" : "ok"
