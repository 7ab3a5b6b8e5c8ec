import type { Known } from "../../domain/policy/Condition.ts"
import { settledBy } from "../../domain/policy/Condition.ts"
import type { Judgement, Rule } from "../../domain/policy/Stage.ts"
import type { CheckAnswer, NamedIdentifier, RefusedName } from "./Check.ts"
import { findingOf, reasonOf } from "./Check.ts"

/* What a stage that denies says of it (docs/decisions/policy.md, "Refusals"). */

type Answers = ReadonlyMap<string, CheckAnswer>

/** Why a stage denies. */
export interface Reasons {
  /** The check that is quoted: the last one whose failure explains the refusal. */
  readonly check: string | undefined
  /** Message for the client. */
  readonly detail: string
  /** What the quoted check found, for operators; the detail if no check is quoted. */
  readonly finding: string
  /** The names that the client may not have, if the quoted check is about names; none of them is permitted by a rule. */
  readonly identifiers: ReadonlyArray<NamedIdentifier>
  /** Message for the client about one of these names. */
  readonly detailOf: (identifier: NamedIdentifier) => string
}

interface Failure {
  readonly check: string
  readonly reason: string
  readonly beside: string | undefined
  readonly names: ReadonlyArray<RefusedName>
}

/** The failed checks that gave the condition of a rule its verdict. */
const failuresOf = (rule: Rule, verdict: "pass" | "fail", known: Known, answers: Answers): ReadonlyArray<Failure> =>
  settledBy(rule.when, verdict, known).flatMap((check) => {
    const answer = answers.get(check)
    return answer?.verdict === "fail" ? [{ check, ...answer }] : []
  })

/**
 * The names that all of these failures refuse. A failure that is not about names refuses them all. A name that one of the
 * checks takes is permitted by its rule, and only stands beside others that are not.
 */
const refusedByAll = (failures: ReadonlyArray<Failure>): ReadonlySet<NamedIdentifier> => {
  const [first = new Set<NamedIdentifier>(), ...rest] = failures.filter(({ names }) => names.length > 0)
    .map(({ names }) => new Set(names.map(({ identifier }) => identifier)))
  return new Set([...first].filter((one) => rest.every((others) => others.has(one))))
}

const together = (failures: ReadonlyArray<Failure>): string => {
  const names = new Set(failures.flatMap(({ names }) => names.map(({ identifier }) => identifier.value)))
  return `no rule allows these names together: ${[...names].join(", ")}`
}

/**
 * The reasons of a refusal. What a deny rule refuses is told by its message or with its name; what no rule allows is told
 * as the last rule says that could have allowed it.
 */
export const reasonsOf = ({ rule, unmet }: Judgement, known: Known, answers: Answers): Reasons => {
  const passedOver = unmet.map((one) => failuresOf(one, "fail", known, answers))
  const own = rule === undefined
    ? passedOver.findLast((some) => some.length > 0)
    : failuresOf(rule, "pass", known, answers)
  const quoted = own?.at(-1)
  const all = [...passedOver.flat(), ...rule === undefined ? [] : own ?? []]
  const refused = refusedByAll(all)
  const names = quoted?.names.filter(({ identifier }) => refused.has(identifier)) ?? []
  const said = (reason: string | undefined) => {
    if (rule === undefined) return reason ?? "request refused by policy"
    if (rule.message !== "") return rule.message
    return `refused by rule ${rule.name}${reason === undefined ? "" : `: ${reason}`}`
  }
  const reason = quoted === undefined || quoted.names.length === 0
    ? quoted?.reason
    : names.length > 0
    ? reasonOf(names)
    : together(all)
  return {
    check: quoted?.check,
    detail: said(reason),
    finding: findingOf(reason ?? said(undefined), quoted?.beside),
    identifiers: names.map(({ identifier }) => identifier),
    // The detail has all the names, but an answer about one name must not.
    detailOf: (identifier) => said(reasonOf(names.filter((one) => one.identifier === identifier)))
  }
}
