import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { run } from "../../src/app/Cli.ts"
import type { Process } from "../../src/app/Host.ts"
import { Host } from "../../src/app/Host.ts"
import { freshDirectory } from "./Databases.ts"
import { migrationsFolder, panelFiles } from "./Graph.ts"
import { minimalConfig } from "./Server.ts"

/** The exit code and the output of a command line. */
export interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** How the environment of a command line differs from that of {@link freshPlace}. */
export interface Around {
  /** Variables in addition to those of the place. */
  readonly env?: Host["Service"]["env"]
  /** The input that is typed at the terminal. If this is left out, there is no terminal. */
  readonly typed?: string
  /** The width of the terminal to which both streams go. If this is left out, the streams go to a program. */
  readonly columns?: number
  /** The whole standard input, for a command that reads all of it. */
  readonly piped?: string | Uint8Array
  /** The lines that are typed as answers at the terminal, in order. After them the input ends. */
  readonly lines?: ReadonlyArray<string>
  /** The lines of hidden input, in order. */
  readonly hidden?: ReadonlyArray<string>
  /** An effect that runs while a question is open. */
  readonly whileAsked?: Effect.Effect<unknown>
  readonly process?: Partial<Process>
  /** Returns whether the standard output is still read. */
  readonly reads?: () => boolean
  /** The system's error code, if nothing can be written to standard output. */
  readonly lost?: string
  /** Called with each piece of standard output. */
  readonly heard?: (text: string) => void
  /** The available commands, instead of those of the program. */
  readonly among?: Parameters<typeof run>[1]
}

/** A machine as command lines see it: a directory, and variables that point into it. */
export interface Place {
  readonly directory: string
  /** Runs a command line in this process, on the clock of the fiber. */
  readonly run: (words: ReadonlyArray<string>, around?: Around) => Effect.Effect<Ended>
}

/** Returns the host, which stores everything that is written to the streams. */
export const hostOf = (
  directory: string,
  said: { out: string; err: string },
  around: Around,
  hidden = [...around.hidden ?? []],
  lines = [...around.lines ?? []]
): Host["Service"] => ({
  cwd: directory,
  env: {
    ACME_SVC_DATABASE__URL: `sqlite://${directory}/acme.db`,
    ACME_SVC_LOGGING__JSON_FORMAT: "true",
    USER: "tester",
    ...around.env
  },
  stdin: {
    isTerminal: around.typed !== undefined || around.hidden !== undefined || around.lines !== undefined,
    readLine: Effect.as(around.whileAsked ?? Effect.void, around.typed ?? ""),
    nextLine: Effect.sync(() => lines.shift()),
    readAll: (most) =>
      Effect.succeed(Buffer.from(around.piped ?? "")).pipe(
        Effect.map((octets) => octets.length > most ? undefined : octets)
      ),
    readHidden: (question) =>
      Effect.sync(() => {
        said.err += question
        return hidden.shift() ?? ""
      })
  },
  stdout: {
    isTerminal: around.columns !== undefined,
    columns: around.columns,
    write: (text) => {
      said.out += text
      around.heard?.(text)
    },
    send: (text) =>
      Effect.sync(() => {
        said.out += text
        around.heard?.(text)
        return around.reads?.() ?? true
      }),
    flushed: Effect.succeed(around.lost)
  },
  stderr: {
    isTerminal: around.columns !== undefined,
    columns: around.columns,
    write: (text) => void (said.err += text)
  },
  process: {
    version: "1.2.3",
    migrations: migrationsFolder,
    panel: panelFiles,
    site: join(directory, "site"),
    pid: process.pid,
    program: "acme-svc",
    stopSignal: Effect.never,
    reloadSignal: Effect.never,
    uncaught: Effect.never,
    ...around.process
  }
})

/** Makes a new place with a configuration and without a database. With `null` there is no configuration file. */
export const freshPlace = (config: ((directory: string) => string) | null = () => minimalConfig): Place => {
  const directory = freshDirectory()
  if (config !== null) writeFileSync(join(directory, "config.toml"), config(directory))
  return {
    directory,
    run: (words, around = {}) =>
      Effect.suspend(() => {
        const said = { out: "", err: "" }
        const host = Layer.succeed(Host, hostOf(directory, said, around))
        return Effect.map(
          Effect.provide(run(words, around.among), Layer.merge(host, NodeServices.layer)),
          (code) => ({ code, ...said })
        )
      })
  }
}
