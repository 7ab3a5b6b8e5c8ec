import { lackedMlDsa } from "../crypto/keys/MlDsa.ts"
import type { ProfileConfig } from "./AppConfig.ts"
import { absolute } from "./FileRules.ts"
import type { Finding, Subject } from "./Finding.ts"

/* The rules about where the key of a CA is (docs/contribute/decisions/ca-keys.md). */

type LocalCa = ProfileConfig["signer"]["local_ca"]
type OtherCa = LocalCa["others"][string]

/** The keys that say where the key of a CA is. */
type CaKeySection = Pick<OtherCa, "key_source" | "key_path" | "key_passphrase_file" | "pkcs11" | "transit">
type Source = CaKeySection["key_source"]

/** Each key that belongs to one source, with the value that means that it is not set. */
const owned = {
  file: { key_path: "", key_passphrase_file: "" },
  pkcs11: {
    "pkcs11.module_path": "",
    "pkcs11.token_label": "",
    "pkcs11.slot_id": -1,
    "pkcs11.key_label": "",
    "pkcs11.key_id": "",
    "pkcs11.pin_file": ""
  },
  transit: {
    "transit.address": "",
    "transit.mount": "transit",
    "transit.key": "",
    "transit.key_version": 0,
    "transit.namespace": "",
    "transit.token_file": "",
    "transit.ca_path": ""
  }
} as const

const sources = Object.keys(owned) as ReadonlyArray<Source>

const required: { readonly [S in Source]: ReadonlyArray<string> } = {
  file: ["key_path"],
  pkcs11: ["pkcs11.module_path", "pkcs11.pin_file"],
  transit: ["transit.address", "transit.key", "transit.token_file"]
}

/** The key file of the first CA if none is configured. */
const firstKeyPath = "ca.key"

const valueOf = (section: CaKeySection, key: string): unknown =>
  key.split(".").reduce<unknown>(
    (value, member) => (value as { readonly [name: string]: unknown } | undefined)?.[member],
    section
  )

/** Returns the key that names the key of a CA, and a text that is the same for the same key. */
export const caKeyOf = (
  { key_path, key_source, pkcs11, transit }: CaKeySection,
  cwd: string | undefined
): { readonly named: string; readonly key: string } => {
  if (key_source === "file") return { named: "key_path", key: absolute(cwd, key_path) }
  if (key_source === "transit") {
    const { address, key, key_version, mount, namespace } = transit
    const at = URL.canParse(address) ? new URL(address).href.replace(/\/+$/, "") : address
    return { named: "transit", key: JSON.stringify([at, namespace, mount, key, key_version]) }
  }
  const { key_id, key_label, module_path, slot_id, token_label } = pkcs11
  const key = [absolute(cwd, module_path), token_label, slot_id, key_label, key_id.toLowerCase()]
  return { named: "pkcs11", key: JSON.stringify(key) }
}

/** The keys of a table of another CA by which the place of the table is found. */
const tableKeys = [
  "cert_path",
  "key_path",
  "key_source",
  "state",
  "from",
  "crl_path",
  "key_passphrase_file",
  "cross_cert_paths"
]

/**
 * Returns the keys of the table of another CA as the operator wrote them, or would write a missing key: beside the keys
 * that the table has.
 */
export const inTable = ({ isSet, written }: Subject, section: string) => (key: string): string => {
  const own = `${section}.${key}`
  const isOwnTable = tableKeys.map((one) => `${section}.${one}`).some((one) => isSet(one) && written(one) === one)
  return isOwnTable && !isSet(own) ? own : written(own)
}

/**
 * Returns findings about keys that the source of a CA key requires, and about keys that belong to another source. A
 * profile may inherit keys of another source, because other profiles use them.
 */
export const caKeyFindings = (subject: Subject): ReadonlyArray<Finding> => {
  const { config, isSet, written } = subject
  return config.profiles.filter(({ signer }) => signer.backend === "local_ca").flatMap(
    ({ name, signer: { local_ca } }) => {
      const first = `profiles.${name}.signer.local_ca`
      const all: ReadonlyArray<readonly [section: string, ca: CaKeySection, unsetKeyPath: string]> = [
        [first, local_ca, firstKeyPath],
        ...Object.entries(local_ca.others).map(([other, ca]) => [`${first}.others.${other}`, ca, ""] as const)
      ]
      const lacked = lackedMlDsa(local_ca.key_type)
      const lacks: ReadonlyArray<Finding> = lacked === undefined ? [] : [{
        key: written(`${first}.key_type`),
        message: `names ${local_ca.key_type}, a kind of key that this Node.js does not have; Node.js 24 has it`,
        involves: ["local_ca.key_type", "backend"].map((key) => written(`profiles.${name}.signer.${key}`))
      }]
      return lacks.concat(all.flatMap(([section, ca, unsetKeyPath]) => {
        const at = section === first ? (key: string) => written(`${section}.${key}`) : inTable(subject, section)
        const { key_source, pkcs11 } = ca
        const finding = (key: string, message: string, ...more: ReadonlyArray<string>): Finding => ({
          key: at(key),
          message,
          involves: [at(key), at("key_source"), written(`profiles.${name}.signer.backend`), ...more.map(at)]
        })
        const isUnset = (source: Source, key: string) =>
          valueOf(ca, key) ===
            (key === "key_path" ? unsetKeyPath : (owned[source] as { readonly [key: string]: unknown })[key])
        const isOwn = (key: string) => at(key) === `${section}.${key}`
        const foreign = sources.filter((source) => source !== key_source).flatMap((source) =>
          Object.keys(owned[source]).filter((key) =>
            isSet(`${section}.${key}`) && !isUnset(source, key) && (isOwn(key) || !isOwn("key_source"))
          )
        )
        const choices = (one: string, other: string, isExclusive: boolean): ReadonlyArray<Finding> => {
          const [lacksOne, lacksOther] = [isUnset("pkcs11", one), isUnset("pkcs11", other)]
          if (lacksOne && lacksOther) {
            return [finding(one, `must be set while ${at("key_source")} is "pkcs11", or ${at(other)}`, other)]
          }
          return isExclusive && !lacksOne && !lacksOther
            ? [finding(other, `must not be set beside ${at(one)}, which names the token too`, one)]
            : []
        }
        return [
          ...required[key_source].filter((key) => isUnset(key_source, key) && valueOf(ca, key) === "").map((key) =>
            finding(key, `must be set while ${at("key_source")} is "${key_source}"`)
          ),
          ...foreign.map((key) =>
            finding(key, `has no effect while ${at("key_source")} is "${key_source}"; remove it`)
          ),
          ...key_source === "pkcs11" && pkcs11.module_path !== ""
            ? [
              ...choices("pkcs11.token_label", "pkcs11.slot_id", true),
              ...choices("pkcs11.key_label", "pkcs11.key_id", false)
            ]
            : []
        ]
      }))
    }
  )
}
