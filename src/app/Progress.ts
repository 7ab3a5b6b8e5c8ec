import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { currentMillis } from "../engine/Time.ts"
import { Globals } from "../surfaces/cli/Globals.ts"
import { progressBar, progressLine } from "../surfaces/cli/ProgressBar.ts"
import { Host } from "./Host.ts"
import { viewOn } from "./StreamView.ts"

/** Long work, as its progress is shown. */
export interface Work {
  /** What is done, in a word or two: `Copying rows`. */
  readonly title: string
  /** How much there is to do; undefined where nobody knows. */
  readonly total: number | undefined
}

/** Told how much is done, from the beginning on. */
export type Report = (done: number) => Effect.Effect<void>

const [redrawnMs, spokenMs] = [100, 5000]
const erased = "\r\u001b[K"

/** Says on standard error how far long work has come; nothing where the output is for programs. */
export class Progress extends Context.Service<Progress, {
  /** Begins to show a piece of work: what it is told with, and what takes it off the screen. */
  readonly begin: (work: Work) => Effect.Effect<{ readonly report: Report; readonly end: Effect.Effect<void> }>
}>()("acme/app/Progress") {
  /** A bar on a terminal, a line every few seconds elsewhere. */
  static readonly layer: Layer.Layer<Progress, never, Host | Globals> = Layer.effect(
    this,
    Effect.gen(function*() {
      const { env, stderr } = yield* Host
      const globals = yield* Globals
      const nothing = { report: () => Effect.void, end: Effect.void }
      const begin = Effect.fnUntraced(function*({ title, total }: Work) {
        if (globals.json) return nothing
        const began = yield* currentMillis
        let last = began
        let isDrawn = false
        const report: Report = (done) =>
          Effect.map(currentMillis, (now) => {
            if (now - last < (stderr.isTerminal ? redrawnMs : spokenMs)) return
            last = now
            isDrawn = stderr.isTerminal
            const so = { title, done, total, elapsedMs: now - began }
            const view = viewOn(stderr, env, globals, now / 1000)
            stderr.write(isDrawn ? `${erased}${progressBar(so, view)}` : `${progressLine(so)}\n`)
          })
        return { report, end: Effect.sync(() => isDrawn ? stderr.write(erased) : undefined) }
      })
      return { begin }
    })
  )

  /** Does long work, which says how much of it is done; the bar is gone when it has ended, however it does. */
  static readonly run = <A, E, R>(
    work: Work,
    use: (report: Report) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R | Progress> =>
    Effect.flatMap(
      this,
      ({ begin }) => Effect.acquireUseRelease(begin(work), ({ report }) => use(report), ({ end }) => end)
    )
}
