import * as Effect from "effect/Effect"
import { textGlob } from "../../domain/policy/Glob.ts"
import type { Check, CheckAnswer, CheckConfig, Credential } from "./Check.ts"
import { passed, refused, undecided } from "./Check.ts"
import { listsOf } from "./Lists.ts"

const unbound = refused("the account has no external account binding")
const denied = refused("the account's credential is not allowed")
const revoked = refused("the account's credential is revoked")

/** `eab`: the label of the credential that bound the account, or its exact id. */
export const eabCheck = (config: CheckConfig): Check => {
  const { allow, deny } = listsOf(config, textGlob)
  const kids = new Set(config.kids)
  const isConstrained = !allow.isEmpty || kids.size > 0
  const judge = (credential: Credential | undefined): CheckAnswer => {
    if (credential === undefined) return unbound
    const { kid, label = "", status } = credential
    if (config.require_active && status !== "active") return revoked
    if (deny.matches(label)) return denied
    return !isConstrained || kids.has(kid) || allow.matches(label) ? passed : denied
  }
  return {
    _tag: "Looking",
    ask: (question) =>
      question.stage === "identifiers"
        ? Effect.match(question.credential, { onSuccess: judge, onFailure: ({ message }) => undecided(message) })
        : Effect.succeed(unbound)
  }
}
