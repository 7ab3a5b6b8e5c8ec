import type { CertificateKinds } from "../../domain/CertificateKind.ts"
import { clientAddress } from "../../domain/ClientAddress.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import { certificateKinds } from "../../settings/CertificateKinds.ts"

/** A profile as clients reach it. Every URL for clients is made here, from `server.base_url`. */
export class Endpoint {
  readonly profile: ProfileConfig
  /**
   * `server.base_url` as URL parsers write it: the host in lower case, without the default port. Many clients parse the
   * URLs that they get, and would otherwise sign another spelling.
   */
  readonly origin: string
  /** Returns the same URL for a URL that begins with `server.base_url` as it is configured, and any other unchanged. */
  readonly respelled: (url: string) => string
  /** The URL of the profile: `<base_url>/profile/<name>`. */
  readonly base: string
  /** The text with which the URL of every account begins. */
  readonly accountPrefix: string
  /**
   * The value of the header `Link` with `rel="index"`, which every ACME answer except the directory has (RFC 8555
   * section 7.1).
   */
  readonly indexLink: string
  /** The directory object (RFC 8555 section 7.1.1) as UTF-8. It is rendered only once. */
  readonly directory: Uint8Array
  /** Returns the address of the client that sent a request for this profile. */
  readonly clientAddress: ReturnType<typeof clientAddress>

  constructor(profile: ProfileConfig, baseUrl: string) {
    this.profile = profile
    this.clientAddress = clientAddress(profile.filter)
    const { origin, pathname } = new URL(baseUrl)
    const normal = pathname === "/" ? origin : `${origin}${pathname}`
    this.origin = normal
    this.respelled = (url) => url.startsWith(`${baseUrl}/`) ? `${normal}${url.slice(baseUrl.length)}` : url
    this.base = `${normal}/profile/${profile.name}`
    this.accountPrefix = `${this.base}/acct/`
    this.indexLink = `<${this.base}/directory>;rel="index"`
    this.directory = Buffer.from(JSON.stringify({
      newNonce: `${this.base}/newNonce`,
      newAccount: `${this.base}/newAccount`,
      newOrder: `${this.base}/newOrder`,
      revokeCert: `${this.base}/revokeCert`,
      keyChange: `${this.base}/keyChange`,
      renewalInfo: `${this.base}/renewalInfo`,
      ...meta(profile)
    }))
  }

  account = (id: string): string => `${this.accountPrefix}${id}`
  orders = (id: string): string => `${this.accountPrefix}${id}/orders`
  order = (id: string): string => `${this.base}/order/${id}`
  finalize = (id: string): string => `${this.base}/order/${id}/finalize`
  certificate = (id: string): string => `${this.base}/certificate/${id}`
  authorization = (id: string): string => `${this.base}/authz/${id}`
  challenge = (id: string): string => `${this.base}/chall/${id}`
}

// The object has only the configured members: an unset member is left out, never empty. The object itself is always
// present, because some clients read it without a check.
const meta = (profile: ProfileConfig): { readonly meta: object } => ({
  meta: {
    ...ofProfile(profile),
    ...offeredKinds(certificateKinds(profile))
  }
})

// draft-ietf-acme-profiles calls a kind of certificate a profile.
const offeredKinds = ({ byName, isOffered }: CertificateKinds) =>
  isOffered
    ? { profiles: Object.fromEntries([...byName.values()].map(({ description, name }) => [name, description])) }
    : {}

const ofProfile = ({ eab, meta }: ProfileConfig) => ({
  ...(eab.enabled ? { externalAccountRequired: true } : {}),
  ...(meta.terms_of_service === "" ? {} : { termsOfService: meta.terms_of_service }),
  ...(meta.website === "" ? {} : { website: meta.website }),
  ...(meta.caa_identities.length === 0 ? {} : { caaIdentities: meta.caa_identities })
})
