import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { currentMillis } from "../engine/Time.ts"
import { Globals } from "../surfaces/cli/Globals.ts"
import { progressBar, progressLine } from "../surfaces/cli/ProgressBar.ts"
import { Host } from "./Host.ts"
import { viewOn } from "./StreamView.ts"

/** Long work, and what its display needs. */
export interface Work {
  /** The title of the work in a word or two: `Copying rows`. */
  readonly title: string
  /** The total amount of work, or undefined if it is unknown. */
  readonly total: number | undefined
}

/** Reports how much has been done since the work began. */
export type Report = (done: number) => Effect.Effect<void>

const [redrawnMs, spokenMs] = [100, 5000]
const erased = "\r\u001b[K"

/** Shows the progress of long work on standard error. Shows nothing if the output is for programs. */
export class Progress extends Context.Service<Progress, {
  /**
   * Begins to show the progress of a piece of work. Returns the function that reports the progress, and the effect that
   * removes the display from the screen.
   */
  readonly begin: (work: Work) => Effect.Effect<{ readonly report: Report; readonly end: Effect.Effect<void> }>
}>()("acme/app/Progress") {
  /** Shows a bar on a terminal. Elsewhere, shows a line every few seconds. */
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

  /** Runs long work that reports its progress. When the work has ended, in whatever way, the bar is removed. */
  static readonly run = <A, E, R>(
    work: Work,
    use: (report: Report) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R | Progress> =>
    Effect.flatMap(
      this,
      ({ begin }) => Effect.acquireUseRelease(begin(work), ({ report }) => use(report), ({ end }) => end)
    )
}
