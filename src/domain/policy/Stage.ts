import type { Condition, Known, Needs } from "./Condition.ts"
import { evaluate } from "./Condition.ts"

/** The stages at which a policy is applied (docs/contribute/decisions/policy.md, "Stages"). */
export type Stage = "connection" | "identifiers"

/**
 * The requests whose names are checked: a new order, and the CSR of finalize. Operators' programs depend on these
 * words, so the words never change.
 */
export const nameRequests = ["newOrder", "CSR"] as const

export type NameRequest = (typeof nameRequests)[number]

/** What a rule decides if its condition is true, and what the default decides if no condition is true. */
export type Ruling = "allow" | "deny"

/** A rule in force. */
export interface Rule {
  readonly name: string
  readonly when: Condition
  readonly then: Ruling
  readonly mode: "enforce" | "warn"
  /** The message that the client sees if the rule refuses. Empty if there is no message. */
  readonly message: string
}

/** The result of a stage. */
export interface Judgement {
  readonly answer: Ruling | "undecided"
  /**
   * The rule that decided. If the answer is `undecided`, this is the first rule that might have led to another answer.
   * `undefined` if there is no such rule.
   */
  readonly rule: Rule | undefined
  /** The rule at which the evaluation ended, because it decided. `undefined` if all rules were evaluated. */
  readonly last: Rule | undefined
  /** The names of the rules in mode `warn` whose condition was true. */
  readonly warned: ReadonlyArray<string>
  /**
   * The `allow` rules in force whose condition was false, in order. They explain why the default refused the request.
   */
  readonly unmet: ReadonlyArray<Rule>
}

/**
 * Judges a stage by the steps of docs/contribute/decisions/policy.md, "Three answers". `rules` are the rules that apply
 * at the stage, in order. There must be at least one. The caller calls this function again after each new verdict,
 * until the function needs no further verdict.
 */
export const judge = (rules: ReadonlyArray<Rule>, otherwise: Ruling, known: Known): Judgement | Needs => {
  const warned: Array<string> = []
  const unmet: Array<Rule> = []
  const undecided: Array<Rule> = []
  let decided: Rule | undefined
  for (const rule of rules) {
    const verdict = evaluate(rule.when, known)
    if (typeof verdict === "object") return verdict
    if (verdict === "fail") {
      if (rule.mode === "enforce" && rule.then === "allow") unmet.push(rule)
      continue
    }
    if (rule.mode === "warn") {
      if (verdict === "pass") warned.push(rule.name)
    } else if (verdict === "undecided") {
      undecided.push(rule)
    } else {
      decided = rule
      break
    }
  }
  const answer = decided === undefined ? otherwise : decided.then
  const doubt = undecided.find((rule) => rule.then !== answer)
  return doubt === undefined
    ? { answer, rule: decided, last: decided, warned, unmet }
    : { answer: "undecided", rule: doubt, last: decided, warned, unmet }
}
