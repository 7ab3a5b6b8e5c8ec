import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { relative } from "node:path"
import { createInterface } from "node:readline"
import { childVariable } from "../engine/processes/ChildVariable.ts"
import type { Parent } from "../engine/processes/OwnParent.ts"
import { run } from "./Cli.ts"
import { messageOf } from "./CommandFailed.ts"
import type { Installed, Pipe } from "./Host.ts"
import { Host } from "./Host.ts"

const output = (stream: NodeJS.WriteStream): Pipe => {
  let lost: string | undefined
  stream.on("error", ({ code, message }: NodeJS.ErrnoException) => void (lost ??= code ?? message))
  return {
    isTerminal: stream.isTTY === true,
    get columns() {
      return stream.columns // the width changes when the window does
    },
    write: stream.write.bind(stream),
    send: (text) =>
      Effect.callback<boolean>((resume) => {
        stream.write(text, (error) => resume(Effect.succeed(error === null || error === undefined)))
      }),
    flushed: Effect.callback((resume) => {
      // The stream reports the error of a write after the write has ended.
      stream.write("", () => void setImmediate(() => resume(Effect.succeed(lost))))
    })
  }
}

/**
 * The first signal stops the process in an orderly way. The second signal ends the process at once. The end of the
 * parent counts as a signal. A stop that the parent asks for never counts as the second signal, because a terminal
 * sends Ctrl-C to both processes.
 */
const stopSignal = (parent: Parent | undefined) =>
  Effect.callback<"SIGINT" | "SIGTERM">((resume) => {
    let stopping = false
    const stop = (signal: "SIGINT" | "SIGTERM") => {
      stopping = true
      resume(Effect.succeed(signal))
    }
    const stopOrEnd = (signal: "SIGINT" | "SIGTERM", code: number) => () => {
      if (stopping) process.exit(code)
      stop(signal)
    }
    process.on("SIGINT", stopOrEnd("SIGINT", 130))
    process.on("SIGTERM", stopOrEnd("SIGTERM", 143))
    parent?.listen({ stop: () => stop("SIGTERM"), lost: stopOrEnd("SIGTERM", 143) })
  })

/**
 * The parent of this process, if it is a child. The variable is deleted, so that programs that this process runs do not
 * inherit it.
 */
const ownParent: Effect.Effect<Parent | undefined> = Effect.suspend(() => {
  if (process.env[childVariable] === undefined) return Effect.undefined
  delete process.env[childVariable]
  return Effect.flatMap(Effect.promise(() => import("../engine/processes/OwnParent.ts")), ({ ownParent }) => ownParent)
})

/** Several signals count as one if they arrive before the effect runs again. */
const reloadSignal = (() => {
  let [asked, resume]: [boolean, (() => void) | undefined] = [false, undefined]
  process.on("SIGHUP", () => {
    asked = true
    resume?.()
  })
  return Effect.callback<void>((done) => {
    resume = () => {
      if (!asked) return
      asked = false
      resume = undefined
      done(Effect.void)
    }
    resume()
  })
})()

const uncaught = Effect.callback<never>((resume) => {
  process.on("uncaughtException", (error) => resume(Effect.die(error)))
})

/** Lines that were typed or pasted before they were asked for. */
const typedAhead: Array<string> = []

const nextLine = Effect.callback<string | undefined>((resume) => {
  if (typedAhead.length > 0) return resume(Effect.succeed(typedAhead.shift()))
  const lines = createInterface({ input: process.stdin })
  let isHeard = false
  lines.on("line", (line) => {
    if (isHeard) return void typedAhead.push(line)
    isHeard = true
    // This pauses the input, so it comes before the program continues, which may read the input again.
    lines.close()
    resume(Effect.succeed(line))
  })
  lines.once("close", () => {
    if (!isHeard) resume(Effect.undefined)
  })
  return Effect.sync(() => lines.close())
})

const readLine = Effect.map(nextLine, (line = "") => line)

const readAll = (most: number) =>
  Effect.callback<Uint8Array | undefined>((resume) => {
    const { stdin } = process
    const read: Array<Uint8Array> = []
    let octets = 0
    const end = (): void => {
      stdin.off("data", take).off("end", end).off("error", end).pause()
      resume(Effect.succeed(octets > most ? undefined : Buffer.concat(read)))
    }
    const take = (chunk: Uint8Array): void => {
      read.push(chunk)
      octets += chunk.length
      if (octets > most) end()
    }
    stdin.on("data", take).once("end", end).once("error", end).resume()
    return Effect.sync(() => stdin.off("data", take).off("end", end).off("error", end).pause())
  })

const [endOfInput, interrupt, erase, backspace, eraseAll] = ["\u0004", "\u0003", "\u007f", "\b", "\u0015"]

/**
 * Reads a line that the terminal does not show. In raw mode a terminal shows nothing that is typed, and does not itself
 * handle the keys for erasing and interrupting. What was typed or pasted after the line is left for the next question.
 */
const readHidden = (question: string) =>
  Effect.callback<string | undefined>((resume) => {
    const { stderr, stdin } = process
    const ahead = typedAhead.shift()
    if (ahead !== undefined) {
      stderr.write(`${question}\n`)
      return resume(Effect.succeed(ahead))
    }
    let typed: ReadonlyArray<string> = []
    const end = (): void => {
      stdin.off("data", read).setRawMode(false).pause()
      stderr.write("\n")
    }
    const read = (chunk: string): void => {
      const keys = Array.from(chunk)
      for (const [at, key] of keys.entries()) {
        if (key === "\r" || key === "\n" || key === endOfInput) {
          end()
          if (at + 1 < keys.length) stdin.unshift(keys.slice(at + 1).join(""))
          return resume(Effect.succeed(key === endOfInput && typed.length === 0 ? undefined : typed.join("")))
        }
        if (key === interrupt) {
          end()
          // A signal from the system might come too late: with the input paused, nothing keeps this process alive.
          return void process.emit("SIGINT", "SIGINT")
        }
        typed = key === eraseAll ? [] : key === erase || key === backspace ? typed.slice(0, -1) : [...typed, key]
      }
    }
    stdin.setEncoding("utf8").setRawMode(true).on("data", read).resume()
    stderr.write(question)
    return Effect.sync(end)
  })

/** Returns what a person types to run this program. In a clone no program with its name is in the search path. */
const programHere = (): string =>
  relative(process.cwd(), process.argv[1] ?? "") === "dist/main.js" ? "node_modules/.bin/node dist/main.js" : "acme-svc"

/** Provides this process as the host. */
const host = (installed: Installed): Layer.Layer<Host> =>
  Layer.effect(
    Host,
    Effect.map(ownParent, (parent) => ({
      stdin: { isTerminal: process.stdin.isTTY === true, readLine, nextLine, readAll, readHidden },
      stdout: output(process.stdout),
      stderr: output(process.stderr),
      env: process.env,
      cwd: process.cwd(),
      process: {
        ...installed,
        pid: process.pid,
        program: programHere(),
        parent,
        stopSignal: stopSignal(parent),
        reloadSignal,
        uncaught
      }
    }))
  )

/** Runs the command line of this process, then ends the process with the exit code. */
export const start = (installed: Installed): void => {
  const program = Effect.provide(run(process.argv.slice(2)), Layer.merge(host(installed), NodeServices.layer))
  Effect.runFork(program).addObserver((exit) => {
    if (Exit.isSuccess(exit)) process.exit(exit.value)
    // A command reports its own failures. This one came before the command began.
    const message = messageOf(Cause.squash(exit.cause))
    const isJson = process.argv.includes("--json")
    const said = isJson ? JSON.stringify({ error: "host_failed", message }) : message
    process.stderr.write(`${said}\n`, () => process.exit(1))
  })
}
