import { Command, Options } from "@effect/cli"
import { Effect, Either, Option } from "effect"
import { comparable } from "../../domain/Address.ts"
import { AccountId, isId } from "../../domain/Id.ts"
import { normalizeIdentifier } from "../../domain/Identifier.ts"
import type { Supposed } from "../../operations/admin/explain.ts"
import { explain } from "../../operations/admin/explain.ts"
import type { Config, ProfileConfig } from "../../subsystems/config/AppConfig.ts"
import { Database } from "../../subsystems/db/Database.ts"
import * as eabLabels from "../../subsystems/db/eabLabels.ts"
import { viewOf } from "../../subsystems/policy/View.ts"
import { renderExplanation, renderPolicy } from "../../surfaces/cli/filter.ts"
import { CommandFailed } from "../CommandFailed.ts"
import * as Graph from "../Graph.ts"
import type { Kit } from "./Kit.ts"
import { described, jsonOption, print } from "./Kit.ts"

const profileOption = Options.text("profile").pipe(
  Options.optional,
  Options.withDescription("Whose policy. Not needed where there is one profile.")
)

/** The profile that is named, or the only one. */
const profileOf = (config: Config, given: Option.Option<string>): Effect.Effect<ProfileConfig, CommandFailed> => {
  const [only, second] = config.profiles
  const found = Option.match(given, {
    onNone: () => second === undefined ? only : undefined,
    onSome: (name) => config.profiles.find((profile) => profile.name === name)
  })
  if (found !== undefined) return Effect.succeed(found)
  return Option.isNone(given)
    ? new CommandFailed({ code: 2, message: "--profile is needed: there are several." })
    : new CommandFailed({ code: 3, message: `--profile: ${given.value} is not configured.` })
}

const wrong = (message: string) => new CommandFailed({ code: 2, message })

const clientOf = (given: Option.Option<string>) => {
  if (Option.isNone(given)) return Effect.succeed(undefined)
  const client = comparable(given.value)
  return client === undefined ? wrong("--client-ip takes an IP address.") : Effect.succeed(client)
}

const namesOf = (given: ReadonlyArray<string>) =>
  Effect.forEach(given, (name) => {
    const normal = normalizeIdentifier(name, { dns01Enabled: true })
    return Either.isRight(normal)
      ? Effect.succeed(normal.right)
      : wrong(`--identifier ${JSON.stringify(name)}: ${normal.left.detail}`)
  })

const accountOf = (given: Option.Option<string>) =>
  Option.isNone(given) || isId(given.value)
    ? Effect.succeed(Option.map(given, AccountId))
    : wrong("--account-id takes the id of an account.")

const refusals = {
  allowed: Effect.void,
  refused: new CommandFailed({ code: 3, message: "The policy refuses this request." }),
  undecided: new CommandFailed({ code: 1, message: "The policy cannot be decided." })
}

/** `filter`: the policies on disk, before a running server has them. */
export const filterCommand = (kit: Kit) => {
  const show = described(
    Command.make("show", { profile: profileOption, json: jsonOption }, ({ json, profile }) =>
      Effect.gen(function*() {
        const { config } = yield* kit.load
        const view = viewOf(yield* profileOf(config, profile))
        yield* print(json, view, () => renderPolicy(view))
      })),
    "Show a profile's policy, conditions in full parentheses. Example: acme-svc filter show --profile default. Exit codes: 0, 2, 3."
  )
  const explainCommand = described(
    Command.make("explain", {
      profile: profileOption,
      clientIp: Options.text("client-ip").pipe(
        Options.optional,
        Options.withDescription("Where the request comes from; unknown without it.")
      ),
      identifiers: Options.text("identifier").pipe(
        Options.repeated,
        Options.withDescription("A name that is ordered; may be given several times.")
      ),
      method: Options.text("method").pipe(Options.withDefault("POST"), Options.withDescription("HTTP method.")),
      path: Options.text("path").pipe(
        Options.withDefault("/newOrder"),
        Options.withDescription("Path without /profile/<name>.")
      ),
      accountId: Options.text("account-id").pipe(
        Options.optional,
        Options.withDescription("The account that asks; its credential is what eab checks look at.")
      ),
      json: jsonOption
    }, (options) =>
      Effect.gen(function*() {
        const { json, method, path } = options
        const loaded = yield* kit.load
        const profile = yield* profileOf(loaded.config, options.profile)
        const client = yield* clientOf(options.clientIp)
        const names = yield* namesOf(options.identifiers)
        const account = yield* accountOf(options.accountId)
        const asking = (credential: Supposed["credential"]) =>
          Effect.provide(
            explain(profile, {
              client,
              method,
              path,
              names,
              accountId: Option.getOrElse(account, () => ""),
              credential
            }),
            Graph.policiesOf(loaded.config, [profile], kit.host.process.version)
          )
        // Only the credential of an account is in the database.
        const asksForCredentials = viewOf(profile).checks.some(({ type }) => type === "eab")
        const explanation = Option.isSome(account) && asksForCredentials
          ? yield* kit.records(() =>
            Effect.flatMap(Database, (database) =>
              asking(Effect.provideService(eabLabels.ofAccount(account.value), Database, database)))
          )
          : yield* Effect.provide(asking(Effect.succeed(undefined)), kit.quiet(loaded))
        yield* print(json, explanation, () =>
          renderExplanation(explanation))
        yield* refusals[explanation.outcome]
      })),
    "Ask a profile's policy about a request that need not exist. Scripts and look-ups are really run. Example: acme-svc filter explain --client-ip 192.0.2.7 --identifier www.example.org. Exit codes: 0 allowed, 1 undecided, 2, 3 refused."
  )
  return described(
    Command.make("filter").pipe(Command.withSubcommands([show, explainCommand])),
    "Filter policies, as configured on disk."
  )
}
