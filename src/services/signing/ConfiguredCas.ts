import type { OtherState, Timed } from "../../domain/IssuerState.ts"
import { issuerMark } from "../../domain/IssuerState.ts"
import { parseRfc3339 } from "../../engine/Time.ts"
import type { CaFileSettings, CaKeySettings } from "./CaFiles.ts"

/*
 * The CAs of a `signer.local_ca` section: the first one, and those of `others` (docs/contribute/decisions/rotation.md).
 */

/** What every CA of a section puts into its leaves, and the files of its list. */
interface Published {
  readonly leaf_validity_days: number
  readonly crl_path: string
  /** The file for the list as DER. Empty if the list is exported only as PEM. */
  readonly crl_der_path: string
  /** URLs of the list. `{issuer}` stands for the id of the CA. */
  readonly crl_distribution_points: ReadonlyArray<string>
  /** URLs of the certificate. `{issuer}` stands for the id of the CA. */
  readonly ca_issuer_urls: ReadonlyArray<string>
}

/** The keys of `signer.local_ca.others.<name>`. */
export interface OtherCaSettings extends CaKeySettings {
  readonly state: OtherState
  /** When a waiting CA begins to issue, as an RFC 3339 time. Empty if the CA is retired. */
  readonly from: string
  /** Empty for the first CA's file with the name of this CA before its extension. */
  readonly crl_path: string
  readonly cross_cert_paths: ReadonlyArray<string>
}

/** The keys of `signer.local_ca`. */
export interface LocalCaSettings extends CaFileSettings, OneCaSettings {
  readonly others?: { readonly [name: string]: OtherCaSettings }
}

/** The keys of one CA, which signs certificates, lists, or both. */
export interface OneCaSettings extends CaKeySettings, Published {
  /** Files with cross-certificates of this CA. */
  readonly cross_cert_paths: ReadonlyArray<string>
}

/** One of the CAs of a section. */
export interface ConfiguredCa extends Timed {
  /** Undefined for the CA of the section itself. */
  readonly name: string | undefined
  readonly settings: OneCaSettings
}

/** Returns the file for the list of a CA of `others`: by default, the first CA's file with the name of the CA. */
const crlPathOf = (first: string, name: string, { crl_path }: Pick<OtherCaSettings, "crl_path">): string => {
  if (crl_path !== "") return crl_path
  const [extension = ""] = /(?<=[^/])\.[^./]*$/.exec(first) ?? []
  return `${first.slice(0, first.length - extension.length)}-${name}${extension}`
}

/** Returns the CAs of a section. The first one issues until the time of one of the others has come. */
export const casOf = (settings: LocalCaSettings): ReadonlyArray<ConfiguredCa> => {
  const { others = {}, ...first } = settings
  return [
    { name: undefined, from: Number.NEGATIVE_INFINITY, settings: first },
    ...Object.entries(others).map(([name, other]): ConfiguredCa => ({
      name,
      from: other.state === "waiting" ? parseRfc3339(other.from) : undefined,
      settings: {
        ...first,
        ...other,
        section: `signer.local_ca.others.${name}`,
        crl_path: crlPathOf(first.crl_path, name, other),
        crl_der_path: ""
      }
    }))
  ]
}

/** Returns URLs with the id of a CA at the place of `{issuer}`. */
export const urlsOf = (urls: ReadonlyArray<string>, issuerId: string): ReadonlyArray<string> =>
  urls.map((url) => url.replaceAll(issuerMark, issuerId))
