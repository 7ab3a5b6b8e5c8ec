import * as Effect from "effect/Effect"
import type { Comparable } from "../kernel/net/Address.ts"
import type { IdentifiersQuestion } from "../services/policy/Check.ts"
import { findingOf } from "../services/policy/Check.ts"
import { Policies } from "../services/policy/Policies.ts"
import type { Decision } from "../services/policy/Policy.ts"
import type { ProfileConfig } from "../settings/AppConfig.ts"

/** A hypothetical request. */
export interface Supposed {
  readonly client: Comparable | undefined
  readonly method: string
  readonly path: string
  /** Normalised names. If there are none, the identifiers stage is not run. */
  readonly names: ReadonlyArray<string>
  readonly accountId: string
  readonly credential: IdentifiersQuestion["credential"]
}

const outcomes = { Allowed: "allowed", Denied: "refused", Undecided: "undecided" } as const

/** Types of checks that use more than the request itself. */
const looking: ReadonlyArray<string> = ["reverse_dns", "eab", "ipam", "custom"]

const stageObject = (stage: "connection" | "identifiers", profile: ProfileConfig, decision: Decision) => {
  const asked = [...decision.asked].map(([check, answer]) => ({
    check,
    type: profile.filter.check[check]?.type ?? "",
    verdict: answer.verdict,
    ...(answer.verdict === "fail" ? { reason: findingOf(answer.reason, answer.beside) } : {}),
    ...(answer.verdict === "undecided" ? { error: answer.error } : {})
  }))
  return {
    stage,
    outcome: outcomes[decision._tag],
    ...(decision.rule === undefined ? {} : { rule: decision.rule }),
    ...(decision._tag === "Denied" ? { detail: decision.detail } : {}),
    ...(decision.warned.length === 0 ? {} : { warned: decision.warned }),
    asked
  }
}

/**
 * Runs the policy of a profile as a request would, including scripts and look-ups. It ends after the first stage that
 * refuses.
 */
export const explain = Effect.fn("Explain.explain")(function*(profile: ProfileConfig, supposed: Supposed) {
  const policies = yield* Policies
  const policy = policies.of(profile.name)
  const { accountId, client, credential, method, names, path } = supposed
  const stages: Array<ReturnType<typeof stageObject>> = []
  if (policy?.connection !== undefined) {
    const decision = yield* policy.connection({ stage: "connection", client, method, path })
    stages.push(stageObject("connection", profile, decision))
  }
  const admitted = stages.every(({ outcome }) => outcome === "allowed")
  if (policy?.identifiers !== undefined && names.length > 0 && admitted) {
    const identifiers = names.map((value) => ({ type: "dns" as const, value }))
    const question = { stage: "identifiers", client, accountId, at: "newOrder", identifiers, credential } as const
    stages.push(stageObject("identifiers", profile, yield* policy.identifiers(question)))
  }
  const ran = stages.flatMap(({ asked }) => asked).filter(({ type }) => looking.includes(type))
  return {
    profile: profile.name,
    outcome: stages.find(({ outcome }) => outcome !== "allowed")?.outcome ?? ("allowed" as const),
    stages,
    /** The checks that ran a script or looked something up. */
    ran: ran.map(({ check, type }) => ({ check, type }))
  }
})

/** The result of {@link explain}. */
export type PolicyExplanation = Effect.Success<ReturnType<typeof explain>>
