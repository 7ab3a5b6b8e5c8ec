import { defaultLeafKeys } from "../crypto/keys/LeafKeys.ts"
import { keyPurposes, purposeOid } from "../crypto/x509/KeyPurpose.ts"
import { leafContent } from "../crypto/x509/LeafContent.ts"
import type { CertificateKind, CertificateKinds } from "../domain/CertificateKind.ts"
import { defaultKind } from "../domain/CertificateKind.ts"
import { oncePer } from "../engine/OncePer.ts"
import type { ProfileConfig } from "./AppConfig.ts"
import { lifetimeSeconds } from "./CertificateForms.ts"

type KindConfig = ProfileConfig["certificates"]["kinds"][string]

/** The kind `default` if no key of it is set. */
const usual: KindConfig = {
  description: "",
  validity: "",
  usages: ["server_auth"],
  keys: defaultLeafKeys,
  common_name: "request",
  policies: [],
  unrequested: "",
  upstream: "",
  subject: { organization: "", organizational_unit: "", country: "", locality: "", state: "" }
}

const isEqual = (one: ReadonlyArray<string>, other: ReadonlyArray<string>): boolean =>
  one.length === other.length && one.every((item, at) => item === other[at])

/**
 * The usages that a certificate of a relay or a program may have. The signer decides which of them the certificate
 * gets.
 */
const foreignUsages = [keyPurposes.server_auth, keyPurposes.client_auth]

const attributes = ({ country, locality, organization, organizational_unit, state }: KindConfig["subject"]) =>
  [
    { type: "2.5.4.6", value: country },
    { type: "2.5.4.8", value: state },
    { type: "2.5.4.7", value: locality },
    { type: "2.5.4.10", value: organization },
    { type: "2.5.4.11", value: organizational_unit }
  ].filter(({ value }) => value !== "")

const kindOf = (name: string, config: KindConfig, { signer }: ProfileConfig): CertificateKind => {
  const isLocal = signer.backend === "local_ca"
  const validity = lifetimeSeconds(config.validity)
  const subject = attributes(config.subject)
  const unrequested = config.unrequested === "" ? (name === defaultKind ? "ignore" : "refuse") : config.unrequested
  return {
    name,
    description: config.description,
    validitySeconds: validity ?? signer.local_ca.leaf_validity_days * 86_400,
    content: leafContent({
      usages: isLocal ? config.usages.map(purposeOid) : foreignUsages,
      policies: config.policies,
      subject
    }),
    keys: config.keys,
    commonName: config.common_name,
    unrequested,
    upstream: config.upstream,
    isPlain: name === defaultKind && validity === undefined && subject.length === 0 && config.policies.length === 0 &&
      isEqual(config.usages, usual.usages) && isEqual([...config.keys].sort(), [...defaultLeafKeys].sort()) &&
      config.common_name === "request" && unrequested === "ignore" && config.upstream === ""
  }
}

/** Returns the kinds of certificates of a profile, each with every default filled in. The kind `default` is the first. */
export const certificateKinds: (profile: ProfileConfig) => CertificateKinds = oncePer((profile) => {
  const { default: chosen, kinds } = profile.certificates
  const byName = new Map(
    Object.entries({ [defaultKind]: usual, ...kinds }).map(([name, config]) => [name, kindOf(name, config, profile)])
  )
  const first = byName.get(defaultKind) ?? kindOf(defaultKind, usual, profile)
  return {
    byName,
    chosen: byName.get(chosen) ?? first,
    isOffered: byName.size > 1 || first.description !== ""
  }
})
