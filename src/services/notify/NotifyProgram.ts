import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Payload } from "../../domain/Notification.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Scripts } from "../../engine/host/Scripts.ts"
import { longestVariable, wordsOf } from "../../engine/host/Scripts.ts"
import type { Receipt } from "./Delivery.ts"
import { DeliveryRefused } from "./Delivery.ts"
import type { Section } from "./NotifyRoutes.ts"

type Entry = Section["custom"][string]

const mostOutput = 65_536

const hasSerial = new Set(["certificate_issued", "certificate_revoked"])

const text = (value: unknown): string => typeof value === "string" ? value : Array.isArray(value) ? value.join(",") : ""

/**
 * Returns the variables for a program. All variables are set for every event. If the event lacks a member, its variable
 * is empty.
 */
const variables = (fields: Payload) => {
  const { account_id, cert_serial, client_ip, hook, identifiers, order_id, profile } = fields
  const isDigest = hook === "certificates_expiring"
  const of = (value: unknown) => isDigest ? "" : text(value)
  return {
    ACME_NOTIFY_HOOK: hook,
    ACME_NOTIFY_PROFILE: profile,
    ACME_NOTIFY_CLIENT_IP: of(client_ip),
    ACME_NOTIFY_ACCOUNT_ID: of(account_id),
    ACME_NOTIFY_ORDER_ID: of(order_id),
    ACME_NOTIFY_CERT_SERIAL: hasSerial.has(hook) ? of(cert_serial) : "",
    ACME_NOTIFY_IDENTIFIERS: hook === "certificate_issued" ? of(identifiers) : ""
  }
}

/**
 * Leaves the names out of the variables if they are too long for a variable. The program's standard input always
 * contains them.
 */
const passable = Effect.fnUntraced(function*(name: string, fields: Payload) {
  const all = variables(fields)
  if (Buffer.byteLength(all.ACME_NOTIFY_IDENTIFIERS) <= longestVariable) return all
  const { delivery_id, hook, identifiers, profile } = fields
  yield* emit("notify_names_omitted", {
    profile,
    entry: name,
    hook,
    delivery_id,
    total: Array.isArray(identifiers) ? identifiers.length : 0
  })
  return { ...all, ACME_NOTIFY_IDENTIFIERS: "" }
})

/**
 * Runs a program for one event. If the program ran and then failed or timed out, it may have done its work. So it runs
 * again only if its entry allows that. A program that could not be started is tried again.
 */
export const run = Effect.fnUntraced(function*(
  scripts: Scripts["Service"],
  name: string,
  { args, retry, script_path, timeout_ms }: Entry,
  fields: Payload
): Effect.fn.Return<Receipt, DeliveryRefused> {
  const onFailure = retry ? "retry" : "never"
  const env = yield* passable(name, fields)
  const ended = yield* Effect.mapError(
    scripts.run({
      path: script_path,
      args: Redacted.value(args),
      env,
      stdin: JSON.stringify(fields),
      timeoutMillis: timeout_ms,
      maxOutputBytes: mostOutput,
      discardsRest: true,
      turns: undefined
    }),
    ({ detail, reason }) => new DeliveryRefused({ detail, hope: reason === "not_started" ? "retry" : onFailure })
  )
  const words = wordsOf(ended)
  const said = `exit ${ended.exit}${words === undefined ? "" : `: ${words}`}`
  if (ended.exit === 0) return { answer: said }
  const exitCode = typeof ended.exit === "number" ? ended.exit : undefined
  return yield* new DeliveryRefused({ detail: said, hope: onFailure, exitCode })
})
