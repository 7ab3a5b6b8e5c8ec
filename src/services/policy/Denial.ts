import type { Known } from "../../domain/policy/Condition.ts"
import { settledBy } from "../../domain/policy/Condition.ts"
import type { Judgement, Rule } from "../../domain/policy/Stage.ts"
import type { CheckAnswer, NamedIdentifier, RefusedName } from "./Check.ts"
import { findingOf, reasonOf } from "./Check.ts"

/* Explains why a stage denies a request (docs/contribute/decisions/policy.md, "Refusals"). */

type Answers = ReadonlyMap<string, CheckAnswer>

/** The reasons why a stage denies a request. */
export interface Reasons {
  /** The check that the refusal quotes: the last check whose failure explains the refusal. */
  readonly check: string | undefined
  /** The message for the client. */
  readonly detail: string
  /** The finding of the quoted check, for operators. If no check is quoted, this is the detail. */
  readonly finding: string
  /**
   * The names that the client must not have, if the quoted check is about names. No rule permits any of these names.
   */
  readonly identifiers: ReadonlyArray<NamedIdentifier>
  /** Returns the message for the client about one of these names. */
  readonly detailOf: (identifier: NamedIdentifier) => string
}

interface Failure {
  readonly check: string
  readonly reason: string
  readonly beside: string | undefined
  readonly names: ReadonlyArray<RefusedName>
}

/** Returns the failed checks that decided the condition of a rule. */
const failuresOf = (rule: Rule, verdict: "pass" | "fail", known: Known, answers: Answers): ReadonlyArray<Failure> =>
  settledBy(rule.when, verdict, known).flatMap((check) => {
    const answer = answers.get(check)
    return answer?.verdict === "fail" ? [{ check, ...answer }] : []
  })

/**
 * Returns the names that all failures about names have in common. Failures that are not about names do not matter here.
 * If a check accepts a name, the rule of that check allows it, so the name was refused only because of the other names
 * in the order.
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
 * Returns the reasons of a refusal. If a deny rule refused the request, the reason is the rule's message, or the rule's
 * name if it has no message. If no rule allowed the request, the reason comes from the last rule that could have
 * allowed it.
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
    // The detail lists all refused names, but an answer about one name must list only that name.
    detailOf: (identifier) => said(reasonOf(names.filter((one) => one.identifier === identifier)))
  }
}
