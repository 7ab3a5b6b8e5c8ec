import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { hmac } from "../../crypto/Digest.ts"
import type { Payload } from "../../domain/Notification.ts"
import { oneLine } from "../../engine/HiddenText.ts"
import { retryAfter } from "../../engine/net/RetryAfter.ts"
import type { Web, WebAnswer } from "../../engine/net/Web.ts"
import { decidedByHead } from "../../engine/net/Web.ts"
import { currentMillis } from "../../engine/Time.ts"
import type { Receipt } from "./Delivery.ts"
import { DeliveryRefused, unrendered } from "./Delivery.ts"
import type { Messages } from "./MessageTemplates.ts"
import type { Section } from "./NotifyRoutes.ts"

type Entry = Section["webhook"][string]

const mostAnswered = 1_048_576
const mostShown = 200

/** A part that is shorter than this may occur in an answer by chance. */
const shortestSecret = 6

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Returns the secret parts of the request, longest first. */
const secretsOf = ({ headers, signing_key, url }: Entry): ReadonlyArray<string> => {
  const { hash, pathname, search, searchParams } = new URL(Redacted.value(url))
  const parts = [
    pathname,
    `${pathname}${search}`,
    search,
    hash,
    ...pathname.split("/"),
    ...searchParams.values(),
    ...Object.values(headers).flatMap((value) => [Redacted.value(value), ...Redacted.value(value).split(" ")]),
    Redacted.value(signing_key)
  ]
  return [...new Set(parts.flatMap((part) => [part, decoded(part)]))]
    .filter((part) => part.length >= shortestSecret)
    .toSorted((one, other) => other.length - one.length)
}

/** Returns the beginning of a receiver's text, on one line, with the secrets of the request masked. */
const shown = (text: string, entry: Entry): string => {
  const masked = secretsOf(entry).reduce((left, secret) => left.replaceAll(secret, "***"), text)
  return oneLine(masked).slice(0, mostShown)
}

/** Returns the beginning of an answer. */
const wordsOf = ({ body }: WebAnswer, entry: Entry): string =>
  // More text is searched for secrets than is shown. Otherwise a secret at the end could be cut in two and overlooked.
  shown(body.subarray(0, 65_536).toString("utf8"), entry)

const isTransient = (status: number): boolean => status >= 500 || status === 408 || status === 429

const judged = (answer: WebAnswer, entry: Entry, nowMillis: number): Effect.Effect<Receipt, DeliveryRefused> => {
  const { headers, status } = answer
  const words = wordsOf(answer, entry)
  const said = words === "" ? `answered ${status}` : `answered ${status}: ${words}`
  if (status >= 200 && status < 300) return Effect.succeed({ answer: said, status })
  if (status >= 300 && status < 400) {
    return new DeliveryRefused({
      detail: `answered ${status}, a redirect, which is not followed`,
      hope: "never",
      status
    })
  }
  return new DeliveryRefused({
    detail: said,
    hope: isTransient(status) ? "retry" : "never",
    status,
    afterSeconds: status === 429 || status === 503 ? retryAfter(headers["retry-after"], nowMillis) : undefined
  })
}

/** Returns the headers of Standard Webhooks. They prove to the receiver who sent the request. */
const signature = ({ signing_key }: Entry, { delivery_id }: Payload, body: string, nowMillis: number) => {
  const key = Redacted.value(signing_key)
  if (key === "") return {}
  const timestamp = String(Math.floor(nowMillis / 1000))
  const secret = Buffer.from(key.replace(/^whsec_/, ""), "base64")
  const mac = hmac("sha256", secret, [`${delivery_id}.${timestamp}.${body}`])
  return {
    "webhook-id": delivery_id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${mac.toString("base64")}`
  }
}

const headersOf = ({ headers }: Entry) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), Redacted.value(value)]))

/** Sends one event to a webhook. Redirects are not followed, and no part of the request is shown. */
export const post = Effect.fnUntraced(function*(
  { web, messages }: { readonly web: Web["Service"]; readonly messages: Messages },
  name: string,
  entry: Entry,
  fields: Payload
): Effect.fn.Return<Receipt, DeliveryRefused> {
  const body = yield* Effect.mapError(messages.webhook(name, fields), unrendered)
  const now = yield* currentMillis
  const { method, timeout_ms, url } = entry
  const answer = yield* web.send({
    method: method.toUpperCase(),
    url: new URL(Redacted.value(url)),
    headers: { "content-type": "application/json", ...headersOf(entry), ...signature(entry, fields, body, now) },
    body,
    maxBytes: mostAnswered,
    withinMillis: timeout_ms
  }).pipe(
    // A receiver that has the event must not get it again.
    decidedByHead,
    // The detail about a refused certificate quotes the names in the certificate. The receiver chooses these names, and
    // there may be many.
    Effect.mapError(({ detail }) => new DeliveryRefused({ detail: shown(detail, entry), hope: "retry" }))
  )
  return yield* judged(answer, entry, now)
})
