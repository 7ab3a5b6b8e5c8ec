import * as Effect from "effect/Effect"
import { AccountId, isId } from "../domain/Id.ts"
import { BadRequest, ConflictingIdentifierFilter, UnknownWord } from "../domain/OperatorError.ts"
import { orderFilterWords } from "../domain/Order.ts"
import { readWhole } from "../domain/WholeNumber.ts"
import { parseMoment } from "../kernel/Time.ts"
import { parseSerial } from "../pki/x509/Serial.ts"
import type { Config } from "../settings/AppConfig.ts"
import type { EabStatus } from "../store/eab/EabKeys.ts"
import type { OrphanStatus } from "../store/orders/OrphanedCertificateRows.ts"
import { orphanStatuses as knownOrphanStatuses } from "../store/orders/OrphanedCertificateRows.ts"
import type { UpstreamStatus } from "../store/upstream/UpstreamOrderRows.ts"
import * as expiring from "./order/Expiring.ts"

/*
 * Reads the filters of lists, which arrive as text. All surfaces read them here and so refuse the same values
 * (docs/decisions/admin.md, "Conventions"). A blank filter counts as absent.
 */

/** The filters of a list as text, by their names in the API. */
export type Given<Names extends string> = { readonly [_ in Names]?: string | undefined }

const filled = (text: string | undefined): string | undefined => text?.trim() === "" ? undefined : text?.trim()

/** Reads a word of a closed set. Answers `undefined` if it is absent. */
export const wordOf = <W extends string>(
  name: string,
  known: ReadonlyArray<W>,
  text: string | undefined
): Effect.Effect<W | undefined, UnknownWord> => {
  const word = filled(text)
  if (word === undefined) return Effect.succeed(undefined)
  const found = known.find((one) => one === word)
  return found === undefined ? new UnknownWord({ name, word, known }) : Effect.succeed(found)
}

const refuse = (detail: string) => new BadRequest({ detail })

/** Reads a text with `reading`. Answers `undefined` if it is absent. */
const read = <A>(name: string, takes: string, text: string | undefined, reading: (text: string) => A | undefined) => {
  const given = filled(text)
  if (given === undefined) return Effect.succeed(undefined)
  const value = reading(given)
  return value === undefined ? refuse(`${name} takes ${takes}.`) : Effect.succeed(value)
}

const idOf = (name: string, text: string | undefined) =>
  read(name, "an id, in lower case and with hyphens", text, (one) => isId(one) ? one : undefined)

const serialOf = (text: string | undefined) =>
  read("certSerial", "a serial number in hexadecimal, with or without colons", text, parseSerial)

/** Both ends of a period: RFC 3339 instants, or days in UTC. The end must be after the begin. */
const spanOf = Effect.fnUntraced(function*({ since, until }: Given<"since" | "until">) {
  const takes = "an RFC 3339 time, or a day as YYYY-MM-DD"
  const span = {
    since: yield* read("since", takes, since, parseMoment),
    until: yield* read("until", takes, until, parseMoment)
  }
  return span.since !== undefined && span.until !== undefined && span.until <= span.since
    ? yield* refuse("until takes a time after that of since.")
    : span
})

const longestName = 253
const foldedName = (text: string): string => text.toLowerCase().replace(/\.$/, "")

/** Reads the filters for names, of which at most one may be given. */
const namesOf = Effect.fnUntraced(function*(
  given: Given<"identifier" | "identifierSuffix" | "identifierContains">
) {
  const [identifier, suffix, part] = [
    filled(given.identifier),
    filled(given.identifierSuffix),
    filled(given.identifierContains)
  ]
  const all = [identifier, suffix, part].filter((one) => one !== undefined)
  if (all.length > 1) return yield* new ConflictingIdentifierFilter()
  if (all.some((one) => one.length > longestName)) return yield* refuse(`A name has at most ${longestName} characters.`)
  return {
    identifier: identifier === undefined ? undefined : foldedName(identifier),
    identifierSuffix: suffix === undefined ? undefined : foldedName(suffix).replace(/^\./, ""),
    identifierContains: part
  }
})

/** The filters of orders. */
export const orderFilters = Effect.fnUntraced(function*(
  given: Given<
    | "profile"
    | "accountId"
    | "status"
    | "identifier"
    | "identifierSuffix"
    | "identifierContains"
    | "certSerial"
    | "since"
    | "until"
  >
) {
  const account = yield* idOf("accountId", given.accountId)
  return {
    profile: filled(given.profile),
    accountId: account === undefined ? undefined : AccountId(account),
    status: yield* wordOf("status", orderFilterWords, given.status),
    ...yield* namesOf(given),
    certSerial: yield* serialOf(given.certSerial),
    ...yield* spanOf(given)
  }
})

/** Every status of a credential. */
export const eabStatuses: ReadonlyArray<EabStatus> = ["active", "revoked"]
/** Every status of an order at its upstream. */
export const upstreamStatuses: ReadonlyArray<UpstreamStatus> = ["processing", "valid", "invalid"]

/** The filters of credentials. */
export const eabFilters = ({ status }: Given<"status">) =>
  Effect.map(wordOf("status", eabStatuses, status), (status) => ({ status }))

/** The filters of relayed orders. */
export const upstreamOrderFilters = Effect.fnUntraced(function*(given: Given<"profile" | "status">) {
  return { profile: filled(given.profile), status: yield* wordOf("status", upstreamStatuses, given.status) }
})

/** Every state of a certificate whose order ended without it. */
export const orphanStatuses: ReadonlyArray<OrphanStatus> = knownOrphanStatuses

/** The filters of certificates whose orders ended without them. */
export const orphanFilters = Effect.fnUntraced(function*(given: Given<"profile" | "status">) {
  return { profile: filled(given.profile), status: yield* wordOf("status", orphanStatuses, given.status) }
})

/** What is done with certificates that were replaced. */
export const supersededWords = ["show", "hide"] as const

/** The filters of certificates that expire soon. */
export const expiringFilters = Effect.fnUntraced(function*(
  config: Pick<Config, "profiles">,
  given: Given<"profile" | "days" | "superseded">
) {
  return expiring.wantedOf(config, {
    profile: filled(given.profile),
    days: yield* read("days", "a whole number", given.days, readWhole),
    superseded: yield* wordOf("superseded", supersededWords, given.superseded)
  })
})
