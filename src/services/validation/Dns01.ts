import * as Effect from "effect/Effect"
import { isSame } from "../../crypto/Digest.ts"
import { keyAuthorizationDigest } from "../../crypto/jose/KeyAuthorization.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Resolver } from "../../engine/net/Resolver.ts"
import { noSuchName } from "../../engine/net/Resolver.ts"
import type { ChallengeAttempt } from "./Attempt.ts"
import { ChallengeRefused, unlessOwn } from "./Attempt.ts"

/**
 * How many records of one name are compared. The owner of the zone decides how many exist, so there must be a limit.
 */
const maxRecords = 64

/**
 * Removes the blanks and quotation marks that a web form may leave in a record. No expected value contains any of these
 * characters.
 */
const bare = (record: string): string => record.replaceAll(/[\s"]/g, "")

/**
 * Makes the dns-01 check (RFC 8555 section 8.4; docs/reference/protocol.md, "dns-01"). The check succeeds if one of the
 * TXT records at `_acme-challenge.<name>` is exactly the digest of the key authorization. Only the resolver is dialled.
 */
export const makeDns01 = (resolver: Pick<Resolver["Service"], "texts">) =>
  Effect.fnUntraced(function*({ identifier, keyAuthorization }: ChallengeAttempt) {
    const wanted = Buffer.from(keyAuthorizationDigest(keyAuthorization).toString("base64url"))
    const records = yield* Effect.catch(
      resolver.texts(`_acme-challenge.${identifier}`),
      (failure) =>
        // A name that does not exist counts as a name without records. Any other failure means that no answer came.
        noSuchName(failure) ? Effect.succeed([]) : Effect.fail(unlessOwn(
          failure.code,
          new ChallengeRefused({ error: "dns", reason: "resolve_failed", detail: `${failure.name}: ${failure.code}` })
        ))
    )
    const answers = records.length
    const compared = records.slice(0, maxRecords)
    const matches = compared.filter((record) => isSame(Buffer.from(record), wanted))
    if (matches.length > 0) return yield* emit("challenge_dns_01_matched", { identifier, answers })
    yield* emit("challenge_dns_01_mismatch", { identifier, answers })
    const hasBlanks = compared.some((record) => isSame(Buffer.from(bare(record)), wanted))
    return yield* new ChallengeRefused({
      error: "incorrectResponse",
      reason: answers === 0 ? "txt_absent" : hasBlanks ? "txt_blanks" : "txt_mismatch",
      detail: answers === 0
        ? `no TXT record at _acme-challenge.${identifier}`
        : hasBlanks
        ? `a TXT record at _acme-challenge.${identifier} has blanks or quotation marks around the expected value`
        : `none of ${
          answers > maxRecords ? `the first ${maxRecords} of ` : ""
        }${answers} TXT records at _acme-challenge.${identifier}`,
      answers,
      compared: compared.length,
      hasBlanks
    })
  })
