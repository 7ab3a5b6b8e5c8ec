import * as nodePath from "node:path"
import type { Config, ProfileConfig } from "./AppConfig.ts"
import type { Finding, Subject } from "./Finding.ts"

/** Returns the process-wide sections, then the sections of each profile. Each comes with the prefix of its keys. */
export const scopes = (
  config: Config
): ReadonlyArray<readonly [string, Pick<ProfileConfig, "account" | "challenge" | "order" | "signer">]> => [
  ["", config],
  ...config.profiles.map((profile) => [`profiles.${profile.name}.`, profile] as const)
]

/** Returns the same form for all spellings of a path. */
export const absolute = (cwd: string | undefined, path: string): string =>
  cwd === undefined ? nodePath.normalize(path) : nodePath.resolve(cwd, path)

const differentFiles = ({ cwd, written }: Subject) =>
(
  section: string,
  paths: { readonly [key: string]: string }
): ReadonlyArray<Finding> => {
  const files = Object.entries(paths).map(([name, path]) => ({
    key: written(`${section}.${name}`),
    file: absolute(cwd, path)
  }))
  return files.flatMap(({ file, key }, index) => {
    const earlier = files.slice(0, index).find((other) => other.file === file)
    return earlier === undefined
      ? []
      : [{ key, message: `must not be the same file as ${earlier.key}`, involves: [key, earlier.key] }]
  })
}

type Others = ProfileConfig["signer"]["local_ca"]["others"]

/** Returns the files of the CAs of `others` that are configured. */
const otherFiles = (others: Others): { readonly [key: string]: string } =>
  Object.fromEntries(
    Object.entries(others).flatMap(([name, { cert_path, crl_path, key_path, key_source }]) =>
      Object.entries({ cert_path, crl_path, ...key_source === "file" ? { key_path } : {} })
        .filter(([, path]) => path !== "")
        .map(([key, path]) => [`local_ca.others.${name}.${key}`, path])
    )
  )

const chainKey = "audit.chain_key_path"

/** Returns every file that the configured service writes, and the key that names the file. */
const writtenBy = ({ config, cwd, written }: Subject) =>
  [
    ...(["server", "admin"] as const).flatMap((listener) =>
      (["cert_path", "key_path"] as const).map((name) => ({
        key: `${listener}.tls.${name}`,
        path: config[listener].tls[name]
      }))
    ),
    ...config.audit.chain_key_path === ""
      ? []
      : [{ key: chainKey, path: config.audit.chain_key_path }],
    ...config.profiles.flatMap(({ name, signer: { backend, local_ca, relay } }) => {
      const { cert_path, crl_der_path, crl_path, key_path, key_source } = local_ca
      const { account_key_path } = relay
      const files: { readonly [key: string]: string } = backend === "relay"
        ? { "relay.account_key_path": account_key_path }
        : backend === "local_ca"
        ? {
          "local_ca.cert_path": cert_path,
          ...key_source === "file" ? { "local_ca.key_path": key_path } : {},
          "local_ca.crl_path": crl_path,
          ...crl_der_path === "" ? {} : { "local_ca.crl_der_path": crl_der_path },
          ...otherFiles(local_ca.others)
        }
        : {}
      return Object.entries(files).map(([key, path]) => ({ key: `profiles.${name}.signer.${key}`, path }))
    })
  ].map(({ key, path }) => ({ key: written(key), file: absolute(cwd, path) }))

/**
 * Finds the keys that name the same file as a relay's account key, or as the `.kid` file beside that key. Another rule
 * checks relays that share a key.
 */
const accountFiles = (subject: Subject): ReadonlyArray<Finding> => {
  const others = writtenBy(subject)
  const isAccount = ({ key }: { readonly key: string }) => key.endsWith("relay.account_key_path")
  return others.filter(isAccount).flatMap(({ file, key }) => {
    const at = (path: string) => (other: { readonly key: string; readonly file: string }) => other.file === path
    const same = others.filter((other) => !isAccount(other)).find(at(file))
    const beside = others.find(at(`${file}.kid`))
    return [
      ...same === undefined
        ? []
        : [{ key, message: `must not be the same file as ${same.key}`, involves: [key, same.key] }],
      ...beside === undefined ? [] : [{
        key: beside.key,
        message: `must not be the file of the account's URL, which is ${key} with .kid at its end`,
        involves: [key, beside.key]
      }]
    ]
  })
}

/**
 * Finds the keys that name the same file as the record of issued lists, which is beside each `crl_path`. Another rule
 * checks CAs that share a `crl_path`.
 */
const recordFiles = (subject: Subject): ReadonlyArray<Finding> => {
  const others = writtenBy(subject)
  return others.filter(({ key }) => key.endsWith("local_ca.crl_path")).flatMap(({ file, key }) => {
    const beside = others.find((other) => other.file === `${file}.issued`)
    return beside === undefined ? [] : [{
      key: beside.key,
      message: `must not be the record of issued lists, which is ${key} with .issued at its end`,
      involves: [key, beside.key]
    }]
  })
}

/**
 * Finds the key that names the same file as the key of the audit chain. If the audit chain used the key of a CA,
 * everybody with that key could forge the trail.
 */
const chainKeyFiles = (subject: Subject): ReadonlyArray<Finding> => {
  const files = writtenBy(subject)
  const own = files.find(({ key }) => key === chainKey)
  const same = files.find(({ file, key }) => key !== chainKey && file === own?.file)
  return same === undefined || same.key.endsWith("relay.account_key_path") // `accountFiles` finds this one
    ? []
    : [{ key: chainKey, message: `must not be the same file as ${same.key}`, involves: [chainKey, same.key] }]
}

/** Checks that the service writes no file for two purposes. Otherwise a revocation list could overwrite a key. */
export const fileFindings = (subject: Subject): ReadonlyArray<Finding> => {
  const different = differentFiles(subject)
  const pairOf = ({ cert_path, key_path }: { readonly cert_path: string; readonly key_path: string }) => ({
    cert_path,
    key_path
  })
  return [
    ...different("server.tls", pairOf(subject.config.server.tls)),
    ...different("admin.tls", pairOf(subject.config.admin.tls)),
    ...scopes(subject.config).filter(([, { signer }]) => signer.backend === "local_ca").flatMap((
      [scope, { signer: { local_ca } }]
    ) =>
      different(`${scope}signer.local_ca`, {
        cert_path: local_ca.cert_path,
        ...local_ca.key_source === "file" ? { key_path: local_ca.key_path } : {},
        crl_path: local_ca.crl_path,
        ...local_ca.crl_der_path === "" ? {} : { crl_der_path: local_ca.crl_der_path },
        ...local_ca.key_passphrase_file === "" ? {} : { key_passphrase_file: local_ca.key_passphrase_file }
      })
    ),
    ...accountFiles(subject),
    ...recordFiles(subject),
    ...chainKeyFiles(subject)
  ]
}
