import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { CredentialScope } from "../../domain/CredentialScope.ts"
import { AccountId, isId } from "../../domain/Id.ts"
import { normalizeIdentifier } from "../../domain/Identifier.ts"
import { hiddenIn } from "../../engine/HiddenText.ts"
import { comparable } from "../../engine/net/Address.ts"
import { Database } from "../../engine/sql/Database.ts"
import { kindFor } from "../../operations/acme/Scope.ts"
import * as accountRecords from "../../operations/operator/AccountRecords.ts"
import type { Supposed, SupposedAccount } from "../../operations/operator/Explain.ts"
import { explain } from "../../operations/operator/Explain.ts"
import { namedKind } from "../../operations/operator/KindRecords.ts"
import { viewOf } from "../../services/policy/PolicyView.ts"
import * as eabLabels from "../../store/eab/EabLabels.ts"
import { scopeOfAccount } from "../../store/eab/EabScopes.ts"
import { renderExplanation, renderPolicy } from "../../surfaces/cli/PolicyText.ts"
import { CommandFailed, refusedFor } from "../CommandFailed.ts"
import * as Graph from "../Graph.ts"
import { Host } from "../Host.ts"
import * as Logging from "../Logging.ts"
import { namedProfile } from "../NamedProfile.ts"
import { placing } from "../Places.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { flag, jsonOption, optional, optionalText, refusal, repeatedFlag } from "./Flags.ts"
import { print } from "./Print.ts"

const profileOption = optionalText("profile", "The profile of the policy. Not needed if there is only one.")

const clientFlag = flag("client-ip", { shown: "address", takes: "an IP address", read: comparable })

const accountFlag = flag("account-id", {
  shown: "id",
  takes: "the id of an account",
  read: (text) => isId(text) ? AccountId(text) : undefined
})

const methodFlag = flag("method", {
  shown: "word",
  takes: "an HTTP method",
  read: (text) => /^[A-Z]{1,20}$/.test(text) ? text : undefined
})

const pathFlag = flag("path", {
  shown: "path",
  takes: "a path that begins with a slash",
  read: (text) => /^\/[\x21-\x7e]{0,1000}$/.test(text) ? text : undefined
})

const namesFlag = repeatedFlag("identifier", "name").pipe(
  Flag.mapEffect((given) =>
    Effect.forEach(given, (name) =>
      Effect.mapError(
        Effect.fromResult(normalizeIdentifier(name, { dns01Enabled: true })),
        ({ detail }) => refusal(`--identifier ${JSON.stringify(name)}: ${detail}`)
      ))
  ),
  Flag.withDescription("A name in the order; may be given several times.")
)

// For any other name, finalize refuses the CSR before a script runs.
const isPlain = (text: string) => text !== "" && !text.includes(",") && hiddenIn(text) === undefined

const commonNamesFlag = repeatedFlag("common-name", "text").pipe(
  Flag.filter(
    (given) => given.every(isPlain),
    () => "--common-name takes a text without commas and control characters."
  ),
  Flag.withDescription("A common name of the CSR, for finalize; may be given several times.")
)

const refusals = {
  allowed: Effect.void,
  refused: new CommandFailed({ code: 3, message: "The policy refuses this request." }),
  undecided: new CommandFailed({ code: 1, message: "The policy cannot be decided." })
}

const show = command(
  "show",
  "Show a profile's policy, with all parentheses in its conditions. Example: acme-svc filter show --profile default. Exit codes: 0, 2, 3.",
  { profile: profileOption, json: jsonOption },
  ({ json, profile }) =>
    Effect.gen(function*() {
      const view = viewOf(yield* namedProfile(yield* Settings.loaded, profile))
      yield* print(json, view, () => renderPolicy(view))
    })
)

const explainCommand = command(
  "explain",
  "Test a profile's policy with a hypothetical request, at each stage: connection, newOrder and finalize (CSR). With --account-id, also test whether the account may order, and the scope of its credential. Scripts and look-ups really run. Example: acme-svc filter explain --client-ip 192.0.2.7 --identifier www.example.org. Exit codes: 0 allowed, 1 undecided, 2, 3 refused.",
  {
    profile: profileOption,
    client: optional(clientFlag, "The address of the client. Without it, the address is unknown."),
    names: namesFlag,
    commonNames: commonNamesFlag,
    method: methodFlag.pipe(Flag.withDefault("POST"), Flag.withDescription("HTTP method.")),
    path: pathFlag.pipe(
      Flag.withDefault("/newOrder"),
      Flag.withDescription("The path without /profile/<name>.")
    ),
    kind: optionalText(
      "kind",
      "The kind of certificate of the order. The default is the kind that an order without a kind gets."
    ),
    account: optional(
      accountFlag,
      "The account that sends the request; it may be blocked, and its credential may restrict what it orders."
    ),
    json: jsonOption
  },
  (options) =>
    Effect.gen(function*() {
      const { account, client, commonNames, json, method, names, path } = options
      const { process } = yield* Host
      const loaded = yield* Settings.loaded
      const profile = yield* namedProfile(loaded, options.profile)
      const asking = (
        sender: SupposedAccount | undefined,
        scope: CredentialScope | undefined,
        credential: Supposed["credential"]
      ) =>
        Effect.gen(function*() {
          const chosen = scope === undefined ? undefined : Result.getOrUndefined(kindFor(profile, scope, undefined))
          const kind = yield* Effect.mapError(namedKind(profile, options.kind ?? chosen?.name, "--kind"), refusedFor)
          const supposed = { client, method, path, names, commonNames, account: sender, kind: kind.name }
          return yield* Effect.provide(
            explain(profile, { ...supposed, credential, scope }),
            Graph.policiesOf(loaded.config, [profile], process.version)
          )
        }).pipe(Effect.catchTag("CommandFailed", placing(loaded)))
      // The database is needed only to find the credential of an account.
      const explanation = account === undefined
        ? yield* Effect.provide(asking(undefined, undefined, Effect.succeed(undefined)), Logging.quiet(loaded))
        : yield* withRecords(
          Effect.gen(function*() {
            const database = yield* Database
            const found = yield* accountRecords.detail(account)
            if (found.account.profile !== profile.name) {
              const message = `The account ${account} belongs to the profile ${found.account.profile}.`
              return yield* new CommandFailed({ code: 3, message })
            }
            const credential = Effect.provideService(eabLabels.ofAccount(account), Database, database)
            return yield* asking(found.account, yield* scopeOfAccount(account), credential)
          })
        )
      yield* print(json, explanation, () => renderExplanation(explanation))
      yield* refusals[explanation.outcome]
    })
)

/** `filter`: the policies on disk. A running server might not have loaded them yet. */
export const filterCommand = Command.make("filter").pipe(
  Command.withDescription("Filter policies, as configured on disk."),
  Command.withSubcommands([show, explainCommand])
)
