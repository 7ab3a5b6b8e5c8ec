import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { AtKeyboard } from "../operations/Operator.ts"
import { Host } from "./Host.ts"

const longestName = 64

/** The person at the keyboard, whose name comes from the environment. */
export class Operator extends Context.Service<Operator, AtKeyboard>()("acme/app/Operator") {
  static readonly layer: Layer.Layer<Operator, never, Host> = Layer.effect(
    this,
    Effect.map(Host, ({ env }) => {
      const names = ["SUDO_USER", "USER", "LOGNAME"].map((name) => env[name] ?? "")
      return { kind: "cli", id: names.find((name) => name !== "")?.slice(0, longestName) }
    })
  )
}
