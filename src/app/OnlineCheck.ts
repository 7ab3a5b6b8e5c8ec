import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Entropy } from "../crypto/Entropy.ts"
import { sectionText } from "../engine/config/Section.ts"
import { tryPort } from "../engine/http/PortCheck.ts"
import { comparable } from "../engine/net/Address.ts"
import { DnsUpdate } from "../engine/net/DnsUpdate.ts"
import { JsonGet } from "../engine/net/JsonGet.ts"
import { Mail } from "../engine/net/Mail.ts"
import { Resolver } from "../engine/net/Resolver.ts"
import { parseBindAddress } from "../engine/net/SocketAddress.ts"
import { Web } from "../engine/net/Web.ts"
import { Database } from "../engine/sql/Database.ts"
import * as Migrations from "../engine/sql/Migrations.ts"
import { AuditReceivers } from "../services/audit/AuditReceivers.ts"
import { keyOf } from "../services/notify/Deliveries.ts"
import type { Section } from "../services/notify/NotifyRoutes.ts"
import { sectionsOf } from "../services/notify/NotifyRoutes.ts"
import { serverOf } from "../services/notify/Post.ts"
import { remoteInventory } from "../services/policy/Policies.ts"
import { casOf } from "../services/signing/ConfiguredCas.ts"
import { updateServerOf } from "../services/signing/relay/Relay.ts"
import { isRemote, tryKey } from "../services/signing/RemoteCa.ts"
import type { Config, ProfileConfig } from "../settings/AppConfig.ts"
import { receiversOf } from "../settings/AuditTable.ts"
import { maskedDatabaseUrl } from "../settings/DatabaseUrl.ts"
import * as Graph from "./Graph.ts"
import { isHealthy, isOwnMetrics } from "./Health.ts"
import { Host } from "./Host.ts"
import { tryListening } from "./ListenCheck.ts"
import { database, isAbsent } from "./OpenDatabase.ts"
import { compareStandby } from "./StandbyCheck.ts"

/*
 * Tries everything outside this process that the configuration names: the database, ports, name servers, upstreams,
 * inventories, mail servers and receivers. Changes nothing there, and runs no program of the operator.
 */

/** The result of a try. The result is `untried` if every way to try something would change something. */
export interface Tried {
  /** The configuration key that names what was tried. */
  readonly key: string
  /** What was tried. The text contains no secret. */
  readonly what: string
  readonly result: "ok" | "failed" | "untried"
  readonly answer: string
}

/** A try that failed, or that was not made. */
type Unmade = { readonly detail: string; readonly isUntried?: boolean } | { readonly message: string }

/** The services that a try may use. */
type World = AuditReceivers | Host | DnsUpdate | Entropy | JsonGet | Mail | Resolver | Web

interface Trial {
  readonly key: string
  readonly what: string
  /** Runs the trial. If the trial succeeds, returns the text to show to the operator. */
  readonly run: Effect.Effect<string, Unmade, World>
}

const patienceMillis = 15_000
const ownMillis = 3000

const trial = (key: string, what: string, run: Trial["run"]): Trial => ({ key, what, run })

const refused = (detail: string, isUntried = false): Effect.Effect<never, Unmade> => Effect.fail({ detail, isUntried })

const ofDatabase = (config: Config): Trial =>
  trial(
    "database.url",
    maskedDatabaseUrl(config.database.url),
    Effect.gen(function*() {
      if (yield* isAbsent(config)) return yield* refused("not there yet: `acme-svc init` or a start makes it", true)
      const { process } = yield* Host
      const pending = Effect.gen(function*() {
        const { dialect } = yield* Database
        return yield* Effect.flatMap(Migrations.read(process.migrations, dialect), Migrations.pending)
      })
      const missing = yield* Effect.mapError(
        Effect.provide(pending, database(config)),
        (error) => error._tag === "SchemaUnusable" ? { detail: error.detail } : error
      )
      return missing.length === 0 ? "opened" : `opened; ${missing.length} migration(s) pending, for a worker's start`
    })
  )

const ofListening = (config: Config): Trial =>
  trial("database.listen_url", maskedDatabaseUrl(config.database.listen_url), tryListening(config))

/** Tries the ports of listeners. A port must be free, unless this service itself uses it. */
const ofListeners = (config: Config, version: string): ReadonlyArray<Trial> => {
  const { admin, metrics, server } = config
  const listeners = [
    ["server.bind_address", server.bind_address, isHealthy(server, version)],
    ...admin.enabled ? [["admin.bind_address", admin.bind_address, isHealthy(admin, version)] as const] : [],
    ...metrics.enabled
      ? [["metrics.bind_address", metrics.bind_address, isOwnMetrics(metrics, version)] as const]
      : []
  ] as const
  return listeners.flatMap(([key, text, isOurs]) => {
    const address = parseBindAddress(text)
    if (address === undefined || address.port === 0) return []
    return [trial(
      key,
      text,
      Effect.catch(Effect.as(tryPort(address), "free"), ({ code, detail }) => {
        if (code === "EACCES") return refused(`${detail}; a unit may permit what this user may not`, true)
        if (code !== "EADDRINUSE") return refused(detail)
        return Effect.flatMap(
          Effect.timeoutOption(isOurs, ownMillis),
          (ours) =>
            Option.contains(ours, true)
              ? Effect.succeed("in use by this service")
              : refused("in use by another program")
        )
      })
    )]
  })
}

/** The error codes for an answer without records. The server did answer. */
const answeredCodes = ["ENODATA", "ENOTFOUND"]

const ofResolver = ({ dns }: Config): Trial =>
  trial(
    "dns.resolver",
    dns.resolver === "" ? "the servers of this system" : dns.resolver,
    // Every name server answers for this name by itself (RFC 6761 section 6.3), even a server that knows only the names
    // of a site.
    Effect.flatMap(Resolver, (resolver) => resolver.texts("localhost")).pipe(
      Effect.catchIf(({ code }) => answeredCodes.includes(code), () => Effect.succeed([])),
      Effect.mapBoth({
        onFailure: ({ code }) => ({ detail: `no answer: ${code}` }),
        onSuccess: () => "answers"
      })
    )
  )

const mostOfDirectory = 1_048_576
const readDirectory = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ newNonce: Schema.String, newOrder: Schema.String }))
)

const ofUpstream = (at: string, { directory_url }: ProfileConfig["signer"]["relay"]): Trial =>
  trial(
    `${at}.directory_url`,
    directory_url,
    Effect.gen(function*() {
      const web = yield* Web
      const url = new URL(directory_url)
      const { body, status } = yield* web.send({ method: "GET", url, headers: {}, maxBytes: mostOfDirectory })
      if (status !== 200) return yield* refused(`answers ${status}`)
      return Option.isSome(readDirectory(body.toString("utf8")))
        ? "answers as a directory"
        : yield* refused("answers with no ACME directory")
    })
  )

/**
 * Tries an update of a zone: the deletion of a value that does not exist. It changes nothing (RFC 2136 section
 * 3.4.2.4), but it requires the key and the permission.
 */
const ofZone = (at: string, { challenge_alias, rfc2136 }: ProfileConfig["signer"]["relay"]["dns01"]) =>
  trial(
    `${at}.dns01.rfc2136.server`,
    `${rfc2136.server}, zone ${rfc2136.zone}`,
    Effect.gen(function*() {
      const updates = yield* DnsUpdate
      const { token } = yield* Entropy
      const name = `_acme-challenge.${challenge_alias === "" ? rfc2136.zone : challenge_alias}`
      const change = { action: "delete", zone: rfc2136.zone, name, value: yield* token } as const
      yield* updates.update(updateServerOf(rfc2136), change)
      return "takes updates of this key"
    })
  )

/** An address that is reserved for documentation (RFC 5737). An inventory need not know this address. */
const somebody = comparable("192.0.2.1")

const ofInventory = (name: string, ipam: ProfileConfig["ipam"]): ReadonlyArray<Trial> => {
  const at = `profiles.${name}.ipam`
  if (ipam.backend === "") return []
  if (ipam.backend === "custom") {
    return [trial(`${at}.custom.script_path`, ipam.custom.script_path, refused("programs are not run", true))]
  }
  const { url } = ipam[ipam.backend]
  return [trial(
    `${at}.${ipam.backend}.url`,
    url,
    Effect.gen(function*() {
      const inventory = yield* remoteInventory({ name, ipam }, yield* JsonGet)
      if (inventory !== undefined && somebody !== undefined) yield* inventory.namesFor(somebody)
      return "answers a look-up"
    })
  )]
}

const ofNotifications = (at: string, { email, enabled, webhook, webhook_enabled }: Section): ReadonlyArray<Trial> => {
  const mail = trial(
    `${at}.email.smtp_host`,
    `${email.smtp_host}:${email.smtp_port}`,
    Effect.gen(function*() {
      yield* (yield* Mail).greet(serverOf(email))
      return email.smtp_username === "" ? "greets" : "signs in"
    })
  )
  const hooks = webhook_enabled.flatMap((name) => {
    const entry = webhook[name]
    return entry === undefined ? [] : [reaching(`${at}.webhook.${name}.url`, new URL(Redacted.value(entry.url)))]
  })
  return [...enabled.includes("email") ? [mail] : [], ...enabled.includes("webhook") ? hooks : []]
}

/**
 * Tries a connection to a receiver, without a request, because receivers act on every request. Only the host of the URL
 * is shown.
 */
const reaching = (key: string, url: URL): Trial =>
  trial(key, url.host, Effect.flatMap(Web, (web) => Effect.as(web.reach({ url }), "connects; nothing was sent")))

/** Tries a connection to each receiver of the audit trail, with the configured files, and sends no row. */
const ofAuditReceivers = ({ audit }: Config): ReadonlyArray<Trial> =>
  receiversOf(audit).map((name) => {
    const [key, what] = name === "syslog"
      ? ["audit.syslog.address", audit.syslog.address]
      : ["audit.http.url", new URL(audit.http.url).host]
    const receiver = Effect.map(AuditReceivers, ({ all }) => all.find((one) => one.name === name))
    const reached = Effect.flatMap(receiver, (found) => found?.reach ?? Effect.void)
    return trial(key, what, Effect.as(reached, "connects; nothing was sent"))
  })

const signing = (at: string, signer: ProfileConfig["signer"]): ReadonlyArray<Trial> => {
  if (signer.backend === "custom") {
    return [trial(`${at}.custom.script_path`, signer.custom.script_path, refused("programs are not run", true))]
  }
  if (signer.backend === "local_ca") {
    return casOf(signer.local_ca).flatMap(({ name, settings }) => {
      if (!isRemote(settings)) return []
      const { key_source, pkcs11, transit } = settings
      const what = key_source === "pkcs11"
        ? `${pkcs11.token_label || `slot ${pkcs11.slot_id}`} of ${pkcs11.module_path}`
        : `${transit.mount}/${transit.key} of ${transit.address}`
      const does = key_source === "pkcs11" ? "logs in" : "shows the key"
      return [trial(
        `${at}.local_ca.${name === undefined ? "" : `others.${name}.`}${key_source}`,
        what,
        Effect.as(tryKey(settings), `${does}; the key fits the certificate; nothing was signed`)
      )]
    })
  }
  const { challenge_strategy, dns01 } = signer.relay
  return [
    ofUpstream(`${at}.relay`, signer.relay),
    ...challenge_strategy === "dns01" ? [ofZone(`${at}.relay`, dns01)] : []
  ]
}

/**
 * Returns the trials of each distinct section. Profiles often share a section; it is tried once, under the name of the
 * first of these profiles.
 */
const eachOnce = <A extends object>(
  sections: ReadonlyArray<readonly [name: string, section: A]>,
  of: (name: string, section: A) => ReadonlyArray<Trial>
): ReadonlyArray<Trial> => {
  const texts = sections.map(([, section]) => sectionText(section))
  return sections.filter((_, index) => texts.indexOf(texts[index] ?? "") === index).flatMap(([name, section]) =>
    of(name, section)
  )
}

const isSet = (url: Redacted.Redacted): boolean => Redacted.value(url) !== ""

const trialsOf = (config: Config, version: string): ReadonlyArray<Trial> => {
  const served = config.profiles.filter(({ enabled }) => enabled)
  return [
    ofDatabase(config),
    ...isSet(config.database.read_url)
      ? [trial("database.read_url", maskedDatabaseUrl(config.database.read_url), compareStandby(config))]
      : [],
    ...Redacted.value(config.database.listen_url) === "" ? [] : [ofListening(config)],
    ...ofListeners(config, version),
    ofResolver(config),
    ...eachOnce(served.map(({ name, signer }) => [`profiles.${name}.signer`, signer]), signing),
    ...eachOnce(served.map(({ ipam, name }) => [name, ipam]), ofInventory),
    ...eachOnce([...sectionsOf(config)].map(([scope, section]) => [keyOf(scope), section]), ofNotifications),
    ...ofAuditReceivers(config),
    ...config.tracing.endpoint === "" ? [] : [reaching("tracing.endpoint", new URL(config.tracing.endpoint))]
  ]
}

const tried = ({ key, run, what }: Trial): Effect.Effect<Tried, never, World> =>
  run.pipe(
    Effect.timeoutOrElse({
      duration: patienceMillis,
      orElse: () => refused(`no answer within ${patienceMillis / 1000} s`)
    }),
    Effect.match({
      onSuccess: (answer) => ({ key, what, result: "ok" as const, answer }),
      onFailure: (unmade) => ({
        key,
        what,
        result: "isUntried" in unmade && unmade.isUntried === true ? "untried" as const : "failed" as const,
        answer: "detail" in unmade ? unmade.detail : unmade.message
      })
    })
  )

const atOnce = 8

/** Tries everything that the configuration names. Each try may take up to 15 seconds. */
export const tryOnline = (config: Config): Effect.Effect<ReadonlyArray<Tried>, never, Host> =>
  Effect.flatMap(Host, ({ process: { version } }) =>
    Effect.provide(
      Effect.forEach(trialsOf(config, version), tried, { concurrency: atOnce }),
      Layer.mergeAll(
        Layer.provide(JsonGet.layer, Graph.web(config, version)),
        Graph.web(config, version),
        Graph.auditReceivers(config, version),
        Mail.layer,
        DnsUpdate.layer
      ).pipe(
        Layer.provideMerge(Layer.merge(Resolver.layer(config.dns.resolver), Entropy.layer))
      )
    ))
