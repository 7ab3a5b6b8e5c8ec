import * as NodeContext from "@effect/platform-node/NodeContext"
import { Effect, Exit, Layer } from "effect"
import { createInterface } from "node:readline"
import { run } from "./Cli.ts"
import type { Output } from "./Host.ts"
import { Host } from "./Host.ts"

const output = (stream: NodeJS.WriteStream): Output => {
  stream.on("error", () => {}) // a closed pipe ends quietly
  return {
    isTerminal: stream.isTTY === true,
    get columns() {
      return stream.columns // changes with the window
    },
    write: (text) => void stream.write(text)
  }
}

/** The first signal asks for an orderly end, the second one ends the process at once. */
const stopSignal = Effect.async<"SIGINT" | "SIGTERM">((resume) => {
  let stopping = false
  const listen = (signal: "SIGINT" | "SIGTERM", code: number) =>
    process.on(signal, () => {
      if (stopping) process.exit(code)
      stopping = true
      resume(Effect.succeed(signal))
    })
  listen("SIGINT", 130)
  listen("SIGTERM", 143)
})

/** Signals that come while nobody waits are one. */
const reloadSignal = (() => {
  let [asked, resume]: [boolean, (() => void) | undefined] = [false, undefined]
  process.on("SIGHUP", () => {
    asked = true
    resume?.()
  })
  return Effect.async<void>((done) => {
    resume = () => {
      if (!asked) return
      asked = false
      resume = undefined
      done(Effect.void)
    }
    resume()
  })
})()

const uncaught = Effect.async<never>((resume) => {
  process.on("uncaughtException", (error) => resume(Effect.die(error)))
})

const readLine = Effect.async<string>((resume) => {
  const lines = createInterface({ input: process.stdin })
  lines.once("line", (line) => {
    resume(Effect.succeed(line))
    lines.close() // says so at once, and the first answer stands
  })
  lines.once("close", () => resume(Effect.succeed("")))
})

/** This process. */
const host = (version: string, migrations: string): Layer.Layer<Host> =>
  Layer.sync(Host, () => ({
    stdin: { isTerminal: process.stdin.isTTY === true, readLine },
    stdout: output(process.stdout),
    stderr: output(process.stderr),
    env: process.env,
    cwd: process.cwd(),
    process: { version, migrations, pid: process.pid, stopSignal, reloadSignal, uncaught }
  }))

/** Runs the command line of this process, and ends it with the exit code. `migrations` holds a folder for each database. */
export const start = (version: string, migrations: string): void => {
  const program = Effect.provide(run(process.argv.slice(2)), Layer.merge(host(version, migrations), NodeContext.layer))
  Effect.runFork(program).addObserver((exit) => {
    process.exit(Exit.isSuccess(exit) ? exit.value : 1)
  })
}
