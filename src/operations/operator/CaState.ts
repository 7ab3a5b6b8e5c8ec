import type { Issuer } from "../../services/signing/Issuers.ts"

/**
 * How long the chain of a CA is still valid. `expiring`: the last ninety days, because most leaves are valid that long.
 * `ended`: after the expiry. What counts is the first expiry of a certificate in the chain.
 */
export const caStates = ["ok", "expiring", "ended"] as const
export type CaState = (typeof caStates)[number]

const daySeconds = 86_400
const expiringSeconds = 90 * daySeconds

/** Returns the state of a CA at an epoch second. */
export const caStateOf = ({ firstToEnd }: Pick<Issuer, "firstToEnd">, now: number): CaState =>
  firstToEnd.notAfter < now ? "ended" : firstToEnd.notAfter - now < expiringSeconds ? "expiring" : "ok"
