import * as acme from "acme-client"
import type { Http01Responder } from "./Http01Responder.ts"

/** Returns a client of npm's acme-client with a key of its own. The client polls again after this many milliseconds. */
export const acmeClient = async (
  directoryUrl: string,
  options: Partial<acme.ClientOptions> = {}
): Promise<acme.Client> =>
  new acme.Client({
    directoryUrl,
    accountKey: await acme.crypto.createPrivateEcdsaKey("P-256"),
    backoffAttempts: 60,
    backoffMin: 50,
    backoffMax: 500,
    ...options
  })

/**
 * Returns a certificate that acme-client got by http-01, with its key. Without a responder, nothing answers the
 * challenge.
 */
export const issueByHttp01 = async (
  client: acme.Client,
  responder: Http01Responder | undefined,
  names: ReadonlyArray<string>
): Promise<{ readonly chain: string; readonly key: Buffer }> => {
  const [first = ""] = names
  const [key, csr] = await acme.crypto.createCsr({ commonName: first, altNames: [...names] })
  const chain = await client.auto({
    csr,
    termsOfServiceAgreed: true,
    // The client's own check would resolve the name with the system's resolver.
    skipChallengeVerification: true,
    challengePriority: ["http-01"],
    challengeCreateFn: (_authorization, challenge, keyAuthorization) => {
      responder?.tokens.set(challenge.token, keyAuthorization)
      return Promise.resolve()
    },
    challengeRemoveFn: (_authorization, challenge) => {
      responder?.tokens.delete(challenge.token)
      return Promise.resolve()
    }
  })
  return { chain, key }
}
