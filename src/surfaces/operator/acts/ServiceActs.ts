import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Database } from "../../../engine/sql/Database.ts"
import { atPrimary } from "../../../engine/sql/Lag.ts"
import { Activity } from "../../../operations/operator/Activity.ts"
import * as operators from "../../../operations/operator/identity/Operators.ts"
import { trendObject } from "../../../operations/operator/objects/TrendObject.ts"
import { longestQuery, search, searchObject } from "../../../operations/operator/Search.ts"
import { trendRanges } from "../../../operations/operator/Trends.ts"
import { act, noun } from "../Act.ts"
import { Acting, ApiDocument } from "../Acting.ts"
import { line, ofProfile, or, word } from "../Field.ts"
import { Int, Members, Time } from "../schemas/Common.ts"

/*
 * Declares the acts about the service as a whole: its search, its activity, and the document of its API. These acts
 * have no commands.
 */

const Found = Schema.Struct({
  query: Schema.String,
  results: Schema.Array(Schema.Struct({
    kind: Schema.String,
    id: Schema.String,
    profile: Schema.optionalKey(Schema.String),
    label: Schema.String,
    url: Schema.String
  })),
  truncated: Schema.optionalKey(Schema.Boolean),
  hint: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "Found" })

const Trends = Schema.Struct({
  buckets: Schema.Array(Schema.Struct({
    start: Time,
    issued: Int,
    refused: Int,
    revoked: Int
  })),
  bucketSeconds: Int
}).annotate({ identifier: "Trends" })

/** Finds the records that a text in the search box may mean. Operators are found only if the caller is an admin. */
export const found = (text: string, isTyping = false) =>
  Effect.flatMap(
    Acting,
    ({ role }) =>
      search(text, {
        isTyping,
        maySeeOperators: role === "admin",
        operators: (part, limit) => atPrimary(operators.containing(part, limit))
      })
  )

/** Finds records that match a text. */
export const searchRecords = act({
  id: "search",
  does: "Find a record by its id, its serial number, a contact, an address or a name",
  access: "viewer",
  mayLag: true,
  input: {
    q: line("An id, a serial number or its beginning, a contact, an address of a client, or a name.", {
      longest: longestQuery
    })
  },
  output: Found,
  errors: [],
  run: ({ q }) => Effect.map(found(q), searchObject),
  http: { route: "GET /api/search" }
})

/** Counts events over time, for one profile or for all profiles. */
export const readTrends = act({
  id: "readTrends",
  does: "Count issuances, refusals and revocations over time",
  access: "viewer",
  input: { ...ofProfile, range: or(word(trendRanges, "How far back."), "24h") },
  output: Trends,
  errors: [],
  run: ({ profile, range }) => Effect.map(Effect.flatMap(Activity, ({ trend }) => trend(profile, range)), trendObject),
  http: { route: "GET /api/trends" }
})

const readOpenApi = act({
  id: "readOpenApi",
  does: "Show the OpenAPI document of this API",
  access: "viewer",
  input: {},
  output: Members,
  errors: [],
  run: () => Effect.flatMap(ApiDocument, ({ document }) => document),
  http: { route: "GET /api/openapi.json" }
})

const readHealth = act({
  id: "readHealth",
  does: "Say whether this process serves",
  access: "public",
  input: {},
  output: Schema.Struct({
    healthy: Schema.Literal(true),
    database: Schema.optionalKey(Schema.Literal("read-only")),
    standby: Schema.optionalKey(Schema.Struct({
      state: Schema.Literals(["untried", "answers", "away", "behind", "foreign", "failed"]),
      lagMs: Schema.optionalKey(Int)
    }))
  }),
  errors: [],
  // Nothing outside this process is asked, so that a load balancer learns only the state of this process.
  run: () =>
    Effect.map(Database, ({ isReadOnly, standby }) => ({
      healthy: true as const,
      ...isReadOnly() ? { database: "read-only" as const } : {},
      ...standby === undefined ? {} : { standby: standby.state() }
    })),
  http: { route: "GET /health" }
})

/** The acts about search, activity and the document of the API. */
export const serviceActs = noun({
  name: "service",
  description: "The search box, the activity of the service, and the document of this API.",
  commands: {},
  acts: [searchRecords, readTrends, readOpenApi]
})

/** The act about the health of this process. */
export const healthActs = noun({
  name: "health",
  description: "Health of this process, for load balancers.",
  commands: {},
  acts: [readHealth]
})
