import * as Effect from "effect/Effect"
import { textGlob } from "../../domain/policy/Glob.ts"
import type { Check, CheckAnswer, CheckConfig, Credential } from "./Check.ts"
import { passed, refused, undecided } from "./Check.ts"
import { listsOf } from "./PolicyLists.ts"

const unbound = refused("the account has no external account binding")

/**
 * Returns the refusal of a credential. The client sees the id of its credential, which it already knows. It never sees
 * the label, because that is a note of the operators.
 */
const refusedCredential = ({ kid, label }: Credential, fault: string): CheckAnswer =>
  refused(
    `the account's credential ${kid} is ${fault}`,
    label === undefined ? "it has no label" : `its label is ${label}`
  )

/**
 * Makes a check of type `eab`, which looks in its lists for the credential that bound the account, by its label or its
 * exact id.
 */
export const eabCheck = (config: CheckConfig): Check => {
  const { allow, deny } = listsOf(config, textGlob)
  const kids = new Set(config.kids)
  const isConstrained = !allow.isEmpty || kids.size > 0
  const judge = (credential: Credential | undefined): CheckAnswer => {
    if (credential === undefined) return unbound
    const { kid, label = "", status } = credential
    if (config.require_active && status !== "active") return refusedCredential(credential, "revoked")
    if (deny.matches(label)) return refusedCredential(credential, "denied")
    return !isConstrained || kids.has(kid) || allow.matches(label)
      ? passed
      : refusedCredential(credential, "not among those allowed")
  }
  return {
    _tag: "Looking",
    ask: (question) =>
      question.stage === "identifiers"
        ? Effect.match(question.credential, { onSuccess: judge, onFailure: ({ message }) => undecided(message) })
        : Effect.succeed(unbound)
  }
}
