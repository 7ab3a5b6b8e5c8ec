/* Every page, file and redirect of the panel, with what the browser tests expect of each. */

/** The reader of a page: a stranger, a session that lacks its second factor, or one of the three roles. */
export const readers = ["none", "half", "viewer", "operator", "admin"] as const

export type Reader = typeof readers[number]

/** What every row has. */
interface Place {
  readonly pattern: string
  /** The subject, if the pattern has several subjects. */
  readonly what?: string
  /**
   * The reader with the fewest rights who gets the page. Every reader without a whole session gets the pages of the
   * sign-in.
   */
  readonly from: Reader
  /** The address of the page, which is a path, or the first matching link of another page followed by `plus`. */
  readonly at: string | { readonly linkedFrom: string; readonly plus?: string }
}

/** A page. */
export interface PageRow extends Place {
  readonly kind: "page"
  /** The status, by default 200. */
  readonly status?: number
  /** A text of the page if there is something to show. */
  readonly says: string
  /** A text of the page on a new installation, or undefined if the record does not exist there. */
  readonly saysEmpty: string | undefined
  /** Whether a page number that is too high redirects to the first page of the list. */
  readonly leadsBack?: boolean
}

/** A file to be saved, or a file that pages use. */
export interface FileRow extends Place {
  readonly kind: "file"
  readonly type: string
  readonly isSaved: boolean
  readonly isOnEmpty: boolean
}

/** A path that redirects. */
export interface WayRow extends Place {
  readonly kind: "way"
  readonly to: string
}

export type Row = PageRow | FileRow | WayRow

interface More {
  readonly leadsBack?: boolean
  readonly status?: number
  readonly what?: string
  readonly from?: Reader
  readonly at?: Place["at"]
}

/** Returns a page that also exists on a new installation. */
const page = (pattern: string, says: string, saysEmpty = says, more: More = {}): PageRow => ({
  kind: "page",
  pattern,
  from: "viewer",
  at: pattern,
  says,
  saysEmpty,
  ...more
})

/** Returns the page of one record, to which a list links. */
const record = (pattern: string, linkedFrom: string, says: string, what?: string): PageRow => ({
  kind: "page",
  pattern,
  ...(what === undefined ? {} : { what }),
  from: "viewer",
  at: { linkedFrom },
  says,
  saysEmpty: undefined
})

const file = (pattern: string, type: string, more: Partial<FileRow> = {}): FileRow => ({
  kind: "file",
  pattern,
  from: "viewer",
  at: pattern,
  type,
  isSaved: true,
  isOnEmpty: true,
  ...more
})

const exported = (list: string): ReadonlyArray<FileRow> => [
  file(`${list}/export`, "text/csv", { what: "csv" }),
  file(`${list}/export`, "application/json", { what: "json", at: `${list}/export?format=json` })
]

/** Every row of the table, for everything that can be requested with GET. */
export const rows: ReadonlyArray<Row> = [
  { kind: "way", pattern: "/", from: "none", at: "/", to: "/ui/" },
  { kind: "way", pattern: "/ui", from: "none", at: "/ui", to: "/ui/" },
  page("/ui/login", "Sign in", "Sign in", { from: "none" }),
  page("/ui/link", "Set your password", "Set your password", { from: "none" }),
  page("/ui/login", "Your session has ended.", "Your session has ended.", {
    from: "none",
    what: "ended",
    at: "/ui/login?why=ended&next=/ui/jobs"
  }),
  page("/ui/login/verify", "Second factor", "Second factor", { from: "half" }),
  page("/ui/login/enrol", "Set up your second factor", "Set up your second factor", { from: "half" }),
  page("/ui/", "signer_issue", "issued 0"),
  page("/ui/", "issued", "issued 0", { what: "30d", at: "/ui/?range=30d&profile=corp" }),
  page("/ui/certificates", "intranet.corp.example", "No certificate has been issued yet."),
  page("/ui/certificates", "ends soonest", "No certificate matches.", {
    what: "sorted",
    at: "/ui/certificates?endsAfter=2001-01-01&sort=latest"
  }),
  page("/ui/certificates", "No certificate matches.", "No certificate matches.", {
    what: "no match",
    at: "/ui/certificates?identifier=nothing.example"
  }),
  page("/ui/certificates", "bad_request", "bad_request", {
    what: "refused",
    status: 400,
    at: "/ui/certificates?endsAfter=yesterday"
  }),
  page("/ui/certificates/revoke", "No certificate is ticked.", "No certificate is ticked.", { from: "operator" }),
  page("/ui/orders", "intranet.corp.example", "No order has been made yet."),
  page("/ui/orders", "No order matches.", "No order matches.", {
    what: "no match",
    at: "/ui/orders?identifier=nothing.example"
  }),
  page("/ui/orders", "bad_request", "bad_request", { what: "refused", status: 400, at: "/ui/orders?since=yesterday" }),
  record("/ui/orders/{id}", "/ui/orders?status=valid", "BEGIN CERTIFICATE", "valid"),
  record("/ui/orders/{id}", "/ui/orders?status=invalid", "took a connection on the validation port", "invalid"),
  record("/ui/orders/{id}", "/ui/orders?status=pending", "pending", "pending"),
  record("/ui/orders/{id}", "/ui/orders?status=processing", "processing", "processing"),
  page("/ui/expiring", "edge-1.corp.example", "Nothing expires within 30 days."),
  page("/ui/campaigns", "RSA keys of 2048 bits", "There is no campaign."),
  record("/ui/campaigns/{id}", "/ui/campaigns", "Clients that never ask"),
  page("/ui/campaigns/preview", "would match", "would match", { at: "/ui/campaigns/preview?profile=corp" }),
  page("/ui/accounts", "platform@corp.example", "No client has registered yet."),
  record("/ui/accounts/{id}", "/ui/accounts?profile=corp&status=valid", "platform@corp.example", "valid"),
  record("/ui/accounts/{id}", "/ui/accounts?status=deactivated", "deactivated", "deactivated"),
  {
    ...record("/ui/accounts/{id}/orders", "", "intranet.corp.example"),
    at: { linkedFrom: "/ui/accounts?profile=corp&status=valid", plus: "/orders" }
  },
  page("/ui/eab", "Build farm", "There is no credential."),
  record("/ui/eab/{kid}", "/ui/eab", "Edge nodes"),
  page("/ui/upstream-orders", "relayed.corp.example", "These profiles relay: public."),
  record("/ui/upstream-orders/{id}", "/ui/upstream-orders", "Order there"),
  // This page is never empty, because the service itself has jobs from the start.
  page("/ui/jobs", "challenge_validate", "nonce_sweep"),
  page("/ui/jobs", "signer_", "No job matches.", { what: "failed", at: "/ui/jobs?status=failed" }),
  record("/ui/jobs/{id}", "/ui/jobs?status=failed", "script_failed", "failed"),
  record("/ui/jobs/{id}", "/ui/jobs?status=ready", "ready", "ready"),
  page("/ui/notifications", "chat", "Send a test"),
  page("/ui/workers", "present"),
  page("/ui/authorities", "Entries"),
  record("/ui/authorities/{issuer}", "/ui/authorities", "Live certificates"),
  page("/ui/profiles", "edge"),
  page("/ui/profiles/{name}", "Another one like it", "Another one like it", { at: "/ui/profiles/corp" }),
  page("/ui/profiles/{name}/filter", "Only the offices order here.", "Only the offices order here.", {
    at: "/ui/profiles/corp/filter"
  }),
  page("/ui/profiles/{profile}/kinds", "server_auth", "server_auth", { at: "/ui/profiles/corp/kinds" }),
  page("/ui/configuration", "bind_address"),
  page("/ui/configuration", "bypass", "bypass", {
    what: "of a profile",
    at: "/ui/configuration?profile=corp"
  }),
  page("/ui/nonces", "Each can be used for"),
  page("/ui/audit", "certificate issue failed", "operator created"),
  page("/ui/audit", "certificate issued", "No row matches.", {
    what: "page 2",
    at: "/ui/audit?page=2&profile=corp",
    leadsBack: true
  }),
  page("/ui/audit/chain", "Compared now"),
  record("/ui/audit/{id}", "/ui/audit?event=certificate_issued", "certificate_issued"),
  page("/ui/search", "What can be searched"),
  page("/ui/search", "All orders with a name that contains it", "Nothing was found.", {
    what: "a name",
    at: "/ui/search?q=corp.example"
  }),
  page("/ui/operators", "olga@corp.example", "olga@corp.example", { from: "admin" }),
  page("/ui/operators/{username}", "Known addresses", "Known addresses", { from: "admin", at: "/ui/operators/olga" }),
  page("/ui/account", "Second factor"),
  ...["/ui/orders", "/ui/accounts", "/ui/eab", "/ui/expiring", "/ui/audit"].flatMap(exported),
  file("/ui/orders/{id}/chain.pem", "application/pem-certificate-chain", {
    at: { linkedFrom: "/ui/orders?status=valid", plus: "/chain.pem" },
    isOnEmpty: false
  }),
  file("/ui/authorities/{issuer}/ca.pem", "application/x-pem-file", {
    at: { linkedFrom: "/ui/authorities" },
    isOnEmpty: false
  }),
  file("/ui/authorities/{issuer}/ca.crl", "application/pkix-crl", {
    at: { linkedFrom: "/ui/authorities" },
    isOnEmpty: false
  }),
  file("/ui/static/{name}", "image/svg+xml", { from: "none", at: { linkedFrom: "/ui/login" }, isSaved: false })
]

/** Returns the name of a row in the table. */
export const nameOf = ({ pattern, what }: Row): string => what === undefined ? pattern : `${pattern} (${what})`
