import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import type { Around } from "../../operations/operator/ChainCheck.ts"
import { ChainProgress } from "../../operations/operator/ChainCheck.ts"
import { verifyAudit } from "../../surfaces/operator/acts/AuditActs.ts"
import { Progress } from "../Progress.ts"
import { untilStopped } from "../Stoppable.ts"
import { partsOf } from "./ActCommand.ts"
import { command } from "./Descriptor.ts"

const { name, parameters, run, text } = partsOf(verifyAudit, {
  ...verifyAudit.cli,
  command: "audit verify",
  example: "audit verify"
})

/** `audit verify`: the act, with its progress shown. It can be stopped, because it may read millions of rows. */
export const verifyCommand = command(
  name,
  text,
  parameters,
  (read: { readonly [name: string]: unknown }) =>
    Effect.gen(function*() {
      const progress = yield* Progress
      const checked = yield* Ref.make(0)
      const around: Around = (total, work) =>
        Effect.provideService(
          Progress.run(
            { title: "Verifying rows", total },
            (report) => work((done) => Effect.andThen(Ref.set(checked, done), report(done)))
          ),
          Progress,
          progress
        )
      yield* untilStopped(
        Effect.provideService(run(read), ChainProgress, { around }),
        Effect.map(Ref.get(checked), (done) => `Stopped; the ids of ${done} row(s) were checked. Nothing was changed.`)
      )
    })
)
