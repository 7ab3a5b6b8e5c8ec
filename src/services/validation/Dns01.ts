import * as Effect from "effect/Effect"
import { isSame } from "../../crypto/Digest.ts"
import { keyAuthorizationDigest } from "../../crypto/jose/KeyAuthorization.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Resolver } from "../../engine/net/Resolver.ts"
import { noSuchName } from "../../engine/net/Resolver.ts"
import type { ChallengeAttempt } from "./Attempt.ts"
import { ChallengeRefused, unlessOwn } from "./Attempt.ts"

/** How many records of one name are compared: the zone's owner decides how many there are. */
const maxRecords = 64

/** Without the blanks and quotation marks that forms for records leave. No expected value has any. */
const bare = (record: string): string => record.replaceAll(/[\s"]/g, "")

/**
 * The dns-01 check (RFC 8555 section 8.4; docs/protocol.md, "dns-01"). It succeeds when one of the TXT records at
 * `_acme-challenge.<name>` is the digest of the key authorization, octet for octet. Only the resolver is dialled.
 */
export const makeDns01 = (resolver: Pick<Resolver["Service"], "texts">) =>
  Effect.fnUntraced(function*({ identifier, keyAuthorization }: ChallengeAttempt) {
    const wanted = Buffer.from(keyAuthorizationDigest(keyAuthorization).toString("base64url"))
    const records = yield* Effect.catch(
      resolver.texts(`_acme-challenge.${identifier}`),
      (failure) =>
        // A name that does not exist counts as a name without records. Only a missing answer leaves the question open.
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
