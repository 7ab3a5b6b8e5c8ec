import { Effect, Layer } from "effect"
import { ReverseNames } from "../../src/engine/net/ReverseNames.ts"
import { Passwords } from "../../src/services/operators/Passwords.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import { make } from "../../src/surfaces/operator/ApiApp.ts"
import { checkServicesOf } from "../../src/surfaces/operator/gate/Entrance.ts"
import type { Held } from "./Asked.ts"
import { asking, cookieOf } from "./Asked.ts"
import type { Backend } from "./Databases.ts"
import type { World } from "./Graph.ts"
import { configOf, world } from "./Graph.ts"
import { made, password, startsAt } from "./Operators.ts"
import { useStore } from "./UseTests.ts"

/* The API of operators without a socket. Tests send their requests directly to the app that the listener serves. */

/** Returns the API of a configuration, and a function that calls it. */
export const apiOf = Effect.fnUntraced(function*(config: Config) {
  const sources = new Map<string, "default" | "file" | "env">()
  const names = yield* ReverseNames
  const app = make(config.admin, checkServicesOf(config.admin, { policy: undefined, names }), {
    resolved: { config, sources },
    version: "0.0.0-test",
    mostRows: config.admin.page_size_max
  })
  return { ask: asking(app, config) }
})

/** Tests over the API. Each test gets the function that calls the API. */
export const useApi = (backend: Backend, toml = "") => {
  const config = configOf(toml)
  return {
    config,
    ...useStore<Asking, World | Passwords>(backend, {
      startsAt,
      layer: ({ name, records }) =>
        Layer.provideMerge(
          Passwords.layer({ iterations: 2, recoveryIterations: 1 }),
          world({ seed: name, records })
        ),
      first: () => apiOf(config)
    })
  }
}

/** The functions and records that tests over the API use. */
export type Asking = Effect.Success<ReturnType<typeof apiOf>>

/** Makes an operator and signs the operator in. */
export const signedIn = Effect.fnUntraced(function*(
  { ask }: Asking,
  username: string,
  role: "viewer" | "operator" | "admin"
) {
  yield* made(username, role)
  const told = yield* ask("/api/session", { method: "POST", body: { username, password } })
  const held: Held = { cookie: cookieOf(told), csrf: told.json.csrfToken }
  return held
})
