import { mostAlternates } from "../domain/AlternateChain.ts"
import { parseRfc3339 } from "../engine/Time.ts"
import type { ProfileConfig } from "./AppConfig.ts"
import { caKeyOf, inTable } from "./CaKeyRules.ts"
import { absolute } from "./FileRules.ts"
import type { Finding, Subject } from "./Finding.ts"

/* The rules about several CAs of one profile (docs/contribute/decisions/rotation.md). */

type OtherCa = ProfileConfig["signer"]["local_ca"]["others"][string]

/** Returns the key of a CA with its fault, or undefined if there is none. */
const faultOf = ({ cert_path, from, state }: OtherCa): readonly [key: string, message: string] | undefined => {
  if (cert_path === "") return ["cert_path", "must be set"]
  if (state === "waiting" && from === "") return ["from", "must be set while the state is \"waiting\""]
  if (state === "retired" && from !== "") {
    return ["from", "must be empty while the state is \"retired\": a retired CA issues at no time"]
  }
  return undefined
}

/**
 * Returns findings about the CAs of `signer.local_ca.others`: about keys that their states require, about two CAs that
 * begin to issue at the same time, about a certificate, a key or a file of a list that two CAs of a profile share, and
 * about too many cross-certificates.
 */
export const otherCaFindings = (subject: Subject): ReadonlyArray<Finding> => {
  const { config, cwd, written } = subject
  return config.profiles.filter(({ signer }) => signer.backend === "local_ca").flatMap(
    ({ name, signer: { local_ca } }) => {
      const first = `profiles.${name}.signer.local_ca`
      const others = Object.entries(local_ca.others).map(([other, ca]) => ({ ca, section: `${first}.others.${other}` }))
      const faults = others.flatMap(({ ca, section }) => {
        const fault = faultOf(ca)
        if (fault === undefined) return []
        const [key, message] = fault
        return [{
          key: inTable(subject, section)(key),
          message,
          involves: [key, "state"].map(inTable(subject, section))
        }]
      })
      const times = others.flatMap(({ ca: { from }, section }) => {
        const at = parseRfc3339(from)
        return at === undefined ? [] : [{ value: String(at), key: `${section}.from`, what: "the time" }]
      })
      const values = [{ ca: local_ca, section: first }, ...others].flatMap(({ ca, section }) => {
        const { key, named } = caKeyOf(ca, cwd)
        const isFile = ca.key_source === "file"
        return [
          { value: absolute(cwd, ca.cert_path), key: `${section}.cert_path`, what: "the certificate" },
          ...isFile && ca.key_path === "" ? [] : [{ value: key, key: `${section}.${named}`, what: "the key" }],
          ...ca.crl_path === ""
            ? []
            : [{ value: absolute(cwd, ca.crl_path), key: `${section}.crl_path`, what: "the file" }]
        ]
      }).filter(({ value }) => value !== absolute(cwd, ""))
      const tooMany = [{ ca: local_ca, section: first }, ...others].flatMap(({ ca, section }) => {
        const key = inTable(subject, section)("cross_cert_paths")
        const message =
          `has more than ${mostAlternates} files, and a certificate has at most ${mostAlternates} alternate chains`
        return ca.cross_cert_paths.length <= mostAlternates ? [] : [{ key, message, involves: [key] }]
      })
      const same = (all: ReadonlyArray<{ readonly value: string; readonly key: string; readonly what: string }>) =>
        all.flatMap(({ key, value, what }, index) => {
          const earlier = all.slice(0, index).find((other) => other.value === value)
          if (earlier === undefined) return []
          const keys = [key, earlier.key].map(written)
          return [{ key: written(key), message: `is ${what} of ${written(earlier.key)} too`, involves: keys }]
        })
      return others.length === 0 ? tooMany : [...faults, ...tooMany, ...same(times), ...same(values)]
    }
  )
}
