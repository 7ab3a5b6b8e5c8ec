import * as Effect from "effect/Effect"
import { alpnCertificateFault } from "../../crypto/x509/AlpnCertificate.ts"
import type { ValidationReason } from "../../domain/ValidationCause.ts"
import { emit } from "../../domain/words/Log.ts"
import { exhausted, isExhaustion } from "../../engine/host/Exhausted.ts"
import type { AlpnPeer } from "../../engine/net/AlpnPeer.ts"
import type { Resolver } from "../../engine/net/Resolver.ts"
import { lifeMillis } from "../../engine/Time.ts"
import type { ChallengeAttempt, Waiting } from "./Attempt.ts"
import { ChallengePostponed, ChallengeRefused } from "./Attempt.ts"
import { dialled, makeDial } from "./Dial.ts"

const protocol = "acme-tls/1"

/** How many names of a wrong certificate the detail lists. */
const mostNames = 10

/** How many characters of remote text a log record may contain. */
const longestText = 500

/**
 * Makes the tls-alpn-01 check (RFC 8737; docs/reference/protocol.md, "tls-alpn-01"). The check succeeds if the host of
 * the name presents the validation certificate in a handshake for `acme-tls/1`. As for http-01, the caller limits the
 * duration.
 */
export const makeTlsAlpn01 = (resolver: Pick<Resolver["Service"], "addresses">, peer: AlpnPeer["Service"]) =>
  Effect.fnUntraced(function*({ challenge, identifier, keyAuthorization }: ChallengeAttempt, waiting: Waiting) {
    const started = yield* lifeMillis
    const safe = (text: string) => text.slice(0, longestText)
    const { inTurn, resolve } = makeDial({ resolver, identifier, challenge, started, safe, waiting })
    const { port } = challenge.tls_alpn_01
    const refused = (error: "tls" | "incorrectResponse", reason: ValidationReason, detail: string) =>
      Effect.andThen(
        emit("challenge_tls_alpn_01_mismatch", { identifier, reason }),
        new ChallengeRefused({ error, reason, detail })
      )
    const shown = yield* inTurn(
      yield* resolve(identifier),
      port,
      (address, connectMillis) =>
        peer.meet({ address, port, connectMillis, name: identifier, protocol }).pipe(
          Effect.map((answer) => ({ ...answer, address })),
          Effect.catchTag(
            "TlsFailed",
            ({ code, detail }): Effect.Effect<never, ChallengeRefused | ChallengePostponed> =>
              isExhaustion(code)
                ? new ChallengePostponed({ detail: exhausted(code) })
                : refused("tls", "handshake_failed", safe(`${dialled(address, port)}: ${detail}`))
          )
        )
    )
    const at = dialled(shown.address, port)
    if (shown.protocol !== protocol) {
      return yield* refused("tls", "alpn_refused", `${at}: ${shown.protocol ?? "no protocol"} was chosen`)
    }
    if (shown.certificate === undefined) {
      return yield* refused("incorrectResponse", "certificate_absent", `${at} showed no certificate`)
    }
    const found = alpnCertificateFault(shown.certificate, { name: identifier, keyAuthorization })
    if (found !== undefined) {
      const names = found.names.length === 0 ? "" : ` is for ${found.names.slice(0, mostNames).join(", ")}`
      return yield* refused("incorrectResponse", found.fault, safe(`the certificate of ${at}${names}`))
    }
    return yield* emit("challenge_tls_alpn_01_matched", { identifier })
  })
