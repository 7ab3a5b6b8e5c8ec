import type { Detailed, FromUpstream } from "./AcmeError.ts"
import type { ProblemDocument } from "./ProblemDocument.ts"
import { acmeError } from "./ProblemDocument.ts"

/* The problems that tell a client about a refusal by an upstream. */

/**
 * The types of upstream problems that a client can fix. All other types are about the exchange between this service and
 * the upstream.
 */
export const mendableTypes: ReadonlySet<string> = new Set([
  "rejectedIdentifier",
  "unsupportedIdentifier",
  "malformed",
  "caa",
  "badPublicKey",
  "badCSR"
])

const upstreamSays = ({ subproblems = [] }: FromUpstream): Partial<ProblemDocument> =>
  subproblems.length === 0 ? {} : {
    subproblems: subproblems.map(({ detail, identifier, type }) => ({
      type: `${acmeError}${mendableTypes.has(type) ? type : "serverInternal"}`,
      detail,
      identifier
    }))
  }

/** The rows of the table of problem documents for all failures that an upstream causes. */
export const upstreamProblems = {
  UpstreamRefusedOrder: {
    type: "serverInternal",
    status: 500,
    detail: ({ detail }: FromUpstream) => `The upstream authority refused the order: ${detail}`,
    more: upstreamSays
  },
  UpstreamRateLimited: {
    type: "rateLimited",
    status: 429,
    detail: ({ detail }: FromUpstream) => `The upstream authority limits requests, and says: ${detail}`
  },
  UpstreamTooSlow: {
    type: "serverInternal",
    status: 500,
    detail: () =>
      `The authority behind this server did not issue the certificate in time; a new order may succeed, and the server's log has the reason.`
  },
  UpstreamRefusedReason: {
    type: "badRevocationReason",
    status: 400,
    detail: ({ detail }: Detailed) =>
      `The upstream authority does not take this reason; revoke for another or for none. It says: ${detail}`
  },
  UpstreamRefusedName: {
    type: "rejectedIdentifier",
    status: 403,
    detail: ({ detail }: FromUpstream) => `The upstream authority refused a name: ${detail}`,
    more: upstreamSays
  },
  UpstreamUnsupportedName: {
    type: "unsupportedIdentifier",
    status: 400,
    detail: ({ detail }: FromUpstream) => `The upstream authority certifies no such name, and says: ${detail}`,
    more: upstreamSays
  },
  UpstreamMalformedOrder: {
    type: "malformed",
    status: 400,
    detail: ({ detail }: FromUpstream) => `The upstream authority considers the order malformed, and says: ${detail}`,
    more: upstreamSays
  },
  UpstreamRefusedNames: {
    type: "compound",
    status: 403,
    detail: ({ detail }: FromUpstream) => `The upstream authority refused names, and says: ${detail}`,
    more: upstreamSays
  },
  UpstreamForbiddenByCaa: {
    type: "caa",
    status: 403,
    detail: ({ detail }: FromUpstream) =>
      `The upstream authority says that a CAA record forbids the certificate: ${detail}`,
    more: upstreamSays
  },
  UpstreamRefusedKey: {
    type: "badPublicKey",
    status: 400,
    detail: ({ detail }: FromUpstream) =>
      `The upstream authority does not take the key of the signing request, and says: ${detail}`,
    more: upstreamSays
  }
} as const
