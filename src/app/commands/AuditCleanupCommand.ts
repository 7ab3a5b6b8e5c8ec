import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as auditTrail from "../../operations/operator/AuditTrail.ts"
import { receiversOf } from "../../settings/AuditTable.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { Progress } from "../Progress.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import { untilStopped } from "../Stoppable.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, numberFlag } from "./Flags.ts"
import { print } from "./Print.ts"

const mostDays = 100_000

/** `audit cleanup`. This command is not an act, because it can be stopped half-way and shows its progress. */
export const cleanupCommand = command(
  "cleanup",
  "Delete old rows of the audit trail. Example: acme-svc audit cleanup --older-than 365. Exit codes: 0, 1, 2, 3.",
  {
    days: numberFlag("older-than", { least: 1, most: mostDays, of: "a number of days" }).pipe(
      Flag.withDescription("Delete rows that are older than this many days.")
    ),
    json: jsonOption
  },
  ({ days, json }) =>
    withRecords(Effect.gen(function*() {
      const config = yield* Effect.option(Settings.loaded)
      const receivers = Option.getOrUndefined(Option.map(config, ({ config }) => receiversOf(config.audit)))
      const { rows, waitsFor } = yield* auditTrail.preview(days, receivers)
      if (waitsFor !== undefined) {
        yield* Console.error(`Older rows are kept until audit.${waitsFor} has taken them (acme-svc audit receivers).`)
      }
      if (rows > 0) yield* Confirmation.ask(`Delete ${rows} row(s) of the audit trail older than ${days} day(s)?`)
      const gone = yield* Ref.make(0)
      const operator = yield* Operator
      const { removed } = yield* Progress.run({ title: "Deleting rows", total: rows }, (report) =>
        untilStopped(
          auditTrail.cleanup(operator, days, {
            receivers,
            told: (count) => Effect.andThen(Ref.set(gone, count), report(count))
          }),
          Effect.map(Ref.get(gone), (count) => `Stopped; ${count} row(s) are deleted.`)
        ))
      yield* print(json, { removed }, () => `Deleted ${removed} row(s).`)
    }))
)
