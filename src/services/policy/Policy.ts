import * as Effect from "effect/Effect"
import type { Known } from "../../domain/policy/Condition.ts"
import { checksOf } from "../../domain/policy/Condition.ts"
import type { Judgement, Rule } from "../../domain/policy/Stage.ts"
import { judge } from "../../domain/policy/Stage.ts"
import type { Check, CheckAnswer, ConnectionQuestion, IdentifiersQuestion, Question } from "./Check.ts"
import type { Reasons } from "./Denial.ts"
import { reasonsOf } from "./Denial.ts"

interface Decided {
  /** The names of the rules in mode `warn` whose condition was true. */
  readonly warned: ReadonlyArray<string>
  /** The answers of the checks that ran, by the name of the check and in the order in which they ran. */
  readonly asked: ReadonlyMap<string, CheckAnswer>
  /** The rule that decided, or might have decided. */
  readonly rule: string | undefined
  /** The last rule that was evaluated, if it decided. Later rules were not evaluated. */
  readonly last: string | undefined
}

export interface Allowed extends Decided {
  readonly _tag: "Allowed"
}

export interface Denied extends Decided, Reasons {
  readonly _tag: "Denied"
}

export interface Undecided extends Decided {
  readonly _tag: "Undecided"
  /** The check that could not be decided. */
  readonly check: string | undefined
  /** The error. It is only for the log. */
  readonly error: string
}

/** The decision of one stage of a policy. */
export type Decision = Allowed | Denied | Undecided

/** One stage of a policy: the rules that apply at this stage, at least one, and the checks that these rules name. */
export interface StagePolicy {
  readonly rules: ReadonlyArray<Rule>
  readonly otherwise: "allow" | "deny"
  readonly checks: ReadonlyMap<string, Check>
}

/** The policy of one profile. If no rule applies at a stage, the stage is absent and allows everything. */
export interface Policy {
  readonly connection: ((question: ConnectionQuestion) => Effect.Effect<Decision>) | undefined
  readonly identifiers: ((question: IdentifiersQuestion) => Effect.Effect<Decision>) | undefined
  /** Whether a script receives the names. If so, no name may contain a comma or a control character. */
  readonly hasScriptsForNames: boolean
}

const asDecision = (judgement: Judgement, known: Known, asked: ReadonlyMap<string, CheckAnswer>): Decision => {
  const { answer, last, rule, warned } = judgement
  const decided = { warned, asked, rule: rule?.name, last: last?.name }
  if (answer === "allow") return { _tag: "Allowed", ...decided }
  if (answer === "undecided") {
    const named = rule === undefined ? [] : checksOf(rule.when)
    for (const [check, given] of asked) {
      if (given.verdict === "undecided" && named.includes(check)) {
        return { _tag: "Undecided", ...decided, check, error: given.error }
      }
    }
    return { _tag: "Undecided", ...decided, check: undefined, error: "" }
  }
  return { _tag: "Denied", ...decided, ...reasonsOf(judgement, known, asked) }
}

/**
 * Decides a stage. The rules are evaluated by a plain function. If this function needs the verdict of a check that
 * performs I/O, the rules are evaluated again once that verdict is available. A check runs at most once.
 */
export const decide = (stage: StagePolicy, question: Question): Effect.Effect<Decision> =>
  Effect.suspend(() => {
    const answers = new Map<string, CheckAnswer>()
    const known: Known = (name) => {
      const found = answers.get(name)
      if (found !== undefined) return found.verdict
      const check = stage.checks.get(name)
      if (check?._tag !== "Instant") return undefined
      const answer = check.ask(question)
      answers.set(name, answer)
      return answer.verdict
    }
    const step = (): Effect.Effect<Decision> => {
      const judged = judge(stage.rules, stage.otherwise, known)
      if (!("needs" in judged)) return Effect.succeed(asDecision(judged, known, answers))
      const check = stage.checks.get(judged.needs)
      if (check?._tag !== "Looking") return Effect.die(new Error(`no check ${judged.needs}`))
      return Effect.flatMap(check.ask(question), (answer) => {
        answers.set(judged.needs, answer)
        return step()
      })
    }
    return step()
  })
