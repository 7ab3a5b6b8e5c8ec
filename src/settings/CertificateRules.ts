import { leafKeySupported } from "../crypto/keys/LeafKeys.ts"
import { defaultKind } from "../domain/CertificateKind.ts"
import type { Finding, Subject } from "./Finding.ts"

/** The keys of a kind that are not only for a local CA. */
const ofEverySigner = ["description", "keys", "unrequested", "upstream"] as const

/** The keys of a kind that say what a certificate contains. A relay and a program decide that themselves. */
const ofLocalCa = [
  "validity",
  "usages",
  "common_name",
  "policies",
  "subject.organization",
  "subject.organizational_unit",
  "subject.country",
  "subject.locality",
  "subject.state"
] as const

/**
 * Returns every fault in the kinds of all profiles. A fault that several profiles inherit is reported once. A key that
 * only a local CA obeys may be inherited by other profiles if some profile has a local CA.
 */
export const certificateFindings = ({ config, isSet, written }: Subject): ReadonlyArray<Finding> => {
  const hasLocalCa = config.profiles.some(({ signer }) => signer.backend === "local_ca")
  const hasRelay = config.profiles.some(({ signer }) => signer.backend === "relay")
  return config.profiles.flatMap(({ certificates, name, signer: { backend } }) => {
    const at = (key: string) => written(`profiles.${name}.${key}`)
    // A key that only a relay obeys may be inherited by other profiles if some profile is a relay.
    const isOwnOrUnused = (key: string) => !hasRelay || at(key) === `profiles.${name}.${key}`
    const isWritten = (key: string) =>
      isSet(`profiles.${name}.${key}`) && (!hasLocalCa || at(key) === `profiles.${name}.${key}`)
    const finding = (key: string, message: string, ...others: ReadonlyArray<string>): Finding => ({
      key: at(key),
      message,
      involves: [key, ...others].map(at)
    })
    const kinds = Object.entries(certificates.kinds)
    const names = [...new Set([defaultKind, ...kinds.map(([kind]) => kind)])]
    const { default: chosen } = certificates
    return [
      ...names.includes(chosen)
        ? []
        : [finding("certificates.default", `names ${chosen}, but there is no certificates.kinds.${chosen}`)],
      ...names.length === 1
        ? []
        : names.filter((kind) => (certificates.kinds[kind]?.description ?? "") === "").map((kind) => {
          const key = `certificates.kinds.${kind}`
          // A missing key is reported where its table is written.
          const own = `profiles.${name}.${key}`
          const isOwn = [...ofLocalCa, ...ofEverySigner].some((part) => written(`${own}.${part}`) === `${own}.${part}`)
          const message = "must be set, because clients choose among several kinds by their descriptions"
          return isOwn
            ? { key: `${own}.description`, message, involves: [`${own}.description`] }
            : finding(`${key}.description`, message)
        }),
      ...kinds.flatMap(([kind, { keys, upstream }]) => {
        const key = `certificates.kinds.${kind}`
        const unsupported = keys.filter((one) => !leafKeySupported(one))
        return [
          ...backend === "local_ca"
            ? []
            : ofLocalCa.filter((part) => isWritten(`${key}.${part}`)).map((part) =>
              finding(
                `${key}.${part}`,
                `belongs to signer.backend = "local_ca"; with "${backend}" the signer decides it`,
                "signer.backend"
              )
            ),
          ...backend !== "relay" && upstream !== "" && isOwnOrUnused(`${key}.upstream`)
            ? [finding(`${key}.upstream`, `must be empty unless ${at("signer.backend")} is "relay"`, "signer.backend")]
            : [],
          ...unsupported.length === 0
            ? []
            : [finding(
              `${key}.keys`,
              `names ${unsupported.join(", ")}, whose signatures this Node.js cannot verify; Node.js 24 can`
            )]
        ]
      })
    ]
  })
}
