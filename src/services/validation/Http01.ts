import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { ValidationReason } from "../../domain/ValidationCause.ts"
import { emit } from "../../domain/words/Log.ts"
import type { IpAddress } from "../../engine/net/Address.ts"
import type { TlsFailed } from "../../engine/net/Connect.ts"
import type { ExchangeFailed, HttpAnswer, HttpGet } from "../../engine/net/HttpGet.ts"
import type { Resolver } from "../../engine/net/Resolver.ts"
import { lifeMillis } from "../../engine/Time.ts"
import type { ChallengeAttempt, Waiting } from "./Attempt.ts"
import { ChallengeRefused, unlessOwn, unreachable } from "./Attempt.ts"
import { dialled, makeDial } from "./Dial.ts"

const unauthorized = (reason: ValidationReason, detail: string) =>
  new ChallengeRefused({ error: "unauthorized", reason, detail })

const followed: ReadonlySet<number> = new Set([301, 302, 307, 308])

/**
 * Removes ASCII whitespace at both ends of the bytes. No other characters count as whitespace, not even a byte order
 * mark.
 */
const trim = (body: Buffer): Buffer => {
  const isSpace = (byte: number) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
  const start = body.findIndex((byte) => !isSpace(byte))
  return start === -1 ? body.subarray(0, 0) : body.subarray(start, body.findLastIndex((byte) => !isSpace(byte)) + 1)
}

/** How many characters of remote text a log record may contain. */
const longestText = 500

/** One request of an attempt. */
interface Hop {
  readonly url: string
  /** The host to resolve: a name, or an address literal in URL syntax. */
  readonly name: string
  readonly host: string
  readonly port: number
  readonly path: string
  readonly secure: boolean
}

/**
 * Reads a Location header. Returns the absolute URL without its fragment, or a failure that says why the redirect is
 * not followed. WHATWG parsing turns every notation of an IPv4 address into the usual notation, so the checked address
 * is also the dialled address.
 */
const redirectTarget = (location: string | undefined, from: string): Result.Result<URL, string> => {
  if (location === undefined || location.trim() === "") return Result.fail("no Location")
  if (/\p{Cc}|%0[ad]/iu.test(location)) return Result.fail("control characters in Location")
  if (/^(?:[a-z][a-z0-9+.-]*:)?[\\/]{2,}[^\\/?#]*@/i.test(location.trim())) return Result.fail("user in Location")
  // the URL parser of the runtime uses an older Unicode version than names do; after such a name, only an absolute
  // Location works
  const base = URL.canParse(from) ? from : undefined
  if (!URL.canParse(location, base)) return Result.fail("Location is no URL")
  const target = new URL(location, base)
  target.hash = ""
  if (target.protocol !== "http:" && target.protocol !== "https:") return Result.fail("neither http nor https")
  return target.username === "" && target.password === "" ? Result.succeed(target) : Result.fail("user in Location")
}

/**
 * Makes the http-01 check (RFC 8555 section 8.3; docs/reference/protocol.md, "http-01"). The check succeeds if the
 * served body is exactly the key authorization. The caller limits the duration of the check; here the attempt's timeout
 * only divides the time among connection attempts. An interruption ends look-ups and sockets.
 */
export const makeHttp01 = (resolver: Pick<Resolver["Service"], "addresses">, httpGet: HttpGet["Service"]) =>
  Effect.fnUntraced(function*({ challenge, identifier, keyAuthorization }: ChallengeAttempt, waiting: Waiting) {
    const settings = challenge.http_01
    const started = yield* lifeMillis
    const token = keyAuthorization.split(".", 1).join("")
    /** Returns remote text in a form for records: shortened, and without the token and the key authorization. */
    const safe = (text: string) =>
      text.replaceAll(keyAuthorization, "<key authorization>").replaceAll(token, "<token>").slice(0, longestText)

    const { inTurn, resolve } = makeDial({ resolver, identifier, challenge, started, safe, waiting })

    const load = ({ host, path, port, secure }: Hop, addresses: ReadonlyArray<IpAddress>) =>
      inTurn(addresses, port, (address, connectMillis) => {
        const failed = (reason: ValidationReason) => ({ code, detail }: TlsFailed | ExchangeFailed) =>
          Effect.fail(unlessOwn(code, unreachable(reason, safe(`${dialled(address, port)}: ${detail}`))))
        return httpGet.get({
          address,
          port,
          connectMillis,
          secure,
          host,
          path,
          maxBytes: settings.max_response_bytes
        }).pipe(
          Effect.map((answer) => ({ address, answer })),
          Effect.catchTags({ TlsFailed: failed("tls_failed"), ExchangeFailed: failed("exchange_failed") })
        )
      })

    const follow = (from: string, { location, status }: HttpAnswer, seen: ReadonlySet<string>) => {
      const stated = safe(`${status} to ${location ?? "nowhere"}`)
      if (!settings.follow_redirects) return unreachable("redirect_refused", `${stated}: redirects are off`)
      return Result.match(redirectTarget(location, from), {
        onFailure: (fault) => unreachable("redirect_refused", `${stated}: ${fault}`),
        onSuccess: ({ host, hostname, href, pathname, port: stating, protocol, search }) => {
          const secure = protocol === "https:"
          const port = stating !== "" ? Number(stating) : secure ? settings.https_port : settings.port
          if (port !== settings.port && port !== settings.https_port) {
            return unreachable("redirect_refused", `${stated}: port ${port}`)
          }
          if (seen.has(href)) return unreachable("redirect_loop", stated)
          if (seen.size > settings.max_redirects) return unreachable("redirect_limit", stated)
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
        const elapsed = (yield* lifeMillis) - started
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
      const at = { identifier, address, status, hop: seen.size - 1, body_bytes: body.length }
      if (!followed.has(status)) {
        yield* emit("challenge_http_01_loaded", at)
        return yield* judge(answer)
      }
      yield* emit("challenge_http_01_redirect", at)
      hop = yield* follow(hop.url, answer, seen)
      seen.add(hop.url)
    }
  })
