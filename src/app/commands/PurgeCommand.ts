import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { purgeObject, purgePreviewObject } from "../../operations/operator/objects/PurgeObject.ts"
import * as purge from "../../operations/operator/Purge.ts"
import { renderPreview, renderPurge } from "../../surfaces/cli/PurgeText.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { Progress } from "../Progress.ts"
import { withRecords } from "../Records.ts"
import { untilStopped } from "../Stoppable.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, numberFlag, optionalText, switchFlag } from "./Flags.ts"
import { print } from "./Print.ts"

const mostDays = 100_000

/** `order purge`: deletes orders whose certificate expired long ago. */
export const purgeCommand = command(
  "purge",
  "Delete orders whose certificate expired long ago. Example: acme-svc order purge --expired-for 400 --dry-run. Exit codes: 0, 1, 2, 3.",
  {
    days: numberFlag("expired-for", { least: 1, most: mostDays, of: "a number of days" }).pipe(
      Flag.withDescription("Delete orders whose certificate expired at least this many days ago.")
    ),
    profile: optionalText("profile", "Only orders of this profile."),
    dryRun: switchFlag("dry-run", "Show what would be deleted, and delete nothing."),
    json: jsonOption
  },
  ({ days, dryRun, json, profile }) =>
    withRecords(Effect.gen(function*() {
      const wanted = { profile, expiredForDays: days }
      const found = yield* purge.preview(wanted)
      const preview = purgePreviewObject(found)
      if (dryRun) return yield* print(json, preview, () => renderPreview(preview))
      if (found.orders > 0) yield* Confirmation.ask(`${renderPreview(preview)}\nDelete ${found.orders} order(s)?`)
      const gone = yield* Ref.make(0)
      const operator = yield* Operator
      const done = yield* Progress.run({ title: "Deleting orders", total: found.orders }, (report) =>
        untilStopped(
          purge.run(operator, wanted, (count) => Effect.andThen(Ref.set(gone, count), report(count))),
          Effect.map(Ref.get(gone), (count) => `Stopped; ${count} order(s) are deleted.`)
        ))
      const object = purgeObject(done)
      yield* print(json, object, () => renderPurge(object))
    }))
)
