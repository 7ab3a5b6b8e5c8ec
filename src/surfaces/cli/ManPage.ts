import type { CommandNode, Flag } from "./CommandTree.ts"
import { leavesOf, saidOf, usualExits } from "./CommandTree.ts"
import { globalFlags } from "./Globals.ts"
import type { Sections } from "./HelpPage.ts"
import { sectioned, usageOf } from "./HelpPage.ts"

/**
 * Escapes a text for roff. In roff, a backslash begins a command, and so does a dot or an apostrophe at the beginning
 * of a line.
 */
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

/** What a manual page says about the installation. */
export interface Setting {
  /** Paragraphs of the description. */
  readonly description: ReadonlyArray<string>
  readonly files: ReadonlyArray<readonly [path: string, text: string]>
}

const anywhere: Setting = {
  description: [
    "It works in the current directory: the configuration is config.toml there, or the file that ACME_SVC_CONFIG names, and variables outrank it.",
    "A relative path of the configuration begins in that directory."
  ],
  files: [
    ["config.toml", "The configuration."],
    ["sqlite.db", "The database, unless database.url names another."],
    ["ca.pem, ca.key", "The CA of a profile that signs itself, unless signer.local_ca names others."]
  ]
}

/**
 * Renders `acme-svc.1` from the tree that the parser and the help use. `day` is the day of the package as `YYYY-MM-DD`,
 * or empty. The page in a package states where the files of the package are.
 */
export const renderManPage = (
  { children }: CommandNode,
  sections: Sections,
  { day, setting = anywhere, version }: { readonly version: string; readonly day: string; readonly setting?: Setting }
): string => {
  const lines = [
    `.TH ACME\\-SVC 1 "${day}" "acme\\-svc ${roff(version)}" "User Commands"`,
    ...titled("SH", "NAME", ["acme\\-svc \\- ACME server that hands certificates to an organisation's own clients"]),
    ...titled("SH", "SYNOPSIS", [".B acme\\-svc", ".I command", "[flags]"]),
    ...titled("SH", "DESCRIPTION", setting.description.map(roff)),
    ...titled("SH", "OPTIONS", globalFlags.flatMap(flagItem)),
    ...sectioned(sections, children).filter(([, nodes]) => nodes.length > 0).flatMap(([title, nodes]) => [
      ...titled("SH", title.toUpperCase(), []),
      ...nodes.flatMap(leavesOf).flatMap(commandPart)
    ]),
    ...titled("SH", "EXIT STATUS", usualExits.flatMap(({ code, meaning }) => item(`${code}`, meaning))),
    ...titled("SH", "FILES", setting.files.flatMap(([path, text]) => item(path, text)))
  ]
  return `${lines.join("\n")}\n`
}
