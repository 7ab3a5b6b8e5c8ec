import { Array, Clock, Effect, Either, Option } from "effect"
import type { IpAddress } from "../../domain/Address.ts"
import { candidates, makeAddressPolicy, maxCandidates, parseAddress } from "../../domain/Address.ts"
import type { DnsName } from "../../domain/Identifier.ts"
import { emit } from "../log/EventLog.ts"
import type { ConnectFailed, HttpAnswer, HttpGet } from "../outside/HttpGet.ts"
import type { Resolver } from "../outside/Resolver.ts"
import type { ChallengePolicy, RefusalReason } from "./Attempt.ts"
import { ChallengeRefused } from "./Attempt.ts"

/** What is to be proved: that `identifier` serves `keyAuthorization` (token, dot, thumbprint; RFC 8555 §8.1). */
export interface Http01Attempt {
  readonly type: "http-01"
  /** A base name, never a wildcard. */
  readonly identifier: DnsName
  readonly keyAuthorization: string
  readonly challenge: ChallengePolicy
}

const connection = (reason: RefusalReason, detail: string) =>
  new ChallengeRefused({ error: "connection", reason, detail })
const unauthorized = (reason: RefusalReason, detail: string) =>
  new ChallengeRefused({ error: "unauthorized", reason, detail })

const followed: ReadonlySet<number> = new Set([301, 302, 307, 308])

/** Drops ASCII whitespace at both ends of the bytes; nothing else counts as whitespace, byte order marks included. */
const trim = (body: Buffer): Buffer => {
  const isSpace = (byte: number) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
  const start = body.findIndex((byte) => !isSpace(byte))
  return start === -1 ? body.subarray(0, 0) : body.subarray(start, body.findLastIndex((byte) => !isSpace(byte)) + 1)
}

/** Characters of remote text a record keeps. */
const longestText = 500

/** One request of an attempt. */
interface Hop {
  readonly url: string
  /** What is resolved: a name, or an address literal as URLs write it. */
  readonly name: string
  readonly host: string
  readonly port: number
  readonly path: string
  readonly secure: boolean
}

/**
 * The absolute URL of a Location header, its fragment dropped, or why it is not followed. WHATWG parsing makes an IPv4
 * address of every number that stands for one, so that the literal checked is the one dialled.
 */
const redirectTarget = (location: string | undefined, from: string): Either.Either<URL, string> => {
  if (location === undefined || location.trim() === "") return Either.left("no Location")
  if (/\p{Cc}|%0[ad]/iu.test(location)) return Either.left("control characters in Location")
  if (/^(?:[a-z][a-z0-9+.-]*:)?[\\/]{2,}[^\\/?#]*@/i.test(location.trim())) return Either.left("user in Location")
  // the runtime's URL knows an older Unicode than names do; behind such a name an absolute Location still works
  const base = URL.canParse(from) ? from : undefined
  if (!URL.canParse(location, base)) return Either.left("Location is no URL")
  const target = new URL(location, base)
  target.hash = ""
  if (target.protocol !== "http:" && target.protocol !== "https:") return Either.left("neither http nor https")
  return target.username === "" && target.password === "" ? Either.right(target) : Either.left("user in Location")
}

/**
 * The http-01 check (RFC 8555 §8.3; `protocol.md`, "Addresses" and "Verdicts"). Succeeds when the body served is the
 * key authorization, byte for byte. Bounded by the caller; the attempt's own timeout only shares out the connection
 * attempts. Interruption ends look-ups and sockets.
 */
export const makeHttp01 = (resolver: Resolver["Type"], httpGet: HttpGet["Type"]) =>
  Effect.fnUntraced(function*({ challenge, identifier, keyAuthorization }: Http01Attempt) {
    const settings = challenge.http_01
    const started = yield* Clock.currentTimeMillis
    const deadline = started + challenge.timeout_ms
    const policy = makeAddressPolicy({ denied: challenge.denied_addresses, allowed: challenge.allowed_addresses })
    const token = keyAuthorization.split(".", 1).join("")
    /** Remote text as a record may hold it: cut, and without what was to be proved. */
    const safe = (text: string) =>
      text.replaceAll(keyAuthorization, "<key authorization>").replaceAll(token, "<token>").slice(0, longestText)

    const resolve = Effect.fnUntraced(function*(host: string) {
      const literal = parseAddress(host.replace(/^\[(.*)\]$/, "$1"))
      const addresses = Option.isSome(literal) ? [literal.value] : yield* resolver.addresses(host).pipe(
        Effect.mapError(({ code }) => connection("resolve_failed", safe(`${host}: ${code}`)))
      )
      if (addresses.length === 0) return yield* connection("no_address", safe(`${host} has no address`))
      const [denied, passed] = Array.partitionMap(Array.dedupe(addresses), (address) => {
        const rule = policy.check(address)
        return rule === undefined ? Either.right(address) : Either.left({ address, rule })
      })
      // as many records as there could be connections: the zone's owner decides how long the list is
      yield* Effect.forEach(
        denied.slice(0, maxCandidates),
        ({ address, rule }) => emit("challenge_address_denied", { identifier, address, rule }),
        { discard: true }
      )
      if (passed.length === 0) return yield* connection("address_denied", safe(`every address of ${host} is denied`))
      return candidates(passed)
    })

    const load = Effect.fnUntraced(function*({ host, path, port, secure }: Hop, addresses: ReadonlyArray<IpAddress>) {
      const failures: Array<string> = []
      for (const [at, address] of addresses.entries()) {
        const left = addresses.length - at
        const now = yield* Clock.currentTimeMillis
        const answer = yield* httpGet.get({
          address,
          port,
          connectMillis: left === 1 ? undefined : Math.max(1, Math.floor((deadline - now) / left)),
          secure,
          host,
          path,
          maxBytes: settings.max_response_bytes
        }).pipe(
          Effect.map((answer) => Either.right({ address, answer })),
          Effect.catchTags({
            ConnectFailed: (failure) => Effect.succeed(Either.left<ConnectFailed>(failure)),
            TlsFailed: ({ detail }) => connection("tls_failed", safe(`${address}: ${detail}`)),
            ExchangeFailed: ({ detail }) => connection("exchange_failed", safe(`${address}: ${detail}`))
          })
        )
        if (Either.isRight(answer)) return answer.right
        failures.push(`${address}: ${answer.left.detail}`)
      }
      return yield* connection("connect_failed", safe(failures.join("; ")))
    })

    const follow = (from: string, { location, status }: HttpAnswer, seen: ReadonlySet<string>) => {
      const stated = safe(`${status} to ${location ?? "nowhere"}`)
      if (!settings.follow_redirects) return connection("redirect_refused", `${stated}: redirects are off`)
      return Either.match(redirectTarget(location, from), {
        onLeft: (fault) => connection("redirect_refused", `${stated}: ${fault}`),
        onRight: ({ host, hostname, href, pathname, port: stating, protocol, search }) => {
          const secure = protocol === "https:"
          const port = stating !== "" ? Number(stating) : secure ? settings.https_port : settings.port
          if (port !== settings.port && port !== settings.https_port) {
            return connection("redirect_refused", `${stated}: port ${port}`)
          }
          if (seen.has(href)) return connection("redirect_loop", stated)
          if (seen.size > settings.max_redirects) return connection("redirect_limit", stated)
          return Effect.succeed<Hop>({ url: href, name: hostname, host, port, path: `${pathname}${search}`, secure })
        }
      })
    }

    const judge = Effect.fnUntraced(function*({ body, status, truncated }: HttpAnswer) {
      const fault = status !== 200
        ? unauthorized("status", `status ${status}`)
        : truncated
        ? unauthorized("body_too_large", `more than ${settings.max_response_bytes} bytes`)
        : trim(body).equals(Buffer.from(keyAuthorization))
        ? undefined
        : unauthorized("body_mismatch", `${body.length} bytes, not the key authorization`)
      if (fault === undefined) {
        const elapsed = (yield* Clock.currentTimeMillis) - started
        return yield* emit("challenge_http_01_matched", { identifier, elapsed_ms: elapsed })
      }
      yield* emit("challenge_http_01_mismatch", { identifier, status, body_bytes: body.length })
      yield* emit("challenge_http_01_mismatch_body", { identifier, body_preview: safe(body.toString("utf8")) })
      return yield* fault
    })

    const path = `/.well-known/acme-challenge/${token}`
    const authority = settings.port === 80 ? identifier : `${identifier}:${settings.port}`
    let hop: Hop = {
      url: `http://${authority}${path}`,
      name: identifier,
      host: identifier,
      port: settings.port,
      path,
      secure: false
    }
    const seen = new Set([hop.url])
    while (true) {
      const { address, answer } = yield* load(hop, yield* resolve(hop.name))
      const { body, status } = answer
      const at = { identifier, address, status, hop: seen.size - 1 }
      if (!followed.has(status)) {
        yield* emit("challenge_http_01_loaded", { ...at, body_bytes: body.length })
        return yield* judge(answer)
      }
      yield* emit("challenge_http_01_redirect", at)
      hop = yield* follow(hop.url, answer, seen)
      seen.add(hop.url)
    }
  })
