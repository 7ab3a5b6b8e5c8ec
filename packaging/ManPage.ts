import { Effect } from "effect"
import { sections, whole } from "../src/app/Cli.ts"
import type { CommandNode, Flag } from "../src/surfaces/cli/CommandTree.ts"
import { leavesOf, saidOf, usualExits } from "../src/surfaces/cli/CommandTree.ts"
import { globalFlags } from "../src/surfaces/cli/Globals.ts"
import { sectioned, usageOf } from "../src/surfaces/cli/HelpPage.ts"

/** Text as roff takes it: a backslash, and a dot or an apostrophe that begins a line, would be commands of its own. */
const roff = (text: string): string =>
  text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replaceAll(/^([.'])/gm, "\\&$1").replaceAll("…", "...")

const titled = (mark: "SH" | "SS", title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> => [
  `.${mark} "${roff(title)}"`,
  ...lines
]

const item = (term: string, text: string): ReadonlyArray<string> => [".TP", `.B ${roff(term)}`, roff(text)]

const flagItem = (flag: Flag): ReadonlyArray<string> =>
  item(
    [[...flag.aliases, flag.name].join(", "), flag.value ?? ""].join(" ").trim(),
    [saidOf(flag, false), flag.fallback === undefined ? "" : `Default: ${flag.fallback}.`].join(" ").trim() ||
      "See above."
  )

const commandPart = (node: CommandNode): ReadonlyArray<string> =>
  titled("SS", node.path.slice(1).join(" "), [
    `.B ${roff(usageOf(node))}`,
    ".PP",
    roff(node.text),
    ...[...node.args, ...node.flags].flatMap(flagItem),
    ...node.example === undefined ? [] : [".PP", "Example:", ".PP", ".RS", ".nf", roff(node.example), ".fi", ".RE"]
  ])

/** `acme-svc.1`, from the tree that the parser and the help use; the day is that of the package. */
export const manPage = async (version: string, day: string): Promise<string> => {
  const { children } = await Effect.runPromise(whole)
  const lines = [
    `.TH ACME\\-SVC 1 "${day}" "acme\\-svc ${roff(version)}" "User Commands"`,
    ...titled("SH", "NAME", ["acme\\-svc \\- ACME server that hands certificates to an organisation's own clients"]),
    ...titled("SH", "SYNOPSIS", [".B acme\\-svc", ".I command", "[flags]"]),
    ...titled("SH", "DESCRIPTION", [
      roff("As root it works on the service of this host: as its user, in /var/lib/acme-svc, with its configuration."),
      roff("As anybody else it works in the current directory.")
    ]),
    ...titled("SH", "OPTIONS", globalFlags.flatMap(flagItem)),
    ...sectioned(sections, children).filter(([, nodes]) => nodes.length > 0).flatMap(([title, nodes]) => [
      ...titled("SH", title.toUpperCase(), []),
      ...nodes.flatMap(leavesOf).flatMap(commandPart)
    ]),
    ...titled("SH", "EXIT STATUS", usualExits.flatMap(({ code, meaning }) => item(`${code}`, meaning))),
    ...titled("SH", "FILES", [
      ...item("/etc/acme-svc/config.toml", "The configuration."),
      ...item("/etc/acme-svc/env", "Lines of variables with secrets, which outrank the configuration."),
      ...item("/var/lib/acme-svc", "The database, the CA and its keys.")
    ])
  ]
  return `${lines.join("\n")}\n`
}
