/** The states of a certificate that was issued. A certificate that ends soon is not `valid` but `ending`. */
export const certificateStates = ["valid", "ending", "ended", "revoked"] as const
export type CertificateState = (typeof certificateStates)[number]

/** Returns the state of a certificate. `soon` is the number of seconds before its end from which it is `ending`. */
export const stateOf = (
  { certNotAfter, revokedAt }: { readonly certNotAfter: number | undefined; readonly revokedAt: number | undefined },
  now: number,
  soon: number
): CertificateState => {
  if (revokedAt !== undefined) return "revoked"
  if (certNotAfter === undefined || certNotAfter > now + soon) return "valid"
  return certNotAfter > now ? "ending" : "ended"
}
