import { Effect } from "effect"
import type { BadRequest, LiveCertificates } from "../../src/domain/OperatorError.ts"
import * as eab from "../../src/operations/operator/Eab.ts"
import * as eabDeletion from "../../src/operations/operator/EabDeletion.ts"
import { madeAt } from "../support/LocalCa.ts"
import type { Act, Commands } from "./Commands.ts"
import { atKeyboard } from "./Commands.ts"
import type { Grant, Grants } from "./Grants.ts"
import { grantOf, grantText } from "./Grants.ts"
import type { Ledger } from "./Ledger.ts"
import type { Machine } from "./Machine.ts"
import type { Random } from "./Random.ts"

/*
 * An operator who makes credentials, gives them to clients, and changes, clears, revokes and deletes them while the
 * clients are at work.
 */

/** A credential that the operator has given to the clients. */
export interface Handed {
  readonly kid: string
  readonly secret: Uint8Array
  readonly profile: string | undefined
}

const patterns = ["a.example.org", "b.example.org", "*.example.org", "**.example.org", "*.deep.example.org"]
const lifetimes = [3600, 36 * 3600, 10 * 86_400]

/** What the operator does, as often as it is in this list. */
const acts = ["create", "revoke", "delete", ...Array.from({ length: 12 }, () => "change" as const)] as const

/** A time that no clock of a simulation reaches. */
export const never = madeAt + 100 * 365 * 86_400

/** Returns whether a credential is refused because its end passed before the service read it. */
const hasEnded = ({ member }: BadRequest, { expiresAt = never }: Partial<Grant>): boolean =>
  member === "expiresAt" && expiresAt < never

type ScopeAct = Act<Effect.Error<ReturnType<typeof eab.setScope>> | LiveCertificates>

/** What the operator works with. */
interface Surroundings {
  readonly machine: Machine
  readonly random: Random
  readonly commands: Commands
  readonly grants: Grants
  readonly ledger: Ledger
  readonly profiles: ReadonlyArray<string>
  /** The names of the kinds of certificates. */
  readonly kinds: ReadonlyArray<string>
  /** How many milliseconds the clock of the host is ahead. */
  readonly skew: () => number
  readonly violated: (what: string) => void
}

/** The operator of a run. */
export class ScopeOperator {
  /** The credentials that the clients have. Some of them were revoked or deleted. */
  readonly handed: Array<Handed> = []
  readonly #at: Surroundings

  constructor(at: Surroundings) {
    this.#at = at
  }

  #some<A>(from: ReadonlyArray<A>): ReadonlyArray<A> {
    const { random } = this.#at
    const some = from.filter(() => random.chance(0.5))
    return some.length > 0 ? some : [random.pick(from)]
  }

  /** Returns random restrictions. Each member is present with this probability. */
  #restrictions(probability: number): Partial<Grant> {
    const { kinds, machine, random, skew } = this.#at
    const maybe = <A>(value: () => A): A | undefined => random.chance(probability) ? value() : undefined
    const second = Math.floor((machine.now + skew()) / 1000)
    return {
      names: maybe(() => this.#some(patterns)),
      wildcards: random.chance(probability),
      kinds: maybe(() => this.#some(kinds)),
      validitySeconds: maybe(() => random.pick(lifetimes)),
      ordersPerDay: maybe(() => random.between(1, 5)),
      maxAccounts: maybe(() => random.between(1, 2)) ?? maybe(() => 1),
      expiresAt: maybe(() =>
        random.pick([second + random.between(1, 5), second + random.between(5, 40), never, never])
      ),
      prevalidated: random.chance(probability)
    }
  }

  private readonly create: ScopeAct = Effect.suspend(() => {
    const { ledger, profiles, random } = this.#at
    const profile = random.chance(0.5) ? undefined : random.pick(profiles)
    const { prevalidated = false, ...restrictions } = this.#restrictions(0.25)
    const scope = grantOf({ ...restrictions, prevalidated: prevalidated && restrictions.names !== undefined })
    return eab.create(atKeyboard, { label: "clients", profile, scope }).pipe(
      Effect.map(({ credential: { kid }, secret }) => {
        ledger.grants.set(kid, grantText(scope))
        this.handed.push({ kid, secret, profile })
      }),
      Effect.catchTag("BadRequest", (refusal) => hasEnded(refusal, scope) ? Effect.void : refusal)
    )
  })

  /** Changes or clears restrictions of a credential. Sometimes tries to prove names that are not restricted. */
  #change(kid: string): ScopeAct {
    return Effect.suspend(() => {
      const { grants, ledger, random, violated } = this.#at
      const present = grants.present(kid)
      if (present === undefined) return Effect.void
      const isClearing = random.chance(0.3)
      const given = Object.entries(this.#restrictions(isClearing ? 0.5 : 0.3))
        .filter(([, value]) => value !== undefined && value !== false)
      const changes: Partial<Grant> = isClearing ? {} : Object.fromEntries(given)
      const cleared = isClearing ? given.map(([member]) => member as keyof Grant) : []
      const after = grantOf({
        ...present,
        ...changes,
        ...Object.fromEntries(cleared.map((member) => [member, undefined]))
      })
      const isWrong = after.prevalidated && after.names === undefined && grantText(after) !== grantText(present)
      // Until the change is acknowledged, either may be in force.
      ledger.grants.delete(kid)
      return eab.setScope(atKeyboard, kid, { changes, cleared }).pipe(
        Effect.map((credential) => {
          if (isWrong) violated(`the credential ${kid} proves names without restricting them`)
          if (grantText(credential) !== grantText(after)) violated(`the credential ${kid} permits something else`)
          ledger.grants.set(kid, grantText(after))
        }),
        Effect.catchTag(
          "BadRequest",
          (refusal) =>
            isWrong || hasEnded(refusal, changes)
              ? Effect.sync(() => void ledger.grants.set(kid, grantText(present)))
              : refusal
        )
      )
    })
  }

  #revoke(kid: string): ScopeAct {
    return Effect.asVoid(Effect.suspend(() => eab.revoke(atKeyboard, kid)))
  }

  #delete(kid: string): ScopeAct {
    return Effect.suspend(() => {
      const { grants, ledger } = this.#at
      if (grants.present(kid) === undefined) return Effect.void
      ledger.grants.delete(kid)
      return Effect.map(eabDeletion.remove(atKeyboard, kid, "keep"), () => void ledger.deleted.add(kid))
    })
  }

  #on(kid: string, act: "change" | "delete" | "revoke"): ScopeAct {
    switch (act) {
      case "change":
        return this.#change(kid)
      case "delete":
        return this.#delete(kid)
      case "revoke":
        return this.#revoke(kid)
    }
  }

  /**
   * Changes or deletes the credential of an account within a few milliseconds, while a request of the account runs.
   * `deletion` is the probability that the credential is deleted.
   */
  readonly meddle = (account: string, deletion: number): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { grants, random } = this.#at
      const kid = grants.credentialOf(account)
      if (kid === undefined) return Effect.void
      const act = random.chance(deletion) ? "delete" : "change"
      return Effect.andThen(Effect.sleep(random.between(0, 60)), this.#at.commands.run(this.#on(kid, act)))
    })

  /** Makes some credentials, and then works on them until there is nothing left to do for them. */
  readonly life = (isOver: () => boolean): Effect.Effect<void> =>
    Effect.gen({ self: this }, function*() {
      const { grants, random } = this.#at
      const pause = (least: number, most: number) => Effect.suspend(() => Effect.sleep(random.between(least, most)))
      for (let count = random.between(1, 3); count > 0; count--) yield* this.#at.commands.run(this.create)
      while (!isOver()) {
        yield* pause(100, 6000)
        const left = this.handed.filter(({ kid }) => grants.present(kid) !== undefined)
        const [kid] = left.length === 0 ? [] : [random.pick(left).kid]
        const act = random.pick(acts)
        yield* this.#at.commands.run(kid === undefined || act === "create" ? this.create : this.#on(kid, act))
      }
    })
}
