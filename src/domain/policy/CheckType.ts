import type { Stage } from "./Stage.ts"

/** The kinds of checks (docs/configure/policy.md, "Checks"). */
export type CheckType = "allowed_ip" | "path" | "reverse_dns" | "identifiers" | "eab" | "kinds" | "ipam" | "custom"

interface Facts {
  /** The stages at which a check of this type runs if its configuration names no stages. */
  readonly natural: ReadonlyArray<Stage>
  readonly possible: ReadonlyArray<Stage>
  /** The configuration keys of this type, in addition to `type` and `stages`. */
  readonly keys: ReadonlyArray<string>
  /** What a check of this type queries outside the process, if anything. */
  readonly asks?: "the DNS" | "the inventory" | "a program"
}

const connection: ReadonlyArray<Stage> = ["connection"]
const identifiers: ReadonlyArray<Stage> = ["identifiers"]
const both: ReadonlyArray<Stage> = ["connection", "identifiers"]
const lists = ["allow", "deny"]
const patterns = [...lists, "allow_regex", "deny_regex"]

/** The facts about each type of check. */
export const checkTypes: { readonly [T in CheckType]: Facts } = {
  allowed_ip: { natural: both, possible: both, keys: lists },
  path: { natural: connection, possible: connection, keys: lists },
  reverse_dns: {
    natural: connection,
    possible: both,
    keys: [...patterns, "require_forward_confirm", "timeout_ms"],
    asks: "the DNS"
  },
  identifiers: { natural: identifiers, possible: identifiers, keys: [...patterns, "allowed_types", "allow_wildcards"] },
  eab: { natural: identifiers, possible: identifiers, keys: [...patterns, "kids", "require_active"] },
  kinds: { natural: identifiers, possible: identifiers, keys: lists },
  ipam: { natural: identifiers, possible: identifiers, keys: [], asks: "the inventory" },
  custom: {
    natural: both,
    possible: both,
    keys: ["script_path", "args", "pass_stdin", "timeout_ms"],
    asks: "a program"
  }
}

/**
 * Returns the stages at which a check runs: the configured stages or, if there are none, the natural stages of its
 * type.
 */
export const stagesOf = (type: CheckType, stated: ReadonlyArray<Stage>): ReadonlyArray<Stage> =>
  stated.length === 0 ? checkTypes[type].natural : stated

/** Returns the stages at which a rule applies: those that all its checks share. */
export const sharedStages = (ofChecks: ReadonlyArray<ReadonlyArray<Stage>>): ReadonlyArray<Stage> =>
  both.filter((stage) => ofChecks.every((stages) => stages.includes(stage)))
