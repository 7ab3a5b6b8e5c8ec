import { Effect, Layer } from "effect"
import { ReverseNames } from "../../src/engine/net/ReverseNames.ts"
import { Passwords } from "../../src/services/operators/Passwords.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import type { CheckServices } from "../../src/surfaces/operator/gate/Entrance.ts"
import { checkServicesOf } from "../../src/surfaces/operator/gate/Entrance.ts"
import { makePanel } from "../../src/surfaces/panel/Panel.ts"
import type { Held, Told } from "./Asked.ts"
import { asking, cookieOf } from "./Asked.ts"
import type { Backend } from "./Databases.ts"
import type { World } from "./Graph.ts"
import { configOf, panelFiles, world } from "./Graph.ts"
import { made, password, startsAt } from "./Operators.ts"
import { useStore } from "./UseTests.ts"

/* The panel without a socket or a browser. */

/** Returns the panel of a configuration, and a function that calls it. */
export const panelOf = Effect.fnUntraced(function*(config: Config, admit?: CheckServices["admit"]) {
  const sources = new Map<string, "default" | "file" | "env">()
  const names = yield* ReverseNames
  const open = checkServicesOf(config.admin, { policy: undefined, names })
  const checkServices = admit === undefined ? open : { ...open, admit }
  const app = yield* Effect.orDie(makePanel({ config, sources }, checkServices, panelFiles, "0.0.0-test"))
  return { ask: asking(app, config) }
})

/** The functions and records that tests of the panel use. */
export type AskingPanel = Effect.Success<ReturnType<typeof panelOf>>

/** Tests over the panel. Each test gets the function that calls the panel. */
export const usePanel = (backend: Backend, toml = "") => {
  const config = configOf(toml)
  return {
    config,
    ...useStore<AskingPanel, World | Passwords>(backend, {
      startsAt,
      layer: ({ name, records }) =>
        Layer.provideMerge(
          Passwords.layer({ iterations: 2, recoveryIterations: 1 }),
          world({ seed: name, records, config })
        ),
      first: () => panelOf(config)
    })
  }
}

/** Returns the fields of a form. */
export const form = (fields: Readonly<Record<string, string>>) => new URLSearchParams(fields)

/** Makes an operator, signs the operator in, and returns the session as a browser stores it. */
export const entered = Effect.fnUntraced(function*(
  { ask }: AskingPanel,
  username: string,
  role: "viewer" | "operator" | "admin"
) {
  yield* made(username, role)
  const told = yield* ask("/ui/login", { method: "POST", body: form({ username, password }) })
  const cookie = cookieOf(told)
  const first = yield* ask("/ui/", { cookie })
  const csrf = /X-CSRF-Token":"([\w-]+)"/.exec(first.text)?.[1] ?? ""
  return { cookie, csrf }
})

/** Sends a form in the same way as the script of a page. */
export const send = (
  { ask }: AskingPanel,
  held: Held,
  target: string,
  fields: Readonly<Record<string, string>> = {}
) => ask(target, { method: "POST", body: form(fields), headers: { "hx-request": "true" }, ...held })

/** Returns whether an answer shows a refusal with this code beside its form. */
export const isBeside = ({ headers, status, text }: Told, expected: number, code: string): boolean =>
  status === expected && headers["hx-retarget"] === "find .refusal" && text.includes(`<code>${code}</code>`)

/** Returns the text of a page without its tags, with single spaces. */
export const wordsOf = ({ text }: Told): string =>
  text.replaceAll(/<title>[^<]*<\/title>/g, "").replaceAll(/<[^>]*>/g, " ").replaceAll("&#x2f;", "/").replaceAll(
    "&#x27;",
    "'"
  )
    .replaceAll(/\s+/g, " ")
