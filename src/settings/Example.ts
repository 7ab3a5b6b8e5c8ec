import type { Declared, Default } from "../engine/config/Key.ts"
import { declaredKeys } from "../engine/config/Key.ts"
import { variableOf } from "../engine/config/KeyPath.ts"
import { table } from "./Table.ts"

const width = 110

/** Returns comment lines: each begins with `# ` and has as many words as fit. */
const comment = (text: string): ReadonlyArray<string> =>
  text.split(" ").reduce<ReadonlyArray<string>>((lines, word) => {
    const last = lines.at(-1)
    return last === undefined || last.length + word.length >= width
      ? [...lines, `# ${word}`]
      : [...lines.slice(0, -1), `${last} ${word}`]
  }, [])

const toml = (value: Default): string => {
  if (value === undefined) return "unset"
  if (typeof value === "string") return JSON.stringify(value)
  return typeof value === "object" ? `[${value.map(toml).join(", ")}]` : String(value)
}

/** Returns the accepted values of a key, in words. */
export const typeOf = ({ facts: { kind, rule } }: Declared): string => {
  if (kind === "boolean") return "true or false"
  if (kind === "array") return `array: ${rule}`
  return kind === "integer" ? `integer, ${rule}` : rule
}

/** Returns the default of a key in the syntax of the file. */
export const defaultOf = ({ facts }: Declared): string => toml(facts.default)

/** The keys of one table, in order. */
export interface Section {
  readonly path: ReadonlyArray<string>
  readonly keys: ReadonlyArray<Declared>
}

/** Returns the process-wide sections, and the sections that only a profile has. */
export const sections = (): ReadonlyArray<Section> => {
  const keys = declaredKeys(table)
  const names = new Set(keys.map(({ path }) => path.slice(0, -1).join(".")))
  const inherited = new Set(keys.map(({ path }) => path.join(".")))
  return [...names].flatMap((name) => {
    const own = keys.filter(({ path }) => path.slice(0, -1).join(".") === name)
    const isInherited = own.every(({ path }) => path.includes("<name>") && inherited.has(path.slice(2).join(".")))
    return isInherited ? [] : [{ path: name.split("."), keys: own }]
  })
}

/** Returns whether a profile may override a key of the section. */
export const isOverridable = ({ path: [section] }: Section): boolean =>
  declaredKeys(table).some(({ path }) => path[0] === "profiles" && path[2] === section && path.length > 3)

const keyLines = (declared: Declared): ReadonlyArray<string> => [
  ...comment(declared.facts.doc),
  ...comment(`${typeOf(declared).replaceAll("`", "")}; ${variableOf(declared.path)}`),
  `#${declared.path.at(-1) ?? ""} = ${defaultOf(declared)}`
]

const sectionLines = (section: Section): ReadonlyArray<string> =>
  section.path.includes("<name>") ? entryLines(section) : [
    `[${section.path.join(".")}]`,
    ...section.keys.flatMap((declared) => ["", ...keyLines(declared)])
  ]

/**
 * Renders a table whose name the operator chooses. The whole table is commented out, because no such entry is required.
 */
const entryLines = (section: Section): ReadonlyArray<string> => [
  "# One such table for each entry, with a name that you choose.",
  `# [${section.path.join(".")}]`,
  ...section.keys.flatMap((declared) => ["", ...keyLines(declared).map((line) => line.replace(/^#(?! )/, "# "))])
]

const head = `# Configuration of acme-svc. Every key is listed with its default; take the # off a line to set it.
# The service reads config.toml in its working directory, or the file that ACME_SVC_CONFIG names.
# The environment variable that is named at each key overrides the file. Relative paths start at the working directory.`

const profileHead =
  `# Every ACME endpoint is a profile, served at <server.base_url>/profile/<name>/directory. At least one is needed.
[profiles.default]`

const profileTail =
  `# A profile inherits each key of [order], [limits], [challenge], [signer], [filter], [ipam], [notify], [account],
# [eab] and [meta] from there, unless it sets the key itself:
#[profiles.default.order]
#max_identifiers = 10

#[profiles.default.meta]
#website = "https://pki.example.org/"`

/** Renders the profile of the example. It sets `enabled`, so that the file can be loaded unchanged. */
const profileLines = (section: Section): ReadonlyArray<string> =>
  section.keys.map(({ facts, path }) =>
    keyLines({ facts, path: path.map((segment) => segment === "<name>" ? "default" : segment) }).join("\n")
      .replace("\n#enabled =", "\nenabled =")
  )

/**
 * Returns the text of `config.toml.example`: every key, commented out, with its meaning, type, variable and default,
 * and one profile. The file can be loaded unchanged, and also with the `#` before every key and section removed. To
 * render the text again: `node -e 'import("./src/settings/Example.ts").then((m) =>
 * process.stdout.write(m.renderExample()))'`.
 */
export const renderExample = (): string => {
  const isProfile = ({ path: [first] }: Section) => first === "profiles"
  const processWide = sections().filter((section) => !isProfile(section))
  const profile = sections().filter(isProfile).flatMap(profileLines)
  const blocks = [
    ...processWide.map((section) => sectionLines(section).join("\n")),
    profileHead,
    ...profile,
    profileTail
  ]
  return [head, ...blocks].join("\n\n") + "\n"
}

/** The values that can be chosen for the file of {@link renderInitialConfig}. */
export interface InitialConfig {
  readonly profile: string
  readonly bind_address: string
  readonly base_url: string
  readonly http_01_port: number
  /** `database.url`. Undefined for the default, a SQLite file. */
  readonly database_url: string | undefined
}

/** A server that only its own machine can reach. It can issue a first certificate without root privileges. */
const initial: InitialConfig = {
  profile: "default",
  bind_address: "127.0.0.1:3000",
  base_url: "http://localhost:3000",
  http_01_port: 5002,
  database_url: undefined
}

/** Returns the section of the database. The URL may contain a password. */
export const databaseSection = (url: string): string => `[database]\nurl = ${JSON.stringify(url)}\n`

/** Returns a first `config.toml` for a new operator: a server on this machine and one profile. */
export const renderInitialConfig = (choices: Partial<InitialConfig> = {}): string => {
  const { base_url, bind_address, database_url, http_01_port, profile } = { ...initial, ...choices }
  return `# Configuration of acme-svc. Every key and its default is in config.toml.example.

[server]
# Where the server listens. Only this machine can reach this address; "[::]:3000" can be reached from everywhere.
bind_address = ${JSON.stringify(bind_address)}
# The URL clients use, without a trailing slash. It must be the public one: every signed request is checked against it.
base_url = ${JSON.stringify(base_url)}
${database_url === undefined ? "" : `\n${databaseSection(database_url)}`}
[challenge]
# Lets the server validate names that point to this machine itself, such as those below localhost. Delete this line in
# production: otherwise any client that may order can make the server connect to services meant for this machine only.
allow_loopback = true

[challenge.http_01]
# The port on which the server fetches the token that proves control of a name. The standard port is 80, and production
# needs it: delete this line then. It is only here so that the first certificate can be issued without root.
port = ${http_01_port}

[admin]
# The panel, at http://localhost:3001/ui/. Only this machine can reach it; docs/operate/operators.md says how to serve it to others.
enabled = true
bind_address = "127.0.0.1:3001"
base_url = "http://localhost:3001"

# An ACME endpoint. Clients are given the URL ${base_url}/profile/${profile}/directory
[profiles.${profile}]
enabled = true
`
}
