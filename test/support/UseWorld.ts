import type { Database } from "../../src/engine/sql/Database.ts"
import type { Backend, TestDatabase } from "./Databases.ts"
import type { Script, World } from "./Graph.ts"
import { world } from "./Graph.ts"
import type { Making, Manner, Tests } from "./UseTests.ts"
import { useStore } from "./UseTests.ts"

/** The functions that {@link useWorld} gives to a describe block. */
export type TestWorld<A, S> = Tests<A, World | Database, S> & { readonly database: TestDatabase }

/** Tests over a database. Each test has its own world, and `script` returns the defaults for the script of a test. */
export const useWorld = <A = void>(
  backend: Backend,
  { script, ...manner }: Omit<Manner<A, World, Script, Database>, "layer"> & {
    readonly script?: (making: Making<Script>) => Script
  } = {}
): TestWorld<A, Script> =>
  useStore(backend, {
    ...manner,
    layer: (making) => world({ records: making.records, seed: making.name, ...script?.(making), ...making.script })
  })
