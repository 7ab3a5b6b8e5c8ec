import * as Effect from "effect/Effect"
import type { AcmeError } from "../domain/AcmeError.ts"
import {
  BadCsr,
  ClientRefused,
  Compound,
  OrderRefused,
  RejectedIdentifier,
  ServerInternal
} from "../domain/AcmeError.ts"
import { AccessDenied, Internal } from "../domain/OperatorError.ts"
import type { NameRequest } from "../domain/policy/Stage.ts"
import { emit } from "../domain/words/Log.ts"
import { hiddenIn } from "../engine/HiddenText.ts"
import { comparable } from "../engine/net/Address.ts"
import { Database } from "../engine/sql/Database.ts"
import type { NamedIdentifier } from "../services/policy/Check.ts"
import { Policies } from "../services/policy/Policies.ts"
import type { Decision, Denied, Policy, Undecided } from "../services/policy/Policy.ts"
import * as eabLabels from "../store/eab/EabLabels.ts"
import type { Caller } from "./Caller.ts"

const nothing = Effect.succeed(undefined)

/** Whose policy is applied: the policy of a profile, or the policy of the operators' listener. */
interface Of {
  readonly profile: string | undefined
  readonly listener: "admin" | undefined
}

const ofProfile = (profile: string): Of => ({ profile, listener: undefined })

/** Logs the result of a stage, and returns the result if it is a refusal. */
const told = (
  of: Of,
  stage: "connection" | "identifiers",
  decision: Decision
): Effect.Effect<Denied | Undecided | undefined> => {
  if (decision._tag === "Allowed" && decision.warned.length === 0) return nothing
  const { rule, warned } = decision
  const warnings = Effect.forEach(
    warned,
    (name) => emit("filter_rule_warned", { ...of, stage, rule: name }),
    { discard: true }
  )
  if (decision._tag === "Allowed") return Effect.as(warnings, undefined)
  const { check } = decision
  const record = decision._tag === "Undecided"
    ? emit("filter_undecided", { ...of, stage, rule, check, error: decision.error })
    : stage === "connection"
    ? emit("filter_request_blocked", { ...of, stage, rule, check, detail: decision.finding })
    : emit("filter_denied", { profile: of.profile, stage, rule, check, detail: decision.finding })
  return Effect.as(Effect.andThen(warnings, record), decision)
}

type Connection = NonNullable<Policy["connection"]>

/** The facts of a request that the connection stage uses. */
interface Sent {
  readonly clientIp: string
  readonly method: string
  readonly path: string
}

/** Logs the decision of the connection stage about a request, and returns the decision if it is a refusal. */
const refusalOf = (of: Of, connection: Connection, { clientIp, method, path }: Sent) =>
  Effect.flatMap(
    connection({ stage: "connection", client: comparable(clientIp), method, path }),
    (decision) => told(of, "connection", decision)
  )

/** Returns the problem document for a request that the connection stage refused. */
export const connectionProblem = (refusal: Denied | Undecided): ClientRefused | ServerInternal =>
  refusal._tag === "Denied" ? new ClientRefused({ detail: refusal.detail }) : new ServerInternal({})

/** Applies the connection stage to a request under a profile's prefix. */
export const admitConnection = (
  profile: string,
  connection: Connection,
  request: Sent
): Effect.Effect<void, ClientRefused | ServerInternal> =>
  Effect.flatMap(
    refusalOf(ofProfile(profile), connection, request),
    (refusal): Effect.Effect<void, ClientRefused | ServerInternal> =>
      refusal === undefined ? Effect.void : connectionProblem(refusal)
  )

/** Applies the policy of the operators' listener to a request, whatever its path. */
export const admitOperator = (
  connection: Connection,
  request: Sent
): Effect.Effect<void, AccessDenied | Internal> =>
  Effect.flatMap(
    refusalOf({ profile: undefined, listener: "admin" }, connection, request),
    (refusal): Effect.Effect<void, AccessDenied | Internal> => {
      if (refusal === undefined) return Effect.void
      return refusal._tag === "Denied" ? new AccessDenied({ detail: refusal.detail }) : new Internal()
    }
  )

/**
 * Applies the identifiers stage to the names and the kind of an order. Logs a refusal and returns it. The caller turns
 * the refusal into a problem.
 */
export const judgeNames = Effect.fnUntraced(function*(
  caller: Caller,
  at: NameRequest,
  kind: string,
  identifiers: ReadonlyArray<NamedIdentifier>
) {
  const policies = yield* Policies
  const policy = policies.get(caller.profile.name)
  if (policy?.identifiers === undefined) return undefined
  const database = yield* Database
  const decision = yield* policy.identifiers({
    stage: "identifiers",
    client: comparable(caller.client.ip ?? ""),
    accountId: caller.accountId,
    at,
    kind,
    identifiers,
    credential: Effect.provideService(eabLabels.ofAccount(caller.accountId), Database, database)
  })
  return yield* told(ofProfile(caller.profile.name), "identifiers", decision)
})

const isConfusing = (name: string): boolean => name.includes(",") || hiddenIn(name) !== undefined

/**
 * The highest number of octets in the names that are passed to a script. The system does not start a program with a
 * longer variable (128 KiB, including the variable's name).
 */
const mostOctets = 130_000

/**
 * Returns whether the names would mislead a script. Either the script would read one name as two names or as no name,
 * or all names together are too long for the script to start.
 */
export const confusesScripts = (names: ReadonlyArray<string>): boolean =>
  names.some(isConfusing) || Buffer.byteLength(names.join()) > mostOctets

/**
 * Returns the problem that newOrder returns for a refusal. If a check refused several names, each name has its own
 * subproblem.
 */
export const orderProblem = (refusal: Denied | Undecided): AcmeError => {
  if (refusal._tag === "Undecided") return new ServerInternal({})
  const { detail, detailOf, identifiers } = refusal
  const parts = identifiers.map((identifier) =>
    new RejectedIdentifier({ detail: detailOf(identifier), identifier: { type: "dns", value: identifier.value } })
  )
  const [first, second] = parts
  if (first === undefined) return new OrderRefused({ detail })
  return second === undefined ? first : new Compound({ parts })
}

/** Returns the problem that finalize returns for a refusal. */
export const finalizeProblem = (refusal: Denied | Undecided): BadCsr | ServerInternal =>
  refusal._tag === "Denied" ? new BadCsr({ detail: refusal.detail }) : new ServerInternal({})
