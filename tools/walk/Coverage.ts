import { readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { thisBuild } from "../../test/support/Server.ts"

/*
 * Finds the functions of `src` that run in a service for an operation. The inspector of the service counts the calls.
 */

/** Prepares an operation and returns a function that performs it. */
export type Prepare = () => (() => Promise<unknown>) | Promise<() => Promise<unknown>>

/** A function that ran for an operation. */
export interface Walked {
  readonly file: string
  readonly line: number
  /** The function's name. A function without a name has the name of the declaration around it. */
  readonly name: string
}

interface Called {
  readonly file: string
  readonly offset: number
  readonly name: string
  readonly count: number
}

interface ScriptCoverage {
  readonly url: string
  readonly functions: ReadonlyArray<{
    readonly functionName: string
    readonly ranges: ReadonlyArray<{ readonly startOffset: number; readonly count: number }>
  }>
}

// The length of every interval. An interval is longer than any operation with its job, and equal lengths make the
// counts comparable.
const intervalMs = 1000
const intervals = 5
// The preparation of an operation may cause further work, which is done after this time.
const settleMs = 200

const placeOf = ({ file, offset }: Called): string => `${file}:${offset}`

/** Finds a function's name. Node replaces types by blanks, so the offsets are the same as in the sources. */
const walkedOf = ({ file, name, offset }: Called): Walked => {
  const before = readFileSync(join(thisBuild, file), "utf8").slice(0, offset)
  const [around = ""] = before.match(/(?<=^(?:export )?(?:const|class|function\*?) )\w+/gm)?.slice(-1) ?? []
  return { file, line: before.split("\n").length, name: name === "" ? `(in ${around})` : name }
}

const calledOf = ({ functions, url }: ScriptCoverage): ReadonlyArray<Called> => {
  const file = url.startsWith("file:") ? relative(thisBuild, fileURLToPath(url)) : ""
  if (!file.startsWith("src/")) return []
  return functions.flatMap(({ functionName: name, ranges: [whole] }) =>
    whole === undefined || whole.count === 0 ? [] : { file, offset: whole.startOffset, name, count: whole.count }
  )
}

/** Connects to the inspector at this address. From then on the inspector counts every call. */
export const countCalls = async (inspector: string) => {
  const socket = new WebSocket(inspector)
  const gone = new Promise<never>((_, fail) => {
    socket.addEventListener("close", () => fail(new Error("the inspector is gone")))
  })
  gone.catch(() => undefined)
  const event = (type: "open" | "message"): Promise<MessageEvent> =>
    Promise.race([
      gone,
      new Promise<MessageEvent>((done) => {
        socket.addEventListener(type, (seen) => done(seen as MessageEvent), { once: true })
      })
    ])
  await event("open")
  const ask = async (method: string, params: object = {}): Promise<unknown> => {
    const answered = event("message")
    socket.send(JSON.stringify({ id: 1, method, params }))
    return JSON.parse(String((await answered).data))
  }
  await ask("Profiler.enable")
  await ask("Profiler.startPreciseCoverage", { callCount: true, detailed: true })

  /** Returns the functions that were called since the previous request. */
  const take = async (): Promise<ReadonlyArray<Called>> => {
    const { result } = await ask("Profiler.takePreciseCoverage") as {
      readonly result: { readonly result: ReadonlyArray<ScriptCoverage> }
    }
    return result.result.flatMap(calledOf)
  }

  /** Returns for each function the median of its calls in several intervals with an operation. */
  const usual = async (prepare: Prepare): Promise<ReadonlyMap<string, Called>> => {
    const seen = new Map<string, Array<Called>>()
    for (let interval = 0; interval < intervals; interval++) {
      const operation = await prepare()
      await delay(settleMs)
      await take()
      const end = delay(intervalMs, "late")
      if (await Promise.race([operation(), end]) === "late") throw new Error(`not done in ${intervalMs} ms`)
      await end
      for (const one of await take()) seen.set(placeOf(one), [...seen.get(placeOf(one)) ?? [], one])
    }
    const medians = [...seen].map(([place, all]) =>
      [place, all.sort((one, other) => other.count - one.count)[intervals >> 1]] as const
    )
    return new Map(medians.flatMap(([place, median]) => median === undefined ? [] : [[place, median]]))
  }
  const background = await usual(() => () => Promise.resolve())

  /**
   * Returns the functions that run for an operation, which are called more often in an interval with the operation than
   * in an interval without it. Both numbers are medians of several intervals. So loops that run in every interval do
   * not count. Work that is done only sometimes does not count either.
   */
  const walk = async (prepare: Prepare): Promise<ReadonlyArray<Walked>> =>
    [...await usual(prepare)]
      .filter(([place, { count }]) => count > (background.get(place)?.count ?? 0))
      .map(([, called]) => walkedOf(called))
      .sort((one, other) => one.file.localeCompare(other.file) || one.line - other.line)
  return { walk, close: () => socket.close() }
}
