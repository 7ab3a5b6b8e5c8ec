import * as Redacted from "effect/Redacted"
import type { SignerBackend } from "../domain/SignerBackend.ts"
import { sectionText } from "../engine/config/Section.ts"
import { parseProxy } from "../engine/net/Proxy.ts"
import { adminFindings } from "./AdminRules.ts"
import type { ProfileConfig } from "./AppConfig.ts"
import { auditFindings } from "./AuditRules.ts"
import { caKeyFindings, caKeyOf } from "./CaKeyRules.ts"
import { certificateFindings } from "./CertificateRules.ts"
import { absolute, fileFindings, scopes } from "./FileRules.ts"
import type { Finding, Subject } from "./Finding.ts"
import { notifyFindings } from "./NotifyRules.ts"
import { otherCaFindings } from "./OtherCaRules.ts"
import { policyFindings } from "./PolicyRules.ts"
import { relayFindings } from "./RelayRules.ts"

/** The smallest file with a `[profiles.<name>]`. The refusal of an empty configuration prints this file. */
const minimalFile = `[profiles.default]
enabled = true`

const someProfile = ({ config: { profiles }, written }: Subject): ReadonlyArray<Finding> =>
  profiles.some(({ enabled }) => enabled) ? [] : [{
    key: "profiles",
    message: `no profile is enabled, so nothing would be served. A minimal config.toml that works:\n\n${minimalFile}\n`,
    involves: profiles.map(({ name }) => written(`profiles.${name}.enabled`))
  }]

/** Refuses a standby for SQLite, which has none. */
const standbys = ({ config: { database } }: Subject): ReadonlyArray<Finding> =>
  Redacted.value(database.read_url) === "" || !Redacted.value(database.url).startsWith("sqlite://") ? [] : [{
    key: "database.read_url",
    message: "must be empty while database.url is a SQLite file, which has no standby",
    involves: ["database.read_url", "database.url"]
  }]

/**
 * Refuses several processes where they would gain nothing or lose connections (docs/contribute/decisions/processes.md).
 */
const processes = ({ config: { database, server } }: Subject): ReadonlyArray<Finding> => {
  const [key, { processes, reuse_port }] = ["server.processes", server]
  if (processes === 1) return []
  if (Redacted.value(database.url).startsWith("sqlite://")) {
    return [{
      key,
      message: "must be 1 while database.url is a SQLite file, because all processes would wait for its one writer",
      involves: [key, "database.url"]
    }]
  }
  if (reuse_port) {
    return [{
      key,
      message: "must be 1 while server.reuse_port is true: the processes of one parent already share one socket",
      involves: [key, "server.reuse_port"]
    }]
  }
  const most = server.max_concurrent_requests
  return processes === "auto" || processes <= most ? [] : [{
    key,
    message:
      `must not be more than server.max_concurrent_requests, which is ${most} and is divided among the processes`,
    involves: [key, "server.max_concurrent_requests"]
  }]
}

const signerScripts = ({ config, written }: Subject): ReadonlyArray<Finding> =>
  config.profiles.filter(({ signer }) => signer.backend === "custom").flatMap(({ name, signer: { custom } }) => {
    const at = (key: string) => written(`profiles.${name}.signer.${key}`)
    const limit = config.server.request_timeout_ms
    const [hook] = (["supports_crl", "supports_renewal_info"] as const).filter((hook) => custom[hook])
    return [
      ...custom.script_path !== "" ? [] : [{
        key: at("custom.script_path"),
        message: `must name a program while ${at("backend")} is "custom"`,
        involves: [at("custom.script_path"), at("backend")]
      }],
      ...hook === undefined || custom.timeout_ms < limit ? [] : [{
        key: at("custom.timeout_ms"),
        message: `must be less than server.request_timeout_ms, which is ${limit}, while ${
          at(`custom.${hook}`)
        } is true`,
        involves: [at("custom.timeout_ms"), at("backend"), at(`custom.${hook}`), "server.request_timeout_ms"]
      }]
    ]
  })

const timeouts = ({ config, written }: Subject): ReadonlyArray<Finding> => {
  const limit = config.server.request_timeout_ms
  return scopes(config).flatMap(([scope, { challenge, order }]) =>
    ([
      ["challenge.timeout_ms", challenge.timeout_ms],
      ["challenge.answer_wait_ms", challenge.answer_wait_ms],
      ["order.finalize_wait_ms", order.finalize_wait_ms]
    ] as const).filter(([, millis]) => millis >= limit).map(([name]) => {
      const key = written(`${scope}${name}`)
      return {
        key,
        message: `must be less than server.request_timeout_ms, which is ${limit}`,
        involves: [key, "server.request_timeout_ms"]
      }
    })
  )
}

/** Requires ES256, because RFC 8555 section 6.2 promises this algorithm to every client. */
const accountAlgorithms = ({ config, written }: Subject): ReadonlyArray<Finding> =>
  scopes(config).flatMap(([scope, { account }]) => {
    const key = written(`${scope}account.algorithms`)
    return account.algorithms.includes("ES256")
      ? []
      : [{ key, message: "must name ES256, which every client may count on", involves: [key] }]
  })

/**
 * Refuses an unusable variable instead of ignoring it. Otherwise requests would bypass the proxy that the variable was
 * meant to name.
 */
const proxyVariables = ({ config: { proxy, proxyVariables } }: Subject): ReadonlyArray<Finding> =>
  ([["http_url", "http_proxy"], ["https_url", "https_proxy"]] as const).flatMap(([key, variable]) =>
    Redacted.value(proxy[key]) !== "" || proxyVariables[key] === "" || parseProxy(proxyVariables[key]) !== undefined
      ? []
      : [{
        key: `proxy.${key}`,
        message: `is not set, and the variable ${variable} is not the http:// URL of a proxy`,
        involves: [`proxy.${key}`]
      }]
  )

const isRecord = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !Redacted.isRedacted(value)

/** Returns the dotted names of the members in which two sections differ. Secrets are compared too. */
const differences = (left: object, right: object, at = ""): ReadonlyArray<string> => {
  const others = new Map<string, unknown>(Object.entries(right))
  return Object.entries(left).flatMap(([name, value]: [string, unknown]) => {
    const other = others.get(name)
    if (isRecord(value) && isRecord(other)) return differences(value, other, `${at}${name}.`)
    return sectionText([value]) === sectionText([other]) ? [] : [`${at}${name}`]
  })
}

type Signer = ProfileConfig["signer"]

/**
 * Checks that profiles whose signers have the same key also have equal sections, because these profiles share one
 * signer.
 */
const sharing = (
  { config, written }: Subject,
  { backend, keyOf, what }: {
    readonly backend: SignerBackend
    /** Returns the key of the configuration that names the key, and a text that is the same for the same key. */
    readonly keyOf: (signer: Signer) => { readonly named: string; readonly key: string }
    readonly what: string
  }
): ReadonlyArray<Finding> => {
  const holders = config.profiles.filter(({ signer }) => signer.backend === backend).map(({ name, signer }) => ({
    name,
    signer,
    ...keyOf(signer),
    section: `profiles.${name}.signer`
  }))
  return holders.flatMap((holder, index) => {
    const first = holders.slice(0, index).find(({ key }) => key === holder.key)
    const differ = first === undefined ? [] : differences(first.signer, holder.signer)
    if (first === undefined || differ.length === 0) return []
    return [{
      key: `${holder.section}.${holder.named}`,
      message: `names the ${what} of profile ${first.name}, but their signer sections differ in ${differ.join(", ")}; `
        + "make them the same or use another key",
      involves: [holder.named, ...differ].flatMap((name) =>
        [first, holder].map(({ section }) => written(`${section}.${name}`))
      )
    }]
  })
}

/**
 * Checks that profiles with the same CA key have equal sections, because they share one CA
 * (docs/contribute/decisions/local-ca.md, "Loading").
 */
const sharedKeys = (subject: Subject): ReadonlyArray<Finding> =>
  sharing(subject, {
    backend: "local_ca",
    keyOf: ({ local_ca }) => {
      const { key, named } = caKeyOf(local_ca, subject.cwd)
      return { named: `local_ca.${named}`, key }
    },
    what: "CA key"
  })

/** Checks that relays with the same account key have equal sections, because they share one account. */
const sharedAccounts = (subject: Subject): ReadonlyArray<Finding> =>
  sharing(subject, {
    backend: "relay",
    keyOf: ({ relay }) => ({ named: "relay.account_key_path", key: absolute(subject.cwd, relay.account_key_path) }),
    what: "account key"
  })

const caFiles = ["cert_path", "key_path", "crl_path", "crl_der_path"] as const

/**
 * Checks that CAs with different keys share no file. Otherwise a revocation list would overwrite another list or a key,
 * and an old ledger would be imported twice.
 */
const separateCas = ({ config, cwd, written }: Subject): ReadonlyArray<Finding> => {
  const withLocalCa = config.profiles.filter(({ signer }) => signer.backend === "local_ca")
  const files = withLocalCa.flatMap(({ name, signer: { local_ca } }) =>
    caFiles.filter((file) => local_ca[file] !== "" && (file !== "key_path" || local_ca.key_source === "file")).map((
      file
    ) => ({
      file,
      ...caKeyOf(local_ca, cwd),
      path: absolute(cwd, local_ca[file]),
      section: `profiles.${name}.signer.local_ca`
    }))
  )
  return files.flatMap((one, index) => {
    const other = files.slice(0, index).find(({ key, path }) => path === one.path && key !== one.key)
    return other === undefined ? [] : [{
      key: `${one.section}.${one.file}`,
      message: `is the file of ${other.section}.${other.file} too, but their CAs have different keys`,
      involves: [one, other].flatMap(({ file, named, section }) =>
        [file, named].map((key) => written(`${section}.${key}`))
      )
    }]
  })
}

/** Checks that each CA has a name, because a certificate's issuer must have one (RFC 5280 section 4.1.2.4). */
const namedCas = ({ config, written }: Subject): ReadonlyArray<Finding> =>
  config.profiles.flatMap(({ name, signer: { backend, local_ca: { subject } } }) => {
    const at = (key: string) => written(`profiles.${name}.signer.${key}`)
    if (backend !== "local_ca" || Object.values(subject).some((part) => part !== "")) return []
    return [{
      key: at("local_ca.subject.common_name"),
      message: "must not be empty while the other keys of the subject are",
      involves: [at("backend"), ...Object.keys(subject).map((key) => at(`local_ca.subject.${key}`))]
    }]
  })

/** Applies every rule over several keys: the process-wide rules, and the rules for each profile. */
export const findings = (subject: Subject): ReadonlyArray<Finding> =>
  [
    someProfile,
    timeouts,
    accountAlgorithms,
    standbys,
    processes,
    signerScripts,
    relayFindings,
    sharedAccounts,
    proxyVariables,
    fileFindings,
    caKeyFindings,
    otherCaFindings,
    sharedKeys,
    separateCas,
    namedCas,
    certificateFindings,
    policyFindings,
    adminFindings,
    auditFindings,
    notifyFindings
  ].flatMap(
    (rule) => rule(subject)
  )
