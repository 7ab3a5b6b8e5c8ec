import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { run } from "../../src/app/Cli.ts"
import { Host } from "../../src/app/Host.ts"
import { afterFile } from "./Cleanup.ts"
import { isFull } from "./Full.ts"
import { patienceMs } from "./Patience.ts"
import { hostOf } from "./RunCommand.ts"
import type { Finished, ProcessOptions } from "./Server.ts"
import { prepare, recordsOf, runToEnd } from "./Server.ts"

/** The output of a command line, and its exit code. */
export type Said = Pick<Finished, "code" | "stdout" | "stderr" | "records">

const inThisProcess = async (words: ReadonlyArray<string>, options: ProcessOptions): Promise<Said> => {
  const { directory, remove } = prepare(options)
  const said = { out: "", err: "" }
  const host: Host["Service"] = {
    ...hostOf(directory, said, {}),
    env: {
      PATH: process.env["PATH"],
      HOME: directory,
      NO_COLOR: "1",
      ACME_SVC_LOGGING__JSON_FORMAT: "true",
      ...options.env
    }
  }
  const whole = run([...words, ...options.flags ?? []]).pipe(
    Effect.provide(Layer.merge(Layer.succeed(Host, host), NodeServices.layer)),
    Effect.timeout(patienceMs)
  )
  try {
    const code = await Effect.runPromise(whole)
    return { code, stdout: said.out, stderr: said.err, records: recordsOf(said.out) }
  } finally {
    remove()
  }
}

/** The commands that this test file has already run as a process, each with the kind of its database. */
const seen = new Set<string>()

/**
 * Returns whether no process has yet run this command in this file. The words before the first option or id identify a
 * command.
 */
const isFirst = (words: ReadonlyArray<string>, { env = {} }: ProcessOptions): boolean => {
  const end = words.findIndex((word) => !/^[a-z][a-z-]*$/.test(word))
  const scheme = (env["ACME_SVC_DATABASE__URL"] ?? "").split(":", 1)[0]
  const key = [scheme, ...end < 0 ? words : words.slice(0, end)].join(" ")
  // Test files share this process and this module.
  if (seen.size === 0) afterFile(() => seen.clear())
  const before = seen.size
  return before < seen.add(key).size
}

/**
 * Runs one command of the service and waits for its end. The command runs in the process of the test, because the start
 * of a process takes a hundred times as long as most commands. In a full run, a test file runs each command once for
 * each kind of database as a process of the built program, as {@link runToEnd} always does.
 */
export const commandLine = (words: ReadonlyArray<string>, options: ProcessOptions = {}): Promise<Said> =>
  isFull && isFirst(words, options) ? runToEnd(words, options) : inThisProcess(words, options)
