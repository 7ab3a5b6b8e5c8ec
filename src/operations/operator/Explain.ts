import * as Effect from "effect/Effect"
import type { AcmeError } from "../../domain/AcmeError.ts"
import { AccountBlocked, Unauthorized } from "../../domain/AcmeError.ts"
import type { CredentialScope } from "../../domain/CredentialScope.ts"
import { isScoped, uncovered } from "../../domain/CredentialScope.ts"
import type { DnsName } from "../../domain/Identifier.ts"
import type { NameRequest } from "../../domain/policy/Stage.ts"
import { problemOf, problemType } from "../../domain/Problem.ts"
import type { Comparable } from "../../engine/net/Address.ts"
import { rfc3339 } from "../../engine/Time.ts"
import type { IdentifiersQuestion, NamedIdentifier } from "../../services/policy/Check.ts"
import { findingOf } from "../../services/policy/Check.ts"
import type { PlacedRule } from "../../services/policy/Policies.ts"
import { Policies, rulesOf } from "../../services/policy/Policies.ts"
import type { Decision } from "../../services/policy/Policy.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import { certificateKinds } from "../../settings/CertificateKinds.ts"
import type { AccountRecord } from "../../store/AccountSearch.ts"
import { kindFault, scopeFault } from "../acme/Scope.ts"
import { connectionProblem, finalizeProblem, orderProblem } from "../PolicyGate.ts"

/** An account, with what may keep it from ordering. */
export type SupposedAccount = Pick<AccountRecord, "blockedAt" | "blockReason" | "id" | "status">

/** A hypothetical request. */
export interface Supposed {
  readonly client: Comparable | undefined
  readonly method: string
  readonly path: string
  /** The normalised names of an order. If there are no names, newOrder and finalize are not tried. */
  readonly names: ReadonlyArray<DnsName>
  /** The common names of the CSR, for finalize. */
  readonly commonNames: ReadonlyArray<string>
  /** The account that sends the request. */
  readonly account: SupposedAccount | undefined
  /** The name of the kind of certificate. */
  readonly kind: string
  readonly credential: IdentifiersQuestion["credential"]
  /** What the credential of the account permits. Undefined if there is no account. */
  readonly scope: CredentialScope | undefined
}

/**
 * Where a policy is applied. `CSR` means finalize. Scripts also receive the word `CSR` (docs/configure/policy.md,
 * "Programs").
 */
export type AskedAt = "connection" | NameRequest

const outcomes = { Allowed: "allowed", Denied: "refused", Undecided: "undecided" } as const

/** The types of checks that use more than the request itself: they run a script or look something up. */
const looking: ReadonlyArray<string> = ["reverse_dns", "eab", "ipam", "custom"]

/** The problem that a client gets for each refusal. */
const problems: {
  readonly [A in AskedAt]: (decision: Exclude<Decision, { readonly _tag: "Allowed" }>) => AcmeError
} = { connection: connectionProblem, newOrder: orderProblem, CSR: finalizeProblem }

const answerOf = (at: AskedAt, decision: Decision) => {
  if (decision._tag === "Allowed") return {}
  const problem = problems[at](decision)
  return { status: problemOf(problem).status, type: problemType(problem) }
}

interface Place {
  readonly at: AskedAt
  readonly profile: ProfileConfig
  /** All rules in force. */
  readonly rules: ReadonlyArray<PlacedRule>
}

const stageOf = (at: AskedAt) => at === "connection" ? at : "identifiers"

/** Returns why a check of a rule in force did not run. */
const whySkipped = ({ at, rules }: Place, check: string, last: string | undefined): string => {
  const applying = rules.filter(({ stages }) => stages.includes(stageOf(at)))
  const index = applying.findIndex(({ names }) => names.includes(check))
  const rule = applying[index]
  if (rule === undefined) return `no rule of the stage ${stageOf(at)} names it`
  const end = applying.findIndex(({ name }) => name === last)
  return end >= 0 && index > end ? `rule ${last} decided before` : `rule ${rule.name} was settled without it`
}

/** Returns the checks of rules in force that did not run. */
const skippedBy = (place: Place, asked: ReadonlyMap<string, unknown>, last: string | undefined) =>
  [...new Set(place.rules.flatMap(({ names }) => names))].filter((check) => !asked.has(check)).map((check) => ({
    check,
    type: typeOf(place, check),
    because: whySkipped(place, check, last)
  }))

const typeOf = ({ profile }: Pick<Place, "profile">, check: string): string => profile.filter.check[check]?.type ?? ""

const decided = (place: Place, decision: Decision) => {
  const { at, rules } = place
  const asked = [...decision.asked].map(([check, answer]) => ({
    check,
    type: typeOf(place, check),
    verdict: answer.verdict,
    ...(answer.verdict === "fail" ? { reason: findingOf(answer.reason, answer.beside) } : {}),
    ...(answer.verdict === "undecided" ? { error: answer.error } : {})
  }))
  return {
    stage: stageOf(at),
    at,
    outcome: outcomes[decision._tag],
    ...answerOf(at, decision),
    ...(decision.rule === undefined ? {} : { rule: decision.rule }),
    ...(decision._tag === "Denied" ? { detail: decision.detail } : {}),
    warned: rules.filter(({ name }) => decision.warned.includes(name)).map(({ name, then }) => ({ rule: name, then })),
    asked,
    skipped: skippedBy(place, decision.asked, decision.last)
  }
}

/** Returns the result of a stage at which no check ran. */
const unasked = (place: Place, outcome: "allowed" | "unasked", because: string) => ({
  stage: stageOf(place.at),
  at: place.at,
  outcome,
  because,
  warned: [],
  asked: [],
  skipped: []
})

interface ExplainedStage {
  readonly stage: string
  readonly at: AskedAt | "account" | "scope"
  readonly outcome: "allowed" | "refused" | "undecided" | "unasked"
  readonly because?: string
  readonly status?: number
  readonly type?: string
  readonly rule?: string
  readonly detail?: string
  readonly warned: ReturnType<typeof decided>["warned"]
  readonly asked: ReturnType<typeof decided>["asked"]
  readonly skipped: ReturnType<typeof decided>["skipped"]
}

/** Returns whether the account may order (docs/configure/policy.md, "Blocked accounts"). */
const ordering = ({ blockReason = "", blockedAt, status }: SupposedAccount): ExplainedStage => {
  const stage: Omit<ExplainedStage, "outcome"> = { stage: "account", at: "account", warned: [], asked: [], skipped: [] }
  if (status === "valid" && blockedAt === undefined) {
    return { ...stage, outcome: "allowed", because: "the account is valid and not blocked" }
  }
  const [problem, detail] = status !== "valid" || blockedAt === undefined
    ? [new Unauthorized({ detail: "" }), `the account is ${status}`]
    : [
      new AccountBlocked({ since: blockedAt }),
      `an operator has blocked the account since ${rfc3339(blockedAt)}: ${blockReason}`
    ]
  return { ...stage, outcome: "refused", status: problemOf(problem).status, type: problemType(problem), detail }
}

/**
 * Returns whether the credential of the account permits the order (docs/configure/credentials.md, "What a credential
 * may ask for").
 */
const scoped = (profile: ProfileConfig, scope: CredentialScope, { kind, names }: Supposed): ExplainedStage => {
  const stage: Omit<ExplainedStage, "outcome"> = { stage: "scope", at: "scope", warned: [], asked: [], skipped: [] }
  const wrongKind = kindFault(scope, certificateKinds(profile), kind)
  const fault = wrongKind ?? scopeFault(scope, names)
  if (fault === undefined) {
    const because = isScoped(scope) ? "the credential permits this" : "the credential restricts nothing"
    return { ...stage, outcome: "allowed", because }
  }
  const what = wrongKind === undefined ? uncovered(scope, names).join(", ") : `the kind ${kind}`
  const detail = `the credential of this account does not permit ${what}`
  return { ...stage, outcome: "refused", status: problemOf(fault).status, type: problemType(fault), detail }
}

/**
 * Runs the policy of a profile as the requests of an issuance would, including scripts and look-ups. Every stage runs,
 * whatever the previous stage decided, so that all obstacles are shown at once.
 */
export const explain = Effect.fn("Explain.explain")(function*(profile: ProfileConfig, supposed: Supposed) {
  const policies = yield* Policies
  const policy = policies.get(profile.name)
  const { account, client, commonNames, credential, kind, method, names, path, scope } = supposed
  const accountId = account?.id
  const rules = rulesOf(profile.filter)
  const unruled = rules.length === 0 ? "nothing is filtered" : "no rule applies"
  const identifiersAt = Effect.fnUntraced(function*(at: NameRequest) {
    const place = { at, profile, rules }
    if (policy?.identifiers === undefined) return unasked(place, "allowed", unruled)
    if (names.length === 0) return unasked(place, "unasked", "there are no names")
    const identifiers: ReadonlyArray<NamedIdentifier> = [
      ...names.map((value) => ({ type: "dns" as const, value })),
      ...at === "CSR" ? commonNames.map((value) => ({ type: "cn" as const, value })) : []
    ]
    const question = {
      stage: "identifiers",
      client,
      accountId: accountId ?? "",
      at,
      kind,
      identifiers,
      credential
    } as const
    return decided(place, yield* policy.identifiers(question))
  })
  const place = { at: "connection", profile, rules } as const
  const stages: ReadonlyArray<ExplainedStage> = [
    policy?.connection === undefined
      ? unasked(place, "allowed", unruled)
      : decided(place, yield* policy.connection({ stage: "connection", client, method, path })),
    ...account === undefined ? [] : [ordering(account)],
    ...scope === undefined ? [] : [scoped(profile, scope, supposed)],
    yield* identifiersAt("newOrder"),
    yield* identifiersAt("CSR")
  ]
  const refusals = stages.flatMap(({ outcome }) => outcome === "refused" || outcome === "undecided" ? [outcome] : [])
  return {
    profile: profile.name,
    outcome: refusals[0] ?? ("allowed" as const),
    request: {
      clientIp: client?.text ?? null,
      method,
      path,
      accountId: accountId ?? null,
      kind,
      identifiers: names,
      commonNames
    },
    stages,
    /** The checks of each stage that ran a script or made a look-up. */
    ran: stages.flatMap(({ asked, at }) =>
      asked.filter(({ type }) => looking.includes(type)).map(({ check, type }) => ({ check, type, at }))
    )
  }
})

/** The result of {@link explain}. */
export type PolicyExplanation = Effect.Success<ReturnType<typeof explain>>
