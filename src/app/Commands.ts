import type * as Array from "effect/Array"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type { CommandNode } from "../surfaces/cli/CommandTree.ts"
import { describedBy } from "../surfaces/cli/CommandTree.ts"
import type { Sections } from "../surfaces/cli/HelpPage.ts"
import { renderHelp } from "../surfaces/cli/HelpPage.ts"
import { Rendered } from "../surfaces/cli/Rendered.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { commandTree } from "./commands/Descriptor.ts"
import { helpOn } from "./commands/Usage.ts"

const actCommands = () => import("./commands/ActCommand.ts")

/** The commands by name. A command is loaded only when it is used, so that it does not slow down other commands. */
const commands = {
  serve: async () => (await import("./commands/ServeCommand.ts")).serveCommand,
  setup: async () => (await import("./commands/SetupCommand.ts")).setupCommand,
  init: async () => (await import("./commands/InitCommand.ts")).initCommand,
  migrate: async () => (await import("./commands/MigrateCommand.ts")).migrateCommand,
  config: async () => (await import("./commands/ConfigCommand.ts")).configCommand,
  profile: async () => (await import("./commands/ProfileCommand.ts")).profileCommand,
  kinds: async () => (await import("./commands/KindsCommand.ts")).kindsCommand,
  health: async () => (await import("./commands/HealthCommand.ts")).healthCommand,
  transfer: async () => (await import("./commands/TransferCommand.ts")).transferCommand,
  guide: async () => (await import("./commands/GuideCommand.ts")).guideCommand,
  account: async () => {
    const { accountActs } = await import("../surfaces/operator/acts/AccountActs.ts")
    return (await actCommands()).actCommand(accountActs, "account")
  },
  eab: async () => {
    const { credentialActs } = await import("../surfaces/operator/acts/CredentialActs.ts")
    return (await actCommands()).actCommand(credentialActs, "eab")
  },
  admin: async () => (await import("./commands/AdminCommand.ts")).adminCommand,
  order: async () => (await import("./commands/OrderCommand.ts")).orderCommand,
  cert: async () => {
    const { certificateActs } = await import("../surfaces/operator/acts/CertificateActs.ts")
    return (await actCommands()).actCommand(certificateActs, "cert")
  },
  campaign: async () => {
    const { campaignActs } = await import("../surfaces/operator/acts/CampaignActs.ts")
    return (await actCommands()).actCommand(campaignActs, "campaign")
  },
  nonce: async () => {
    const { nonceActs } = await import("../surfaces/operator/acts/NonceActs.ts")
    return (await actCommands()).actCommand(nonceActs, "nonce")
  },
  audit: async () => {
    const [{ auditActs }, { cleanupCommand }, { verifyCommand }] = await Promise.all([
      import("../surfaces/operator/acts/AuditActs.ts"),
      import("./commands/AuditCleanupCommand.ts"),
      import("./commands/AuditVerifyCommand.ts")
    ])
    return (await actCommands()).actCommand(auditActs, "audit", { audit: [verifyCommand, cleanupCommand] })
  },
  ca: async () => (await import("./commands/CaCommand.ts")).caCommand,
  crl: async () => (await import("./commands/CrlCommand.ts")).crlCommand,
  jobs: async () => {
    const [{ jobActs }, { Activity }] = await Promise.all([
      import("../surfaces/operator/acts/JobActs.ts"),
      import("../operations/operator/Activity.ts")
    ])
    return (await actCommands()).actCommand(jobActs, "jobs", {}, { "jobs queue": Activity.layer([]) })
  },
  attention: async () => {
    const [{ attentionActs }, { Attention }, { authorities }, { Configured }] = await Promise.all([
      import("../surfaces/operator/acts/AttentionActs.ts"),
      import("../operations/operator/Attention.ts"),
      import("./commands/AuthoritiesHere.ts"),
      import("../surfaces/operator/Acting.ts")
    ])
    const own = Layer.provide(Layer.unwrap(Effect.map(Configured.config, Attention.layer)), authorities)
    return (await actCommands()).soleCommand(attentionActs, { attention: own })
  },
  worker: async () => {
    const { jobActs } = await import("../surfaces/operator/acts/JobActs.ts")
    return (await actCommands()).actCommand(jobActs, "worker")
  },
  filter: async () => (await import("./commands/FilterCommand.ts")).filterCommand,
  notify: async () => (await import("./commands/NotifyCommand.ts")).notifyCommand,
  upstream: async () => (await import("./commands/UpstreamCommand.ts")).upstreamCommand,
  explain: async () => (await import("./commands/ExplainCommand.ts")).explainCommand,
  docs: async () => (await import("./commands/DocsCommand.ts")).docsCommand,
  completions: async () => (await import("./commands/HelpCommand.ts")).completionsCommand(whole),
  man: async () => (await import("./commands/HelpCommand.ts")).manCommand(whole, sections),
  help: async () => (await import("./commands/HelpCommand.ts")).helpCommand(showHelp)
}

/** The sections of the commands, in the order of the help. A command that no section lists comes last. */
export const sections: Sections = [
  ["Service", [
    "setup",
    "serve",
    "init",
    "config",
    "health",
    "attention",
    "jobs",
    "worker",
    "notify",
    "migrate",
    "transfer",
    "nonce"
  ]],
  ["Certificates", ["guide", "account", "order", "cert", "campaign", "eab", "ca", "crl", "upstream"]],
  ["Policy and operators", [
    "profile",
    "kinds",
    "filter",
    "admin",
    "audit",
    "explain",
    "docs",
    "completions",
    "man",
    "help"
  ]]
]

/**
 * What each command does. These sentences are for the help page of the program, which loads no command. They are the
 * first sentences of the commands' own pages.
 */
const summaries: { readonly [word in keyof typeof commands]: string } = {
  serve: "Run the service until SIGTERM or SIGINT; SIGHUP reloads the configuration",
  init:
    "Migrate the database and create what is missing: a first config.toml with the first operator, the CA, the TLS key and certificate",
  setup: "Ask what a first configuration needs, write it, check it, and create everything for a start",
  migrate: "Apply pending schema migrations",
  config: "The configuration, as it is on disk",
  profile: "ACME endpoints",
  kinds: "Kinds of certificates",
  health: "Check whether a running service is healthy",
  transfer: "Copy every row of every table to another database",
  guide: "What somebody on another machine needs to get a certificate",
  account: "Accounts of ACME clients",
  eab: "Credentials for external account binding",
  admin: "Operators, their tokens and sessions",
  order: "Orders and their certificates",
  cert: "Certificates",
  campaign: "Campaigns, which ask clients to replace certificates",
  nonce: "Nonces of the ACME protocol",
  audit: "The audit trail",
  ca: "The CAs of profiles: list, make, request, sign, take over, replace, try",
  crl: "Revocation lists of the local CAs",
  attention: "Tell what needs attention, the most urgent first, and which command and runbook help",
  jobs: "Jobs in the queue",
  worker: "Processes of the service",
  filter: "Filter policies, as configured on disk",
  notify: "Notifications by mail, webhook and program",
  upstream: "The accounts and orders of relays at their upstreams",
  explain:
    "Print what a word means, and what to do: an event of the log, an error, a configuration key or a metric; it needs no configuration and no database",
  docs:
    "Serve the documents to a browser on this machine, until Ctrl-C; it needs no configuration, no database and no network",
  completions: "Print the completion script of a shell; it needs no configuration and no database",
  man: "Print the manual page, as roff; it needs no configuration and no database",
  help: "Print what a command does, and its flags and arguments"
}

export type AnyCommand = Awaited<ReturnType<(typeof commands)[keyof typeof commands]>>

const isWord = (word: string): word is keyof typeof commands => Object.hasOwn(commands, word)
const words = Object.keys(commands).filter(isWord)

/**
 * Returns the command that the first word names. If there is no word, returns all commands, because the help and the
 * completions list all of them.
 */
export const meant = (word = ""): Effect.Effect<Array.NonEmptyReadonlyArray<AnyCommand>> =>
  Effect.promise(async () =>
    isWord(word)
      ? [await commands[word]()]
      : [
        await commands.serve(),
        ...await Promise.all(words.filter((other) => other !== "serve").map((other) => commands[other]()))
      ]
  )

const about = "An ACME server for an organisation's own clients."

/** The commands, with only their summaries. */
export const outline: CommandNode = {
  path: ["acme-svc"],
  ...describedBy(about),
  flags: [],
  args: [],
  children: words.map((word) => ({
    path: ["acme-svc", word],
    ...describedBy(summaries[word]),
    flags: [],
    args: [],
    children: []
  }))
}

/** Makes the command tree from the commands that this command line needs. */
export const tree = (all: Array.NonEmptyReadonlyArray<AnyCommand>) => {
  const serve = Effect.flatMap(
    Effect.promise(() => import("./commands/ServeCommand.ts")),
    ({ serveEverything }) => serveEverything
  )
  return Command.make("acme-svc", {}, () => serve).pipe(
    Command.withDescription(about),
    Command.withSubcommands(all)
  )
}

/** Returns the command tree in which the first word of a command line is looked up. */
const treeOf = (word?: string) => Effect.map(meant(word), tree)

/** Returns the commands in which the first word of a command line is looked up. */
export type Among = (word?: string) => Effect.Effect<Array.NonEmptyReadonlyArray<AnyCommand>>

/** Every command, as data. */
export const whole: Effect.Effect<CommandNode> = Effect.suspend(() => Effect.map(treeOf(), (root) => commandTree(root)))

/** Returns the failure for a wrong command line. The sentence says what is wrong. */
export const wrong = (sentence: string) => new CommandFailed({ code: 2, message: sentence })

/** Prints the help page for the given words. */
export const showHelp = (words: ReadonlyArray<string>): Effect.Effect<void, CommandFailed> =>
  Effect.gen(function*() {
    const first = words.find((word) => !word.startsWith("-"))
    const node = first === undefined
      ? outline
      : yield* Effect.fromResult(Result.mapError(helpOn(commandTree(yield* treeOf(first)), words), wrong))
    yield* Console.log(new Rendered((view) => renderHelp(node, view, sections)))
  })
