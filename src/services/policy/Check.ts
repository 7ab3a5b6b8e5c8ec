import type * as Effect from "effect/Effect"
import type { NameRequest } from "../../domain/policy/Stage.ts"
import { oneLine } from "../../engine/HiddenText.ts"
import type { Comparable } from "../../engine/net/Address.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"

/**
 * A name in the form that policies use. The type is `dns` for a name of an order or a SAN, and `cn` for a common name
 * in the subject of a CSR.
 */
export interface NamedIdentifier {
  readonly type: "dns" | "cn"
  readonly value: string
}

/** The input of the checks of the connection stage. */
export interface ConnectionQuestion {
  readonly stage: "connection"
  /** The address of the client; `undefined` while it is not known. */
  readonly client: Comparable | undefined
  readonly method: string
  /** The path without `/profile/<name>`. */
  readonly path: string
}

/** The credential of an external account, without its secret. */
export interface Credential {
  readonly kid: string
  readonly label: string | undefined
  readonly status: "active" | "revoked"
}

/** The input of the checks of the identifiers stage. */
export interface IdentifiersQuestion {
  readonly stage: "identifiers"
  readonly client: Comparable | undefined
  readonly accountId: string
  readonly at: NameRequest
  /** The name of the kind of certificate. */
  readonly kind: string
  readonly identifiers: ReadonlyArray<NamedIdentifier>
  /**
   * Returns the credential that bound the account, if the credential still exists. Only checks of type eab run this
   * effect.
   */
  readonly credential: Effect.Effect<Credential | undefined, { readonly message: string }>
}

export type Question = ConnectionQuestion | IdentifiersQuestion

/** A name that a check refused. */
export interface RefusedName {
  /**
   * One of the identifiers that the check was asked about. Two refused names are the same if they have the same object
   * here.
   */
  readonly identifier: NamedIdentifier
  /** The reason, as a text that precedes the name. */
  readonly words: string
}

/** The answer of a check. `reason` may be shown to the client, but `beside` and `error` must not be shown. */
export type CheckAnswer =
  | { readonly verdict: "pass" }
  | {
    readonly verdict: "fail"
    readonly reason: string
    /** What operators are told in addition to the reason. */
    readonly beside: string | undefined
    /** The names that were refused, if the check is about names. */
    readonly names: ReadonlyArray<RefusedName>
  }
  | { readonly verdict: "undecided"; readonly error: string }

export const passed: CheckAnswer = { verdict: "pass" }

export const refused = (reason: string, beside?: string): CheckAnswer => ({
  verdict: "fail",
  reason,
  beside,
  names: []
})

/** Returns the reason why names are refused. Names with the same words are listed together after these words. */
export const reasonOf = (names: ReadonlyArray<RefusedName>): string => {
  const listed = new Map<string, Array<string>>()
  for (const { identifier, words } of names) {
    const values = listed.get(words)
    if (values === undefined) listed.set(words, [identifier.value])
    else values.push(identifier.value)
  }
  return [...listed].map(([words, values]) => `${words} ${values.join(", ")}`).join("; ")
}

/** Returns the refusal of one or more names. */
export const refusedNames = (names: ReadonlyArray<RefusedName>, beside?: string): CheckAnswer => ({
  verdict: "fail",
  reason: reasonOf(names),
  beside,
  names
})

const longestFinding = 500

/** Returns a reason in the form that operators see: on one line, and shortened. */
export const findingOf = (reason: string, beside: string | undefined): string =>
  oneLine(beside === undefined ? reason : `${reason} (${beside})`).slice(0, longestFinding)

/** The refusal if the client's address is not known. */
export const addressUnknown = refused("the client address is not known")

export const undecided = (error: string): CheckAnswer => ({ verdict: "undecided", error })

/**
 * A check in force. A check without I/O is a plain function instead of an effect, so that fifty of them cost almost
 * nothing.
 */
export type Check =
  | { readonly _tag: "Instant"; readonly ask: (question: Question) => CheckAnswer }
  | { readonly _tag: "Looking"; readonly ask: (question: Question) => Effect.Effect<CheckAnswer> }

/** The configuration of a check. */
export type CheckConfig = ProfileConfig["filter"]["check"][string]
