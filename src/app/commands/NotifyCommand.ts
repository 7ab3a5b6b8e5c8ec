import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { messageKinds } from "../../domain/Notification.ts"
import * as trial from "../../operations/notify/Trial.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { Operator } from "../CommandOperator.ts"
import * as Graph from "../Graph.ts"
import { Host } from "../Host.ts"
import { placing } from "../Places.ts"
import { withRecordsAndConfig } from "../Records.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, optionalText, optionalWord } from "./Flags.ts"
import { print } from "./Print.ts"

const testCommand = command(
  "test",
  "Send a sample of each event now and print what was answered. Example: acme-svc notify test email. Exit codes: 0, 1, 3.",
  {
    target: Argument.String("receiver").pipe(
      Argument.withDescription("email, webhook, custom, or the name of one entry. Without it, every receiver is told."),
      Argument.optional,
      Argument.map(Option.getOrUndefined)
    ),
    event: optionalWord("event", messageKinds, "Only this event. The default is each that the receiver wants."),
    profile: optionalText("profile", "Only the receivers of this profile; __admin__ for those of operators."),
    json: jsonOption
  },
  ({ event, json, profile, target }) =>
    withRecordsAndConfig(Effect.fnUntraced(function*(loaded) {
      const { config } = loaded
      const { version } = (yield* Host).process
      const tried = yield* trial.test(config, yield* Operator, { event, profile, target }).pipe(
        Effect.provide(Graph.deliveriesOf(config, version)),
        Effect.catchTag("CommandFailed", placing(loaded))
      )
      yield* print(json, tried, () =>
        renderTable(
          ["profile", "receiver", "event", "result", "answer"],
          tried.map(({ answer, backend, delivered, entry, event, profile }) => [
            profile,
            entry === "-" ? backend : `${backend} ${entry}`,
            event,
            delivered ? "ok" : "failed",
            answer
          ]),
          tried.length
        ))
      const failed = tried.filter(({ delivered }) => !delivered).length
      if (failed > 0) {
        return yield* new CommandFailed({ code: 1, message: `${failed} of ${tried.length} could not be delivered.` })
      }
    }))
)

/** `notify`: what people and programs are told. */
export const notifyCommand = Command.make("notify").pipe(
  Command.withDescription("Notifications by mail, webhook and program."),
  Command.withSubcommands([testCommand])
)
