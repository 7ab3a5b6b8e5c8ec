import type { Around } from "../support/RunCommand.ts"
import { leafSerial } from "./Ca.ts"
import { ids, issuer, sessionId } from "./Ground.ts"
import type { CommandPlay, Group, Noun } from "./Play.ts"
import { distinct, nouns } from "./Play.ts"

/*
 * The command lines, which run every command with correct words, and with each of its words wrong, one after the other.
 */

/** A flag with an accepted value, and with others that may be refused, or true if the flag takes no value. */
type Flag = true | readonly [string, ...ReadonlyArray<string>]

interface CommandEntry {
  readonly noun: Noun
  readonly command: string
  /** The correct arguments. */
  readonly args?: ReadonlyArray<string>
  /** Other values of its first argument. */
  readonly others?: ReadonlyArray<string>
  /** The flags of a correct command line. */
  readonly needs?: Readonly<Record<string, Flag>>
  readonly flags?: Readonly<Record<string, Flag>>
  /** Whether the command asks before a change. */
  readonly asks?: boolean
  readonly files?: Readonly<Record<string, string>>
  readonly around?: Around
  /** Whether the correct command line is not run, because it would need a network or would not end. */
  readonly isHelpOnly?: boolean
}

const json: Readonly<Record<string, Flag>> = { json: true }
const paging: Readonly<Record<string, Flag>> = {
  limit: ["2", "0", "-1", "201", "1e2", "x"],
  offset: ["1", "-1", "100", "x"]
}
const profile: Readonly<Record<string, Flag>> = { profile: ["default", "other", "closed", "none", "Default"] }
const period: Readonly<Record<string, Flag>> = {
  since: ["2027-01-01", "2027-01-05T08:00:00Z", "yesterday", "2027-02-30"],
  until: ["2027-01-10", "2026-01-01", "tomorrow"]
}
const orderFilters: Readonly<Record<string, Flag>> = {
  ...profile,
  "account-id": [ids.owner, ids.nobody, "x"],
  status: ["valid", "revoked", "bogus", "VALID"],
  identifier: ["www.example.org", "WWW.example.org", "none.example.org"],
  "identifier-suffix": ["example.org", ".example.org", "%"],
  "identifier-contains": ["alias", "_"],
  "cert-serial": [leafSerial, "0A:01", "xyz"],
  ...period
}
const { since: _since, status: _status, until: _until, ...certificateFilters } = orderFilters
const auditFilters: Readonly<Record<string, Flag>> = {
  ...profile,
  "account-id": [ids.owner, ids.nobody, "x"],
  "order-id": [ids.valid, "x"],
  "cert-serial": ["0a01", "xyz"],
  "request-id": ["request-0", "none"],
  event: ["certificate_issued", "bogus"],
  outcome: ["success", "failure", "bogus"],
  "actor-kind": ["acme", "cli", "bogus"],
  ...period
}
const format: Readonly<Record<string, Flag>> = { format: ["csv", "json", "xml", "CSV"] }
const passwordFile = { files: { "new-password": "Gdańsk shipyard, 9 cranes\n", weak: "short\n", blank: "" } }
const scope: Readonly<Record<string, Flag>> = {
  names: ["**.shop.example", "*.shop.example", "SHOP.example", "*", "***.example", "a..example", "192.0.2.1"],
  wildcards: true,
  kinds: ["default", "bogus", "UPPER"],
  "validity-seconds": ["86400", "3599", "315619201", "1.5", "1d", "x"],
  "orders-per-day": ["100", "0", "-1", "1000001", "x"],
  "max-accounts": ["1", "0", "-1", "1000001", "x"],
  "expires-at": ["2030-01-01", "2026-01-01", "2030-01-01T00:00:00Z", "tomorrow", "2030-02-30"],
  prevalidated: true
}
const campaignFilter: Readonly<Record<string, Flag>> = {
  issuer: ["0".repeat(64), "x"],
  profile: ["default", "none"],
  kind: ["default", "bogus"],
  key: ["rsa-2048", "dsa"],
  kid: [ids.bound, "x"],
  "account-id": [ids.owner, "x"],
  name: ["**.example.org", "a b"],
  serials: ["none"],
  "issued-before": ["2027-01-10", "yesterday"]
}
const hmacKey = Buffer.alloc(32, 9)
const contact: Flag = ["new@example.org", "no address", "Name <a@example.org>", "ü@example.org"]
const people = ["anna", "carl", "nobody", "Bob", "no body"]

const commands: ReadonlyArray<CommandEntry> = [
  { noun: "nonces", command: "nonce count", flags: json },
  {
    noun: "nonces",
    command: "nonce cleanup",
    asks: true,
    flags: { "ttl-seconds": ["600", "0", "-1", "60", "86401", "x", "1e3"], ...json }
  },

  {
    noun: "credentials",
    command: "eab create",
    needs: {
      label: [
        "Web servers",
        "x",
        "a\u001bb",
        "x".repeat(200),
        "x".repeat(201),
        "x".repeat(256),
        "x".repeat(257),
        " trimmed "
      ]
    },
    flags: { profile: ["other", "closed", "none", "Default"], ...json }
  },
  { noun: "credentials", command: "eab list", flags: { status: ["active", "revoked", "bogus"], ...paging, ...json } },
  {
    noun: "credentials",
    command: "eab show",
    args: [ids.bound],
    others: [ids.revokedCredential, ids.narrowCredential],
    flags: json
  },
  { noun: "credentials", command: "eab revoke", args: [ids.bound], others: [ids.revokedCredential], flags: json },
  {
    noun: "credentials",
    command: "eab delete",
    args: [ids.bound],
    others: [ids.freeCredential, ids.revokedCredential],
    asks: true,
    flags: { "deactivate-accounts": true, "delete-accounts": true, ...json }
  },

  {
    noun: "scopes",
    command: "eab import",
    args: ["OLD-KID"],
    others: [ids.bound, "x".repeat(256), "x".repeat(257), " trimmed "],
    needs: {
      "hmac-key-file": ["key", "base64", "short", "long", "words", "blank", "none"],
      label: ["Web servers", "a\u001bb", "x".repeat(257)]
    },
    flags: { profile: ["other", "closed", "none", "Default"], ...scope, ...json },
    files: {
      key: `${hmacKey.toString("base64url")}\n`,
      base64: `${hmacKey.toString("base64")}\n`,
      short: "c2hvcnQ\n",
      long: `${"A".repeat(343)}\n`,
      words: "no base64!\n",
      blank: ""
    }
  },
  {
    noun: "compromise",
    command: "ca compromise",
    args: [issuer],
    others: ["0".repeat(64), "x"],
    asks: true,
    flags: json
  },

  {
    noun: "campaigns",
    command: "campaign start",
    flags: {
      ...campaignFilter,
      reason: ["a bug", ""],
      "explanation-url": ["https://status.example/1", "ftp://status.example"],
      pace: ["100", "0", "x"],
      "revoke-at": ["2099-01-01", "2001-01-01", "x"],
      "revoke-reason": ["keyCompromise", "7"],
      ...json
    }
  },
  { noun: "campaigns", command: "campaign preview", flags: { ...campaignFilter, ...json } },
  { noun: "campaigns", command: "campaign list", flags: { ...paging, ...json } },
  { noun: "campaigns", command: "campaign show", args: [ids.nobody], others: ["x"], flags: json },
  { noun: "campaigns", command: "campaign silent", args: [ids.nobody], others: ["x"], flags: { ...paging, ...json } },
  { noun: "campaigns", command: "campaign pause", args: [ids.nobody], others: ["x"], flags: json },
  { noun: "campaigns", command: "campaign resume", args: [ids.nobody], others: ["x"], flags: json },
  { noun: "campaigns", command: "campaign end", args: [ids.nobody], others: ["x"], asks: true, flags: json },
  { noun: "campaigns", command: "campaign confirm", args: [ids.nobody], others: ["x"], asks: true, flags: json },
  {
    noun: "scopes",
    command: "eab set",
    args: [ids.bound],
    others: [ids.revokedCredential, ids.narrowCredential],
    flags: { ...scope, clear: ["kinds", "names", "label", "Kinds"], ...json }
  },

  {
    noun: "jobs",
    command: "jobs list",
    flags: {
      kind: ["signer_issue", "bogus"],
      status: ["failed", "running", "bogus"],
      "order-id": [ids.processing, "x"],
      ...paging,
      ...json
    }
  },
  { noun: "jobs", command: "jobs show", args: [ids.failed], others: [ids.waiting, ids.delivery], flags: json },
  {
    noun: "jobs",
    command: "jobs cancel",
    args: [ids.waiting],
    others: [ids.running, ids.failed, ids.done, ids.delivery],
    asks: true
  },
  {
    noun: "jobs",
    command: "jobs run-now",
    args: [ids.failed],
    others: [ids.waiting, ids.running, ids.done, ids.cancelled]
  },
  {
    noun: "alike",
    command: "jobs run-all",
    needs: { kind: ["signer_issue", "bogus"], error: ["script_failed: exit 1", "none", ""] },
    asks: true,
    flags: json
  },
  { noun: "jobs", command: "jobs queue", flags: json },
  { noun: "workers", command: "worker list", flags: json },

  {
    noun: "accounts",
    command: "account list",
    flags: { ...profile, status: ["valid", "deactivated", "bogus"], "eab-kid": [ids.bound, "x"], ...paging, ...json }
  },
  {
    noun: "accounts",
    command: "account show",
    args: [ids.owner],
    others: [ids.deactivated, ids.revokedAccount],
    flags: json
  },
  {
    noun: "accounts",
    command: "account update-contact",
    args: [ids.owner],
    others: [ids.deactivated],
    flags: { contact: ["mailto:new@example.org", "new@example.org", "tel:+1"] }
  },
  {
    noun: "accounts",
    command: "account deactivate",
    args: [ids.owner],
    others: [ids.deactivated, ids.starter],
    asks: true
  },
  {
    noun: "blocks",
    command: "account block",
    args: [ids.owner],
    others: [ids.deactivated],
    needs: { reason: ["a loop", "x".repeat(501), "a\u001bb"] }
  },
  { noun: "blocks", command: "account unblock", args: [ids.owner], others: [ids.deactivated] },
  { noun: "accounts", command: "account delete", args: [ids.starter], others: [ids.owner, ids.idle], asks: true },

  { noun: "audit", command: "audit list", flags: { ...auditFilters, ...paging, ...json } },
  { noun: "audit", command: "audit show", args: ["2"], others: ["3", "7", "0", "-1", "01"], flags: json },
  { noun: "audit", command: "audit export", flags: { ...auditFilters, ...format } },
  { noun: "chain", command: "audit verify", flags: { head: [`1:${"a".repeat(64)}`, "1:a"], ...json } },
  { noun: "chain", command: "audit receivers", flags: json },
  {
    noun: "audit",
    command: "audit cleanup",
    needs: { "older-than": ["1", "30", "x", "0", "1d", "100001"] },
    asks: true,
    flags: json
  },

  { noun: "orders", command: "order list", flags: { ...orderFilters, ...paging, ...json } },
  {
    noun: "orders",
    command: "order show",
    args: [ids.valid],
    others: [ids.revokedOrder, ids.pending, ids.invalid, ids.relayed],
    flags: json
  },
  { noun: "orders", command: "order chain", args: [ids.valid], others: [ids.pending] },
  {
    noun: "orders",
    command: "order revoke",
    args: [ids.valid],
    others: [ids.revokedOrder, ids.pending, ids.expired],
    flags: { reason: ["4", "superseded", "keyCompromise", "7", "11", "x"], wait: ["x", "-1"] }
  },
  {
    noun: "orders",
    command: "order orphaned",
    flags: { ...profile, status: ["kept", "waiting", "bogus"], ...paging, ...json }
  },
  {
    noun: "orders",
    command: "order delete",
    args: [ids.pending],
    others: [ids.valid, ids.processing, ids.expired],
    asks: true
  },
  { noun: "orders", command: "order export", flags: { ...orderFilters, ...format } },
  {
    noun: "orders",
    command: "order purge",
    needs: { "expired-for": ["10", "1", "x", "0", "10d", "400"] },
    asks: true,
    flags: { ...profile, "dry-run": true, ...json }
  },
  {
    noun: "expiring",
    command: "order list",
    needs: { "expiring-in": ["30", "5", "0", "-1", "30d", "x", "4000"] },
    flags: { "hide-superseded": true, ...profile, status: ["valid"], ...paging, ...json }
  },
  {
    noun: "expiring",
    command: "order expiring",
    flags: {
      within: ["30", "5", "0", "-1", "30d", "x", "4000"],
      "hide-superseded": true,
      ...profile,
      ...paging,
      ...json
    }
  },
  {
    noun: "certificates",
    command: "cert list",
    flags: {
      ...certificateFilters,
      state: ["valid", "ending", "ended", "revoked", "bogus"],
      "ends-after": ["2027-01-01", "yesterday"],
      "ends-before": ["2027-01-10", "tomorrow"],
      sort: ["newest", "soonest", "latest", "bogus"],
      ...paging,
      ...json
    }
  },
  {
    noun: "certificates",
    command: "cert revoke",
    args: [leafSerial],
    others: ["0a01", "0a03", "44:83:ED:4E:BD:8C:5E:56:90:59:BB:CC:9C:06:87:CC", "xyz", "ff"],
    flags: { reason: ["4", "superseded", "x"], wait: ["x", "-1"] }
  },
  { noun: "certificates", command: "crl list", flags: json },
  { noun: "certificates", command: "ca list", flags: json },
  { noun: "certificates", command: "ca show", args: [issuer], others: ["aa"], flags: json },
  {
    noun: "certificates",
    command: "crl raise",
    args: [issuer],
    others: ["aa"],
    needs: { above: ["9", "7", "6", "0", "x"] },
    asks: true
  },
  {
    noun: "certificates",
    command: "crl revoke",
    args: [issuer, "0c01"],
    others: ["aa"],
    flags: { reason: ["4", "superseded", "x"] }
  },
  {
    noun: "certificates",
    command: "crl import",
    args: [issuer, "list.crl"],
    others: ["aa"],
    flags: json,
    files: { "list.crl": "no list" }
  },

  // These make keys, or need a root.
  {
    noun: "certificates",
    command: "ca init",
    isHelpOnly: true,
    flags: {
      permit: ["*.example.org", "192.0.2.1"],
      "root-days": ["0", "x"],
      days: ["0", "36526"],
      "key-type": ["dsa"]
    }
  },
  {
    noun: "certificates",
    command: "ca csr",
    isHelpOnly: true,
    flags: { "key-type": ["ed25519"], out: ["", "request"] }
  },
  { noun: "certificates", command: "ca sign", isHelpOnly: true, flags: { permit: ["-", "a b"], days: ["-1", "0"] } },
  { noun: "certificates", command: "ca import", args: ["answer.pem"], flags: { ...profile, replace: true, ...json } },
  { noun: "certificates", command: "ca test-sign", isHelpOnly: true },
  { noun: "certificates", command: "ca rotate", isHelpOnly: true, flags: { at: ["tomorrow"], name: ["A Name"] } },
  { noun: "certificates", command: "ca retire", args: ["none"], flags: { ...profile, write: true, ...json } },
  { noun: "attention", command: "attention", flags: json },
  {
    noun: "service",
    command: "explain",
    args: ["order_finalized"],
    others: ["rateLimited", "not_found", "jobs.lease_seconds", "jobs.lease_secnds"],
    flags: { search: ["token"], ...json }
  },
  { noun: "service", command: "guide client", args: ["lego"], others: ["nobody"], flags: { ...profile, ...json } },

  {
    noun: "upstream",
    command: "upstream order list",
    flags: { ...profile, status: ["processing", "bogus"], ...paging, ...json }
  },
  {
    noun: "upstream",
    command: "upstream order show",
    args: [ids.relayed],
    others: [ids.invalid, ids.valid],
    flags: json
  },
  { noun: "upstream", command: "upstream show", flags: { ...profile, ...json } },
  {
    noun: "upstream",
    command: "upstream register",
    flags: { ...profile, "eab-kid": ["kid"], "eab-hmac-key-file": ["key", "none"] },
    files: { key: "a2V5\n" }
  },
  { noun: "upstream", command: "upstream rollover", flags: { ...profile, ...json } },
  { noun: "upstream", command: "upstream contact", flags: { ...profile, contact: ["mailto:a@example.org"], ...json } },

  { noun: "profiles", command: "profile list", flags: json },
  { noun: "profiles", command: "filter show", needs: { profile: ["default", "other", "closed", "none"] }, flags: json },
  {
    noun: "profiles",
    command: "filter explain",
    needs: { profile: ["default", "none"], "client-ip": ["192.0.2.7", "198.51.100.1", "x"] },
    flags: {
      identifier: ["www.example.org", "*.example.org", "-"],
      "common-name": ["www.example.org"],
      method: ["POST", "GET", "x"],
      path: ["/newOrder", "x"],
      "account-id": [ids.owner, "x"],
      ...json
    }
  },
  { noun: "kinds", command: "kinds list", flags: { ...profile, ...json } },
  {
    noun: "kinds",
    command: "kinds try",
    args: ["request"],
    others: ["none"],
    needs: { profile: ["default", "closed", "none"], name: ["www.example.org", "-"] },
    flags: { kind: ["default", "bogus"], ...json },
    files: { request: "AAAA\n" }
  },
  { noun: "configuration", command: "config check" },
  { noun: "configuration", command: "config show", flags: { ...profile, ...json } },
  { noun: "notifications", command: "notify list", flags: { ...paging, ...json } },
  {
    noun: "notifications",
    command: "notify test",
    args: ["chat"],
    others: ["webhook", "email", "none", "Chat"],
    flags: { event: ["certificate_issued", "bogus"], profile: ["default", "__admin__", "none"], ...json }
  },

  {
    noun: "operators",
    command: "admin user create",
    args: ["nora"],
    others: ["anna", "No Ra", "x".repeat(100)],
    needs: { "password-file": ["new-password", "weak", "blank", "none"] },
    flags: { role: ["operator", "admin", "bogus"], contact },
    ...passwordFile
  },
  {
    noun: "operators",
    command: "admin user list",
    flags: { role: ["admin", "bogus"], status: ["disabled", "bogus"], ...paging, ...json }
  },
  {
    noun: "operators",
    command: "admin user show",
    args: ["bob"],
    others: ["anna", "dora", "erin", ...people],
    flags: json
  },
  {
    noun: "operators",
    command: "admin user passwd",
    args: ["bob"],
    others: people,
    needs: { "password-file": ["new-password", "weak", "blank", "none"] },
    ...passwordFile
  },
  { noun: "links", command: "admin user link", args: ["bob"], others: people, flags: json },
  { noun: "operators", command: "admin user role", args: ["bob", "operator"], others: people },
  { noun: "operators", command: "admin user contact", args: ["bob"], others: people, flags: { contact } },
  { noun: "operators", command: "admin user disable", args: ["bob"], others: people },
  { noun: "operators", command: "admin user enable", args: ["carl"], others: ["bob", "nobody"] },
  { noun: "operators", command: "admin user delete", args: ["bob"], others: people, asks: true },
  {
    noun: "operators",
    command: "admin user totp status",
    args: ["dora"],
    others: ["bob", "erin", "nobody"],
    flags: json
  },
  { noun: "operators", command: "admin user totp reset", args: ["dora"], others: ["bob", "nobody"], asks: true },
  { noun: "operators", command: "admin user totp recovery-codes", args: ["dora"], others: ["bob", "nobody"] },
  {
    noun: "tokens",
    command: "admin token create",
    args: ["olga"],
    others: ["carl", "nobody"],
    needs: { name: ["deploy", "token of olga", "x".repeat(65)], "expires-in": ["30", "0", "367", "x", "30d"] },
    flags: { role: ["operator", "admin", "bogus"], allow: ["192.0.2.0/24", "192.0.2.1/24", "x"] }
  },
  { noun: "tokens", command: "admin token list", flags: { user: ["olga", "nobody"], ...paging, ...json } },
  { noun: "tokens", command: "admin token revoke", args: [ids.token], others: [ids.revokedToken], asks: true },
  { noun: "session", command: "admin session list", flags: { user: ["anna", "nobody"], ...paging, ...json } },
  {
    noun: "session",
    command: "admin session revoke",
    needs: { user: ["bob", "anna", "nobody"] },
    flags: { session: [sessionId("bob"), sessionId("anna"), "x"], all: true }
  },

  { noun: "service", command: "migrate", flags: { check: true, ...json } },
  { noun: "service", command: "init", isHelpOnly: true },
  { noun: "service", command: "setup", isHelpOnly: true },
  { noun: "service", command: "serve", isHelpOnly: true, flags: { role: ["king"] } },
  { noun: "service", command: "health", isHelpOnly: true, flags: { role: ["king"], "timeout-ms": ["0", "x"] } },
  { noun: "service", command: "transfer", isHelpOnly: true, flags: { to: ["x", "sqlite://"], "to-file": ["none"] } },
  { noun: "service", command: "docs", isHelpOnly: true, flags: { port: ["65536", "x"] } },
  { noun: "service", command: "completions", args: ["bash"], others: ["zsh", "fish", "elvish", "powershell", "tcsh"] },
  { noun: "service", command: "man" },
  { noun: "service", command: "help", others: ["eab", "order", "none", "admin"] }
]

/** Words that are not a command by themselves. */
const others: Readonly<Partial<Record<Noun, ReadonlyArray<string>>>> = {
  credentials: ["eab", "eab --help", "eab bogus", "eab creat", "help eab", "help eab create"],
  accounts: ["account", "account --help"],
  orders: ["order", "order --help", "help order list"],
  certificates: ["ca", "ca --help", "cert", "crl", "cert --help", "crl --help"],
  campaigns: ["campaign", "campaign --help", "campaign bogus"],
  nonces: ["nonce", "nonce --help"],
  audit: ["audit", "audit --help"],
  jobs: ["jobs", "jobs --help", "job list"],
  workers: ["worker", "worker --help"],
  profiles: ["profile", "profile --help", "filter", "filter --help"],
  configuration: ["config", "config --help"],
  notifications: ["notify", "notify --help"],
  upstream: ["upstream", "upstream --help", "upstream order", "upstream order --help"],
  operators: ["admin", "admin --help", "admin user", "admin user --help", "admin user totp", "admin user totp --help"],
  tokens: ["admin token", "admin token --help"],
  session: ["admin session", "admin session --help"],
  service: [
    "--help",
    "-h",
    "--version",
    "-V",
    "help --json",
    "bogus",
    "bogus --json",
    "migrat",
    "--color mauve migrate",
    "--color never worker list",
    "worker list --color always",
    "--log-level loud worker list",
    "worker list --log-level debug",
    "worker list --utc",
    "worker list --quiet",
    "worker list -- x",
    "--json",
    "--bogus",
    "-x",
    "--help bogus",
    "eab list --version"
  ]
}

const wordsOf = (flags: Readonly<Record<string, Flag>>): ReadonlyArray<string> =>
  Object.entries(flags).flatMap(([name, flag]) => flag === true ? [`--${name}`] : [`--${name}`, flag[0]])

/** Returns a value in the name of a play. */
const shown = (value: string): string => JSON.stringify(value.slice(0, 40))

/** Values that are odd for any flag. */
const anything = ["", "x".repeat(1100)]

const playsOf = (entry: CommandEntry): ReadonlyArray<CommandPlay> => {
  const { args = [], asks = false, command, files, flags = {}, isHelpOnly = false, needs = {}, others: values = [] } =
    entry
  const named = command.split(" ")
  const label = "expiring-in" in needs ? `${command} --expiring-in` : command
  const plays: Array<CommandPlay> = []
  const add = (name: string, words: ReadonlyArray<string>, around?: Around) =>
    plays.push({
      name: `${label}: ${name}`,
      words,
      ...around === undefined ? {} : { around },
      ...files === undefined ? {} : { files }
    })
  const unsure = (
    given: Readonly<Record<string, Flag>>,
    which: ReadonlyArray<string>
  ) => [...named, ...which, ...wordsOf(given)]
  const good = (given = needs, which = args) => [...unsure(given, which), ...asks ? ["--yes"] : []]
  const hasJson = "json" in flags

  add("--help", [...named, "--help"])
  add("--bogus", [...good(), "--bogus"])
  add("--bogus as an object", [...good(), "--bogus", "--json"])
  for (const [name, flag] of Object.entries({ ...needs, ...flags })) {
    if (flag !== true) add(`--${name} without a value`, [...good(), `--${name}`])
  }
  if (isHelpOnly) {
    for (const [name, flag] of Object.entries(flags)) {
      for (const value of flag === true ? [] : flag) add(`--${name} ${shown(value)}`, [...named, `--${name}`, value])
    }
    return plays
  }
  add("good", good())
  add("an argument more", [...good(), "more"])
  if (!hasJson) add("--json", [...good(), "--json"])
  args.forEach((_, index) => {
    add(`without argument ${index + 1}`, good(needs, args.filter((_one, at) => at !== index)))
  })
  if (args.length > 0 || values.length > 0) {
    for (const value of [...values, ids.nobody, "x", "", "x".repeat(300), "a\u001bb"]) {
      const which = [value, ...args.slice(1)]
      add(`argument 1 ${shown(value)}`, good(needs, which))
      if (hasJson && value.length < 40) {
        add(`argument 1 ${shown(value)} as an object`, [...good(needs, which), "--json"])
      }
    }
  }
  if (asks) {
    const words = unsure(needs, args)
    for (const typed of ["y", "yes", "n", "", "Y "]) add(`answered ${shown(typed)}`, words, { typed })
    add("with nobody to ask", words)
    add("with nobody to ask, as an object", [...words, "--json"])
    add("-y", [...words, "-y"])
  }
  for (const [name, flag] of Object.entries({ ...needs, ...flags })) {
    const { [name]: _, ...rest } = needs
    if (name in needs) add(`without --${name}`, good(rest))
    if (flag === true) {
      add(`--${name}`, [...good(rest), `--${name}`])
      add(`--${name} twice`, [...good(rest), `--${name}`, `--${name}`])
      add(`--${name}=false`, [...good(rest), `--${name}=false`])
      continue
    }
    const [first] = flag
    // An export has the same filters as the list.
    if (command.endsWith(" export") && name !== "format") {
      for (const value of [first, flag.at(-1) ?? ""]) {
        add(`--${name} ${shown(value)}`, [...good(rest), `--${name}`, value])
      }
      continue
    }
    for (const value of [...flag, ...anything]) add(`--${name} ${shown(value)}`, [...good(rest), `--${name}`, value])
    add(`--${name} twice`, [...good(rest), `--${name}`, first, `--${name}`, first])
    add(`--${name}= and its value`, [...good(rest), `--${name}=${first}`])
    if (hasJson && name in needs) add(`--${name} as an object`, [...good(rest), `--${name}`, first, "--json"])
  }
  return plays
}

const ofWords = (line: string): CommandPlay => ({ name: line, words: line.split(" ") })

/** The commands that plays run, as they are typed. */
export const playedCommands: ReadonlyArray<string> = [...new Set(commands.map(({ command }) => command))]

/** Every group. */
export const commandGroups: ReadonlyArray<Group> = nouns.flatMap((noun): ReadonlyArray<Group> => {
  const plays = [...commands.filter((one) => one.noun === noun).flatMap(playsOf), ...(others[noun] ?? []).map(ofWords)]
  return plays.length === 0 ? [] : [{ noun, surface: "cli", plays: distinct(plays) }]
})
