/* Which of the CAs of a profile issues (docs/contribute/decisions/rotation.md). */

/** The states that the configuration gives to a CA in addition to the CA that issues. */
export const otherStates = ["retired", "waiting"] as const
export type OtherState = (typeof otherStates)[number]

/** The text in a configured URL that stands for the id of a CA. */
export const issuerMark = "{issuer}"

/** A CA and the epoch second from which it issues: `undefined` if it does not issue any more. */
export interface Timed {
  readonly from: number | undefined
}

/** Returns the CA that issues at an epoch second: the one whose time has come last. */
export const issuingAt = <A extends Timed>(cas: ReadonlyArray<A>, now: number): A | undefined => {
  let issuing: A | undefined
  for (const ca of cas) {
    if (ca.from !== undefined && ca.from <= now && (issuing?.from === undefined || ca.from >= issuing.from)) {
      issuing = ca
    }
  }
  return issuing
}

/** Returns what the configuration and the time say about one of several CAs at an epoch second. */
export const stateAt = <A extends Timed>(
  ca: A,
  cas: ReadonlyArray<A>,
  now: number
): "waiting" | "issuing" | "retired" =>
  ca.from !== undefined && ca.from > now ? "waiting" : issuingAt(cas, now) === ca ? "issuing" : "retired"
