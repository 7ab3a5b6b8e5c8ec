#!/usr/bin/env node
import { NodeContext } from "@effect/platform-node"
import { Effect, Exit } from "effect"
import { readFileSync } from "node:fs"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { run } from "./app/Cli.ts"
import type { Host } from "./app/commands/Kit.ts"

// `src/main.ts` and `dist/main.js` are equally deep.
const root = new URL("../", import.meta.url)
const { version } = JSON.parse(readFileSync(new URL("package.json", root), "utf8")) as { readonly version: string }

const output = (stream: NodeJS.WriteStream): Host["stdout"] => {
  stream.on("error", () => {}) // a closed pipe ends quietly
  return { isTerminal: stream.isTTY === true, write: (text) => void stream.write(text) }
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

const host: Host = {
  stdin: { isTerminal: process.stdin.isTTY === true, readLine },
  stdout: output(process.stdout),
  stderr: output(process.stderr),
  env: process.env,
  cwd: process.cwd(),
  process: {
    version,
    migrations: fileURLToPath(new URL("migrations", root)),
    pid: process.pid,
    stopSignal,
    reloadSignal,
    uncaught
  }
}

Effect.runFork(Effect.provide(run(host, process.argv.slice(2)), NodeContext.layer)).addObserver((exit) => {
  process.exit(Exit.isSuccess(exit) ? exit.value : 1)
})
