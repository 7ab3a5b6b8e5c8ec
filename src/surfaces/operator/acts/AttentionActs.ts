import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { attentionCauseNames } from "../../../domain/words/AttentionCause.ts"
import { Attention, attentionSources } from "../../../operations/operator/Attention.ts"
import { attentionObject } from "../../../operations/operator/objects/AttentionObject.ts"
import { renderAttention } from "../../cli/AttentionText.ts"
import { act, noun } from "../Act.ts"
import { intOf, Time } from "../schemas/Common.ts"

/* Declares the act that tells what needs attention. */

const Concern = Schema.Struct({
  cause: Schema.Literals(attentionCauseNames),
  severity: Schema.Literals(["alarm", "warning"]),
  title: Schema.String.annotate({ description: "What has happened." }),
  effect: Schema.String.annotate({ description: "Who or what suffers from it." }),
  count: Schema.optionalKey(intOf("The number of things concerned.")),
  since: Schema.optionalKey(Time),
  error: Schema.optionalKey(Schema.String.annotate({ description: "The last error." })),
  page: Schema.String.annotate({ description: "The page of the panel that shows it, as a path." }),
  pageTitle: Schema.String,
  command: Schema.String.annotate({ description: "The command that shows it." }),
  runbook: Schema.String.annotate({ description: "The name of the page that says what to do." })
}).annotate({ identifier: "Concern" })

const Output = Schema.Struct({
  items: Schema.Array(Concern),
  unread: Schema.Array(Schema.Literals(attentionSources)).annotate({
    description: "What could not be read in time. There may be concerns that only these sources know."
  }),
  asOf: Time,
  wellSince: Schema.optionalKey(Time).annotateKey({
    description: "Since when this process has seen nothing that needs attention. Absent if something does."
  })
}).annotate({ identifier: "NeedsAttention" })

/** Tells what needs attention. */
export const readAttention = act({
  id: "readAttention",
  does: "Tell what needs the attention of an operator, the most urgent first",
  access: "viewer",
  input: {},
  output: Output,
  errors: [],
  run: () => Effect.map(Effect.flatMap(Attention, ({ now }) => now), attentionObject),
  http: { route: "GET /api/attention" },
  cli: {
    command: "attention",
    help: "Tell what needs attention, the most urgent first, and which command and runbook help.",
    example: "attention",
    needsConfig: () => true,
    text: renderAttention,
    // A command has looked only once, so it does not know since when all is well.
    json: ({ asOf, items, unread }) => ({ items, unread, asOf })
  }
})

/** The act about what needs attention. */
export const attentionActs = noun({
  name: "attention",
  description: "What needs the attention of an operator.",
  commands: {},
  acts: [readAttention]
})
