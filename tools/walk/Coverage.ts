import { readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { thisBuild } from "../../test/support/Server.ts"

/* The functions of `src` that run in a service, as its inspector counts them. */

/** Prepares one operation and returns a function that does it. */
export type Prepare = () => (() => Promise<unknown>) | Promise<() => Promise<unknown>>

/** A function that ran for an operation. */
export interface Walked {
  readonly file: string
  readonly line: number
  /** Its name, or that of the declaration around it if it has none. */
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

// The length of every interval. It is longer than any operation with its job, and equal lengths make the counts
// comparable.
const intervalMs = 1000
const intervals = 5
// After this time, the work that the preparation of an operation has left is done.
const settleMs = 200

const placeOf = ({ file, offset }: Called): string => `${file}:${offset}`

/** The offsets are those of the sources, because removed types are replaced by blanks. */
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

/** Connects to the inspector at this address and makes it count every call from now on. */
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

  /** The calls since the previous request. */
  const take = async (): Promise<ReadonlyArray<Called>> => {
    const { result } = await ask("Profiler.takePreciseCoverage") as {
      readonly result: { readonly result: ReadonlyArray<ScriptCoverage> }
    }
    return result.result.flatMap(calledOf)
  }

  /** The median of how often each function is called in an interval with an operation. */
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
   * The functions that run for an operation: those called more often in an interval with it than in one without it. Both
   * are medians of several intervals, so that loops which run in every interval cancel out, and what runs now and then
   * does not count.
   */
  const walk = async (prepare: Prepare): Promise<ReadonlyArray<Walked>> =>
    [...await usual(prepare)]
      .filter(([place, { count }]) => count > (background.get(place)?.count ?? 0))
      .map(([, called]) => walkedOf(called))
      .sort((one, other) => one.file.localeCompare(other.file) || one.line - other.line)
  return { walk, close: () => socket.close() }
}
