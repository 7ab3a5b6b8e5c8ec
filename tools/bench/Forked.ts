import type { ChildProcess } from "node:child_process"
import { fork } from "node:child_process"
import { onEnd } from "./Cleanup.ts"

/*
 * Calls functions in a separate process, over Node's channel to a forked child. So the work of the bench neither counts
 * as CPU of the measured process nor delays that process.
 */

/** The functions that a process offers to its parent. */
export type Offer = { readonly [name: string]: (parameter: never) => unknown }

interface Call {
  readonly id: number
  readonly name: string
  readonly parameter: unknown
}

type Reply = { readonly id: number } & ({ readonly result: unknown } | { readonly error: string })

/** Answers calls until the parent is gone. */
export const offer = (functions: Offer): void => {
  process.on("message", ({ id, name, parameter }: Call) => {
    const reply = (reply: Reply) => void process.send?.(reply)
    Promise.resolve()
      .then(() => functions[name]?.(parameter as never))
      .then((result) => reply({ id, result }))
      .catch((error: unknown) =>
        reply({ id, error: error instanceof Error ? error.stack ?? error.message : String(error) })
      )
  })
  process.once("disconnect", () => process.exit(0))
}

/** A forked process that offers the functions `O`. */
export interface Forked<O extends Offer> {
  readonly pid: number
  readonly call: <K extends keyof O & string>(
    name: K,
    ...parameter: Parameters<O[K]>
  ) => Promise<Awaited<ReturnType<O[K]>>>
  readonly stop: () => void
}

/** Starts this program once more, as a child with the given role. */
export const startForked = <O extends Offer>(role: string): Forked<O> => {
  const child: ChildProcess = fork(process.argv[1] ?? "", ["--role", role], {
    execArgv: [...process.execArgv],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    serialization: "advanced"
  })
  const release = onEnd(() => child.kill("SIGKILL"))
  const waiting = new Map<number, { readonly done: (result: unknown) => void; readonly fail: (error: Error) => void }>()
  let lastId = 0
  child.on("message", (reply: Reply) => {
    const waiter = waiting.get(reply.id)
    waiting.delete(reply.id)
    if ("error" in reply) waiter?.fail(new Error(`${role}: ${reply.error}`))
    else waiter?.done(reply.result)
  })
  child.once("exit", (code, signal) => {
    release()
    for (const { fail } of waiting.values()) fail(new Error(`the ${role} process ended (${signal ?? `code ${code}`})`))
    waiting.clear()
  })
  return {
    pid: child.pid ?? 0,
    call: (name, ...[parameter]) =>
      new Promise((resolve, reject) => {
        const id = ++lastId
        waiting.set(id, { done: (result) => resolve(result as never), fail: reject })
        child.send({ id, name, parameter } satisfies Call)
      }),
    stop: () => void child.kill("SIGKILL")
  }
}
