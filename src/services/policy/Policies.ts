import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type { CheckType } from "../../domain/policy/CheckType.ts"
import { sharedStages, stagesOf } from "../../domain/policy/CheckType.ts"
import { checksOf, parseCondition } from "../../domain/policy/Condition.ts"
import type { Rule, Stage } from "../../domain/policy/Stage.ts"
import { Scripts } from "../../engine/host/Scripts.ts"
import { makeFairSemaphore } from "../../engine/net/FairSemaphore.ts"
import { JsonGet } from "../../engine/net/JsonGet.ts"
import { Resolver } from "../../engine/net/Resolver.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import { allowedIp } from "./AllowedIp.ts"
import type { Check, CheckConfig } from "./Check.ts"
import type { ScriptHost } from "./CustomScript.ts"
import { customScript } from "./CustomScript.ts"
import { eabCheck } from "./EabCheck.ts"
import { identifiersCheck } from "./IdentifiersCheck.ts"
import type { Inventory } from "./inventory/Inventory.ts"
import { serverOver } from "./inventory/InventoryGet.ts"
import { program } from "./inventory/InventoryProgram.ts"
import { netBox, netBoxProduct } from "./inventory/NetBox.ts"
import { phpIpam, phpIpamProduct } from "./inventory/PhpIpam.ts"
import type { RootsUnusable } from "./inventory/Roots.ts"
import { rootsOf } from "./inventory/Roots.ts"
import { ipamCheck } from "./IpamCheck.ts"
import { kindsCheck } from "./KindsCheck.ts"
import { pathCheck } from "./PathCheck.ts"
import type { Policy, StagePolicy } from "./Policy.ts"
import { decide } from "./Policy.ts"
import type { Forward } from "./ReverseDns.ts"
import { cachedForward, reverseDns } from "./ReverseDns.ts"

/** How many filter scripts run at the same time in one process. */
const maxScripts = 16

/** The services through which checks reach other hosts and programs. */
interface World extends ScriptHost {
  readonly resolver: Resolver["Service"]
  readonly forward: Forward
  readonly web: JsonGet["Service"]
}

/** A rule of an accepted configuration, with the stages at which it applies. */
export interface PlacedRule extends Rule {
  readonly stages: ReadonlyArray<Stage>
  readonly names: ReadonlyArray<string>
}

/** Returns the selected rules of a profile, in order. */
export const rulesOf = ({ check, rule, rules }: ProfileConfig["filter"]): ReadonlyArray<PlacedRule> =>
  rules.flatMap((name) => {
    const config = rule[name]
    const when = config === undefined ? undefined : Result.getOrUndefined(parseCondition(config.when))
    if (config === undefined || when === undefined || config.then === "") return []
    const names = checksOf(when)
    const stages = sharedStages(names.map((one) => stagesOfCheck(check[one])))
    return [{ name, when, then: config.then, mode: config.mode, message: config.message, stages, names }]
  })

/**
 * Returns whether a policy can refuse anything: it enforces a deny rule, or it has rules and its default is to deny.
 */
export const canRefuse = (filter: ProfileConfig["filter"]): boolean => {
  const rules = rulesOf(filter)
  return rules.some(({ mode, then }) => mode === "enforce" && then === "deny") ||
    (rules.length > 0 && filter.default === "deny")
}

/** Returns the stages at which a configured check runs. */
export const stagesOfCheck = (check: CheckConfig | undefined): ReadonlyArray<Stage> =>
  check === undefined || check.type === "" ? [] : stagesOf(check.type, check.stages)

/** Returns the inventory of a profile, if it is queried over HTTP. */
export const remoteInventory = (
  { ipam: { backend, netbox, phpipam }, name }: Pick<ProfileConfig, "name" | "ipam">,
  web: JsonGet["Service"]
): Effect.Effect<Inventory | undefined, RootsUnusable> => {
  switch (backend) {
    case "netbox":
      return Effect.map(
        rootsOf(name, netBoxProduct.section, netbox),
        (roots) => netBox(netbox, serverOver(web, netBoxProduct, netbox, roots))
      )
    case "phpipam":
      return Effect.map(
        rootsOf(name, phpIpamProduct.section, phpipam),
        (roots) => phpIpam(phpipam, serverOver(web, phpIpamProduct, phpipam, roots))
      )
    default:
      return Effect.succeed(undefined)
  }
}

const inventoryOf = (profile: Guarded, world: World): Effect.Effect<Inventory, RootsUnusable> =>
  Effect.map(remoteInventory(profile, world.web), (remote) => remote ?? program(profile.ipam, world))

/** What a policy is made from: the sections of a profile, or of the listener of operators. */
export type Guarded = Pick<ProfileConfig, "name" | "filter" | "ipam">

type Builder = (
  name: string,
  check: CheckConfig,
  profile: Guarded,
  world: World
) => Effect.Effect<Check, RootsUnusable>

/** The functions that build checks, by the type of the check. */
const builders: { readonly [T in CheckType]: Builder } = {
  allowed_ip: (_, check) => Effect.sync(() => allowedIp(check)),
  path: (_, check) => Effect.sync(() => pathCheck(check)),
  reverse_dns: (_, check, __, { forward, resolver }) => Effect.sync(() => reverseDns(check, resolver, forward)),
  identifiers: (_, check) => Effect.sync(() => identifiersCheck(check)),
  eab: (_, check) => Effect.sync(() => eabCheck(check)),
  kinds: (_, check) => Effect.sync(() => kindsCheck(check)),
  ipam: (_, __, profile, world) =>
    Effect.map(inventoryOf(profile, world), (inventory) => ipamCheck(profile.ipam, inventory)),
  custom: (name, check, _, world) => Effect.sync(() => customScript(name, check, world))
}

/** Returns whether a rule in force runs a program that gets the names of an order. */
export const runsScriptsForNames = (
  { check }: ProfileConfig["filter"],
  rules: ReadonlyArray<PlacedRule>
): boolean =>
  rules.some(({ names, stages }) =>
    stages.includes("identifiers") && names.some((name) => check[name]?.type === "custom")
  )

const build = Effect.fnUntraced(function*(profile: Guarded, world: World) {
  const { check: configured, default: otherwise } = profile.filter
  const rules = rulesOf(profile.filter)
  const checks = new Map<string, Check>()
  for (const name of new Set(rules.flatMap(({ names }) => names))) {
    const config = configured[name]
    if (config !== undefined && config.type !== "") {
      checks.set(name, yield* builders[config.type](name, config, profile, world))
    }
  }
  const at = (stage: Stage): StagePolicy | undefined => {
    const applying = rules.filter(({ stages }) => stages.includes(stage))
    return applying.length === 0 ? undefined : { rules: applying, otherwise, checks }
  }
  const [connection, identifiers] = [at("connection"), at("identifiers")]
  const policy: Policy = {
    connection: connection && ((question) => decide(connection, question)),
    identifiers: identifiers && ((question) => decide(identifiers, question)),
    hasScriptsForNames: runsScriptsForNames(profile.filter, rules)
  }
  return policy
})

/** The filter policies of the mounted profiles, by the names of the profiles. A profile without rules has none. */
export class Policies
  extends Context.Service<Policies, ReadonlyMap<string, Policy>>()("acme/services/policy/Policies") {
  /** Builds the policies of those profiles that have rules. Only the checks that their rules name are built. */
  static readonly layer = (
    profiles: ReadonlyArray<Guarded>
  ): Layer.Layer<Policies, RootsUnusable, JsonGet | Resolver | Scripts> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const resolver = yield* Resolver
        const world: World = {
          resolver,
          forward: cachedForward(resolver),
          web: yield* JsonGet,
          scripts: yield* Scripts,
          turns: makeFairSemaphore(maxScripts)
        }
        const policies = new Map<string, Policy>()
        for (const profile of profiles) {
          if (profile.filter.rules.length > 0) policies.set(profile.name, yield* build(profile, world))
        }
        return policies
      })
    )

  /** Filters nothing. */
  static readonly layerNone: Layer.Layer<Policies> = Layer.succeed(this, new Map())
}
