import type { Noun } from "./Act.ts"
import { credentialActs } from "./acts/CredentialActs.ts"
import { nonceActs } from "./acts/NonceActs.ts"

/** Every act that operators have over the API, by what it is about. */
export const nouns = [credentialActs, nonceActs]

type ServicesOf<N> = N extends Noun<infer R> ? R : never

/** The services that the acts need. */
export type ActServices = ServicesOf<(typeof nouns)[number]>
