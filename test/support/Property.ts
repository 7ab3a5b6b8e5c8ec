import { it } from "@effect/vitest"
import { Effect } from "effect"
import type { Scope } from "effect"
import * as fc from "fast-check"

/*
 * Tests of properties with arbitraries of fast-check. `it.prop` of @effect/vitest takes schemas and arbitraries of
 * Effect.
 */

type Arbitraries<T extends ReadonlyArray<unknown>> = { readonly [I in keyof T]: fc.Arbitrary<T[I]> }

/**
 * Declares a test that a property holds for the values of the arbitraries. A property that does not hold returns false
 * or throws.
 */
export const prop = <const T extends ReadonlyArray<unknown>>(
  name: string,
  arbitraries: Arbitraries<T>,
  property: (values: T) => boolean | void,
  parameters: fc.Parameters<[T]> = {}
): void => it(name, () => fc.assert(fc.property(tupleOf(arbitraries), property), parameters))

/** Declares a test of a property that is an effect. Each run has its own scope. */
export const effectProp = <const T extends ReadonlyArray<unknown>>(
  name: string,
  arbitraries: Arbitraries<T>,
  property: (values: T) => Effect.Effect<boolean | void, unknown, Scope.Scope>,
  parameters: fc.Parameters<[T]> = {}
): void =>
  it.effect(name, () =>
    Effect.flatMap(Effect.context<never>(), (context) =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            tupleOf(arbitraries),
            (values) => Effect.runPromiseWith(context)(Effect.scoped(property(values)))
          ),
          parameters
        )
      )))

const tupleOf = <T extends ReadonlyArray<unknown>>(arbitraries: Arbitraries<T>): fc.Arbitrary<T> =>
  fc.tuple(...arbitraries as ReadonlyArray<fc.Arbitrary<unknown>>) as unknown as fc.Arbitrary<T>
