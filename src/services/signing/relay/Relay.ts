import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import type { Entropy } from "../../../crypto/Entropy.ts"
import type { Identifier } from "../../../domain/ProblemDocument.ts"
import type { UpdateServer } from "../../../engine/net/DnsUpdate.ts"
import { DnsUpdate } from "../../../engine/net/DnsUpdate.ts"
import type { Web } from "../../../engine/net/Web.ts"
import { currentMillis, currentSeconds, lifeMillis } from "../../../engine/Time.ts"
import { accept, alternatesOf } from "../ForeignChain.ts"
import type { IssueRequest, Relaying, RelaySigner } from "../Signer.ts"
import { CsrRejected, SigningFailed } from "../Signer.ts"
import * as AcmeClient from "./AcmeClient.ts"
import { AskedFor } from "./AskedFor.ts"
import type { Upstream } from "./Conversation.ts"
import type { RelaySettings } from "./RelaySettings.ts"
import type { Strategy } from "./Strategy.ts"
import { bypass, dns01, http01 } from "./Strategy.ts"
import type { AccountUnusable } from "./UpstreamAccount.ts"
import { accountLost, open, readKid, withoutStop } from "./UpstreamAccount.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"
import { isLimit, UpstreamRefused, UpstreamUnavailable } from "./UpstreamFailed.ts"
import { keyInForce } from "./UpstreamKey.ts"
import type { Downloaded, Wanted } from "./UpstreamOrder.ts"
import { clear, finished, fulfil, isAboutDates, leftOver } from "./UpstreamOrder.ts"
import { renewalAt } from "./UpstreamRenewal.ts"

/** Returns the octets of a secret in base64url or standard base64, padded or not. */
export const hmacKeyOf = (text: string): Uint8Array =>
  Buffer.from(text.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, ""), "base64")

/** Returns the server to which the updates of a relay's zone are sent. */
export const updateServerOf = (
  { server, tsig_algorithm, tsig_key_name, tsig_key_secret }: RelaySettings["dns01"]["rfc2136"]
): UpdateServer => {
  const colon = server.lastIndexOf(":")
  return {
    host: server.slice(0, colon).replace(/^\[(.*)\]$/, "$1"),
    port: Number(server.slice(colon + 1)),
    key: {
      name: tsig_key_name,
      algorithm: tsig_algorithm === "" ? "hmac-sha256" : tsig_algorithm,
      secret: Buffer.from(Redacted.value(tsig_key_secret), "base64")
    }
  }
}

const strategyOf = (
  settings: RelaySettings,
  updates: DnsUpdate["Service"],
  { isTakenOver, tokens }: Pick<Relaying<never>, "isTakenOver" | "tokens">
): Strategy => {
  if (settings.challenge_strategy === "bypass") return bypass
  if (settings.challenge_strategy === "http01") return http01(tokens, isTakenOver)
  const { challenge_alias, propagation, rfc2136 } = settings.dns01
  return dns01(updates, {
    zone: rfc2136.zone,
    alias: challenge_alias,
    delaySeconds: propagation.mode === "delay" ? propagation.delay_secs : 0,
    server: updateServerOf(rfc2136)
  }, isTakenOver)
}

const isAccountLost = (error: UpstreamFailed): boolean =>
  error._tag === "UpstreamRefused" && error.type === "accountDoesNotExist"

/** The parts of a request that the client chose. */
type Ordered = Pick<IssueRequest, "names" | "notBefore" | "notAfter">

/**
 * Returns the problem type of a refusal, and what the refusal says about names of the order. `malformed` is returned
 * only if it concerns a name or a date that the client chose, because this service makes all other parts of the
 * request.
 */
const whose = (
  { detail, identifier, subproblems = [], type }: UpstreamRefused,
  { names, notAfter, notBefore }: Ordered
): Pick<SigningFailed, "problemType" | "subproblems"> => {
  const isOurs = ({ value }: Identifier) => names.includes(value.toLowerCase())
  const about = subproblems.filter(({ identifier }) => isOurs(identifier))
  const isAboutName = about.length > 0 || (identifier !== undefined && isOurs(identifier)) ||
    names.some((name) => detail.toLowerCase().includes(name))
  const mayBeAboutDates = notBefore !== undefined || notAfter !== undefined
  return {
    ...(type === "malformed" && !isAboutName && !(mayBeAboutDates && isAboutDates(detail))
      ? {}
      : { problemType: type }),
    ...(about.length === 0 ? {} : { subproblems: about })
  }
}

/**
 * Returns the dates to request. A `notAfter` of the client is shortened to the latest date that the credential of the
 * account permits. If the client requested none, `latest` is that date. `now` is in epoch seconds.
 */
const permitted = (
  { notAfter, notBefore, validityBound }: Pick<IssueRequest, "notBefore" | "notAfter" | "validityBound">,
  now: number
): Pick<Wanted, "validity" | "latest"> => {
  const latest = validityBound === undefined ? undefined : now + validityBound
  return notAfter === undefined
    ? { validity: { notBefore, notAfter }, latest }
    : { validity: { notBefore, notAfter: Math.min(notAfter, latest ?? notAfter) }, latest: undefined }
}

/**
 * Returns the number of whole seconds after which the upstream may be asked again, if the upstream gave a time. One
 * second is added, because the queue counts from the start of the current second.
 */
const waitBefore = ({ retryAfter }: UpstreamUnavailable): number | undefined =>
  retryAfter === undefined ? undefined : Math.ceil(retryAfter) + 1

/** The longest wait before another attempt to revoke, in seconds. */
export const longestWait = 86_400

/**
 * Turns a failure of the upstream into a failure of signing. `left` is the time that is left for further attempts, and
 * `now` is the current time. Both are in milliseconds.
 */
const asSigning = (
  error: UpstreamFailed,
  { left, now, ordered }: { readonly left: number; readonly ordered: Ordered; readonly now: number }
): CsrRejected | SigningFailed => {
  // Most texts about failed connections have no subject.
  const detail = error._tag === "UpstreamRefused" || error.detail.startsWith("the ")
    ? error.detail
    : `the upstream: ${error.detail}`
  if (error._tag === "UpstreamRefused" && !isAccountLost(error)) {
    return error.type === "badCSR"
      ? new CsrRejected({ detail: `The upstream authority says: ${detail}` })
      : new SigningFailed({ cause: "upstream_refused", detail, ...whose(error, ordered) })
  }
  const limit = error._tag === "UpstreamUnavailable" && isLimit(error) ? { problemType: "rateLimited" } : {}
  const atLeast = error._tag === "UpstreamRefused" ? undefined : waitBefore(error)
  // At least as much time as the wait takes must be left for the next attempt, unless the upstream asks for a longer
  // wait.
  const atMost = Math.max(Math.floor(left / 2000), atLeast ?? 0)
  if (atMost >= 1 && atMost * 1000 < left) {
    return new SigningFailed({ cause: "signer_failed", detail, again: { atLeast, atMost }, ...limit })
  }
  const until = atLeast === undefined ?
    "" :
    `; it is not to be asked before ${new Date(now + atLeast * 1000).toISOString().replace(/\.\d+/, "")}`
  return new SigningFailed({
    cause: "problemType" in limit ? "upstream_refused" : "poll_timeout",
    detail: `${detail}${until}`,
    ...(atLeast === undefined ? {} : { again: { atLeast, atMost: atLeast } }),
    ...limit
  })
}

const takesNone = new UpstreamRefused({
  detail: "the upstream's directory has no revokeCert, so that it takes no revocations",
  status: undefined,
  type: "unauthorized"
})

/** The problem types with which an upstream refuses a revocation in every attempt. */
const definite: ReadonlySet<string> = new Set(["badRevocationReason", "unauthorized", "malformed"])

/** Turns a failure to revoke a certificate, or to ask about it, into a failure of signing. */
const ofCertificate = (error: UpstreamFailed): SigningFailed => {
  const { detail, type: problemType } = error
  if (error._tag === "UpstreamRefused" && definite.has(error.type)) {
    return new SigningFailed({ cause: "upstream_refused", detail, problemType: error.type })
  }
  const atLeast = error._tag === "UpstreamRefused" ? undefined : waitBefore(error)
  return new SigningFailed({
    cause: "signer_failed",
    detail,
    ...(problemType === undefined ? {} : { problemType }),
    ...(atLeast === undefined ? {} : { again: { atLeast: Math.min(atLeast, longestWait), atMost: longestWait } })
  })
}

/** Makes the client of the upstream, and opens the relay's account there. If there is no account yet, it is created. */
export const account = (
  profile: string,
  { account_key_path, contact, directory_url, eab }: Pick<
    RelaySettings,
    "account_key_path" | "contact" | "directory_url" | "eab"
  >
): Effect.Effect<{ readonly client: AcmeClient.AcmeClient; readonly kid: string }, AccountUnusable, Entropy | Web> =>
  Effect.gen(function*() {
    const found = keyInForce({ directoryUrl: directory_url, keyPath: account_key_path, profile })
    const key = yield* found
    const world = yield* Effect.context<Entropy | Web>()
    const reread = Effect.provide(Effect.orElseSucceed(found, () => key), world)
    const client = yield* AcmeClient.make(directory_url, key, profile, reread)
    const hmacKey = Redacted.value(eab.hmac_key)
    const kid = yield* open({
      client,
      profile,
      keyPath: account_key_path,
      directoryUrl: directory_url,
      contact,
      credential: hmacKey === "" ? undefined : { kid: eab.kid, hmacKey: Redacted.make(hmacKeyOf(hmacKey)) }
    })
    return { client, kid }
  })

/**
 * Makes a relay, which fulfils orders at an upstream ACME CA. The relay has an account of its own there. The account is
 * created at the first startup.
 */
export const make = (
  profile: string,
  settings: RelaySettings
): Effect.Effect<RelaySigner, AccountUnusable, Entropy | Web | DnsUpdate> =>
  Effect.gen(function*() {
    const { account_key_path, poll_interval_ms, poll_timeout_secs, revocation_reasons } = settings
    const updates = yield* DnsUpdate
    const { client, kid } = yield* account(profile, settings)
    const known = yield* Ref.make(kid)
    const noTimeLeft = (lastFailure: string | undefined) =>
      `signer.relay.poll_timeout_secs, ${poll_timeout_secs}, had passed since the first attempt when a worker ` +
      `took the order again, so that the upstream was not asked; ${
        lastFailure === undefined
          ? "the log says what delayed the workers"
          : `the attempt before ended with: ${withoutStop(lastFailure)}`
      }`
    /**
     * Handles the loss of the account, which is not the client's fault. Tells the operator. If the account was
     * registered again in the meantime, uses the new account from now on.
     */
    const named = <E>(error: UpstreamFailed | E): Effect.Effect<never, UpstreamFailed | E> => {
      if (!(error instanceof UpstreamRefused) || !isAccountLost(error)) return Effect.fail(error)
      const { detail, status, type } = error
      return readKid(account_key_path).pipe(
        Effect.flatMap((now) => now === undefined ? Effect.void : Ref.set(known, now)),
        Effect.ignore,
        Effect.andThen(AskedFor),
        Effect.flatMap((asker = profile) =>
          Effect.fail(new UpstreamRefused({ detail: accountLost(asker, account_key_path, detail), status, type }))
        )
      )
    }
    return {
      relay: <E>(
        request: IssueRequest,
        { isTakenOver, keeper, lastFailure, replaced, spentSeconds, stored, tokens, wasBegun }: Relaying<E>
      ) =>
        Effect.gen(function*() {
          const wanted: Wanted = {
            names: request.names,
            ...permitted(request, yield* currentSeconds),
            upstreamProfile: request.kind.upstream,
            replaced,
            csr: request.csr.der,
            stored,
            wasBegun,
            deadline: (yield* lifeMillis) + (poll_timeout_secs - spentSeconds) * 1000
          }
          const left = Effect.map(lifeMillis, (life) => wanted.deadline - life)
          const upstream: Upstream = {
            client,
            kid: yield* Ref.get(known),
            strategy: strategyOf(settings, updates, { isTakenOver, tokens }),
            pollMillis: poll_interval_ms
          }
          const judged = <A>(asked: Effect.Effect<A, UpstreamFailed | E>) =>
            Effect.catch(
              asked,
              (error): Effect.Effect<never, CsrRejected | SigningFailed | E> =>
                error instanceof UpstreamRefused || error instanceof UpstreamUnavailable
                  ? Effect.flatMap(
                    Effect.all([left, currentMillis]),
                    ([left, now]) => Effect.fail(asSigning(error, { left, ordered: request, now }))
                  )
                  : Effect.fail(error)
            )
          const accepted = (chain: string) => accept(`${chain.trimEnd()}\n`, request, "upstream")
          // If a download was cut off, the chain looks broken. So the download is repeated once before the order fails.
          const taken = ({ again, alternates, chain }: Downloaded) =>
            Effect.catch(accepted(chain), () => Effect.flatMap(judged(Effect.delay(again, poll_interval_ms)), accepted))
              .pipe(Effect.map((issued) => ({ ...issued, alternates: alternatesOf(issued.chain, alternates) })))
          if ((yield* left) <= 0) {
            // If the certificate already exists, it is used even after the deadline, because only this service delayed
            // the order.
            const late = yield* Effect.catchIf(
              finished(upstream, wanted, keeper),
              (error) => error instanceof UpstreamRefused || error instanceof UpstreamUnavailable,
              () => Effect.succeed(undefined)
            )
            if (late !== undefined) return yield* taken(late)
            if (stored.orderUrl !== undefined) yield* clear(upstream, request.names, stored.orderUrl)
            return yield* new SigningFailed({ cause: "poll_timeout", detail: noTimeLeft(yield* lastFailure) })
          }
          return yield* taken(yield* judged(Effect.catch(fulfil(upstream, wanted, keeper), named<E>)))
        }),
      // At a reload, the upstream may have offered a profile only since the directory was last read.
      upstreamProfiles: Effect.match(client.currentDirectory, {
        onSuccess: ({ profiles }) => profiles,
        onFailure: () => undefined
      }),
      renewal: (certificate) => Effect.mapError(renewalAt(client, certificate), ofCertificate),
      leftOver: (orderUrl) =>
        Effect.flatMap(Ref.get(known), (kid) => leftOver({ client, kid }, orderUrl)).pipe(
          Effect.catch(named<never>),
          // If the upstream does not know the order any more, there is nothing to revoke.
          Effect.catchIf(
            (error) => error._tag === "UpstreamRefused" && error.status === 404,
            () => Effect.succeed(undefined)
          ),
          Effect.mapError(ofCertificate)
        ),
      revoke: (leaf, reason) =>
        Effect.gen(function*() {
          const { revokeCert } = yield* client.directory
          if (revokeCert === undefined) return yield* takesNone
          yield* client.post("revokeCert", revokeCert, {
            certificate: Buffer.from(leaf).toString("base64url"),
            ...(reason === undefined || !revocation_reasons ? {} : { reason })
          }, { kid: yield* Ref.get(known) })
        }).pipe(
          Effect.catch(named<never>),
          // The certificate is already revoked, either by another party or by an earlier request of this service whose
          // answer was lost in a crash.
          Effect.catchIf(
            (error) => error._tag === "UpstreamRefused" && error.type === "alreadyRevoked",
            () => Effect.void
          ),
          Effect.mapError(ofCertificate)
        )
    } satisfies RelaySigner
  })
