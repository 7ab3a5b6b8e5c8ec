import * as Redacted from "effect/Redacted"
import type { Config } from "../../settings/AppConfig.ts"

/**
 * Whether somebody can sign in to the panel. `nobody`: there is no operator. `link`: nobody knows the operator's
 * password, and the link sets it. `needsLink`: the same, without a link. `somebody`: operators know their passwords.
 */
export type SignInState =
  | { readonly _tag: "nobody" }
  | { readonly _tag: "link"; readonly username: string; readonly url: Redacted.Redacted<string> }
  | { readonly _tag: "needsLink"; readonly username: string }
  | { readonly _tag: "somebody" }

/** What the text for a new user says, and how. */
export interface Welcome {
  /** Whether this process serves ACME clients. */
  readonly servesClients: boolean
  /** Whether somebody can sign in. Undefined if this process serves no panel or does not know. */
  readonly signIn: SignInState | undefined
  /** Whether the panel is served. */
  readonly servesPanel: boolean
  /** What a person types to run the program. */
  readonly program: string
  /** Returns the absolute form of a path of the configuration. */
  readonly absolute: (path: string) => string
}

type Profile = Config["profiles"][number]

const signInLines = (state: SignInState | undefined, program: string): ReadonlyArray<string> => {
  switch (state?._tag) {
    case "nobody":
      return ["Nobody can sign in to the panel yet. Create an operator:", "", `  ${program} admin user create NAME`, ""]
    case "link":
      return [
        `Set the password of the operator ${state.username} in a browser on this machine. The link is good once, for 15 minutes:`,
        "",
        `  ${Redacted.value(state.url)}`,
        ""
      ]
    case "needsLink":
      return [
        `Nobody knows the password of the operator ${state.username} yet. Print a link that sets it:`,
        "",
        `  ${program} admin user link ${state.username}`,
        ""
      ]
    default:
      return []
  }
}

/** The first port that a program without the rights of root may use. */
const firstFreePort = 1024

/** Returns whether a client on this machine can get a certificate for `demo.localhost` without root. */
const canTry = ({ challenge: { allow_loopback, enabled, http_01 }, eab }: Profile): boolean =>
  allow_loopback && enabled.includes("http-01") && http_01.port >= firstFreePort && !eab.enabled

const trialLines = (profile: Profile, directory: string, trusted: string | undefined): ReadonlyArray<string> => {
  if (!canTry(profile)) return []
  const { port } = profile.challenge.http_01
  const certbotTrust = trusted === undefined ? "" : `REQUESTS_CA_BUNDLE='${trusted}' `
  const legoTrust = trusted === undefined ? "" : `LEGO_CA_CERTIFICATES='${trusted}' `
  return [
    "A first certificate, in a second terminal, with certbot or with lego:",
    "",
    `  ${certbotTrust}certbot certonly --non-interactive --agree-tos --register-unsafely-without-email ` +
    `--standalone --http-01-port ${port} --config-dir demo-certbot --work-dir demo-certbot/work ` +
    `--logs-dir demo-certbot/logs --server ${directory} -d demo.localhost`,
    "",
    `  ${legoTrust}lego --accept-tos --email you@example.org --path demo-lego --server ${directory} ` +
    `--http --http.port :${port} --domains demo.localhost run`,
    ""
  ]
}

/**
 * Renders the next steps for a new user: the directory for clients, the certificate to trust, the panel and how to get
 * into it, two commands to paste if they would work here, and where the lines for other machines are.
 */
export const renderWelcome = (
  config: Config,
  { absolute, program, servesClients, servesPanel, signIn }: Welcome
): string => {
  const profile = servesClients ? config.profiles.find(({ enabled }) => enabled) : undefined
  if (profile === undefined && !servesPanel) return ""
  const { base_url, tls } = config.server
  const page = `${base_url}/profile/${profile?.name ?? ""}/`
  const trusted = tls.enabled ? absolute(tls.cert_path) : undefined
  return [
    "",
    "acme-svc is ready.",
    "",
    ...profile === undefined ? [] : [
      `  Directory       ${page}directory`,
      ...profile.signer.backend === "local_ca"
        ? [`  CA certificate  ${absolute(profile.signer.local_ca.cert_path)}`]
        : [],
      ...trusted === undefined ? [] : [`  Server's own    ${trusted} (self-signed unless you replaced it)`]
    ],
    ...servesPanel ? [`  Panel           ${config.admin.base_url}/ui/`] : [],
    "",
    ...signInLines(signIn, program),
    ...profile === undefined
      ? []
      : [
        ...trialLines(profile, `${page}directory`, trusted),
        "How machines trust the CA, and what to paste for each client:",
        "",
        `  ${page}`,
        ""
      ],
    ""
  ].join("\n")
}
