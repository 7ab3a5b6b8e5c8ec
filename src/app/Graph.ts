import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Entropy } from "../crypto/Entropy.ts"
import type { Roles } from "../domain/Role.ts"
import { rolesText } from "../domain/Role.ts"
import { knownKinds } from "../domain/words/JobKind.ts"
import { emit } from "../domain/words/Log.ts"
import { series } from "../domain/words/Series.ts"
import { Scripts } from "../engine/host/Scripts.ts"
import { mapLayerError } from "../engine/Layers.ts"
import { Loops } from "../engine/Loops.ts"
import { AlpnPeer } from "../engine/net/AlpnPeer.ts"
import { DnsUpdate } from "../engine/net/DnsUpdate.ts"
import { HttpGet } from "../engine/net/HttpGet.ts"
import { JsonGet } from "../engine/net/JsonGet.ts"
import { Mail } from "../engine/net/Mail.ts"
import { makeProxies } from "../engine/net/Proxy.ts"
import { throughProxies } from "../engine/net/Reach.ts"
import { Resolver } from "../engine/net/Resolver.ts"
import { ReverseNames } from "../engine/net/ReverseNames.ts"
import { SyslogTls } from "../engine/net/SyslogTls.ts"
import { Web } from "../engine/net/Web.ts"
import { Queue } from "../engine/queue/Queue.ts"
import * as SharedClock from "../engine/queue/SharedClock.ts"
import { Waits } from "../engine/queue/Waits.ts"
import type { Database } from "../engine/sql/Database.ts"
import * as Registry from "../engine/telemetry/Registry.ts"
import { takeBack } from "../operations/work/crl/ServedLists.ts"
import { AuditAllowance } from "../services/audit/AuditAllowance.ts"
import { AuditReceivers } from "../services/audit/AuditReceivers.ts"
import { AccountKeys } from "../services/keys/AccountKeys.ts"
import { PublicKeys } from "../services/keys/PublicKeys.ts"
import { Nonces } from "../services/nonce/Nonces.ts"
import { Deliveries } from "../services/notify/Deliveries.ts"
import { Notifier } from "../services/notify/Notifier.ts"
import { sectionsOf } from "../services/notify/NotifyRoutes.ts"
import { Passwords } from "../services/operators/Passwords.ts"
import type { Guarded } from "../services/policy/Policies.ts"
import { Policies } from "../services/policy/Policies.ts"
import * as Backends from "../services/signing/Backends.ts"
import { Issuers } from "../services/signing/Issuers.ts"
import { ProfileStates } from "../services/signing/ProfileStates.ts"
import { PublishedCrls } from "../services/signing/PublishedCrls.ts"
import { ReadHooks } from "../services/signing/ReadHooks.ts"
import { RenewalAsks } from "../services/signing/RenewalAsks.ts"
import { RenewalHours } from "../services/signing/RenewalHours.ts"
import type { Signers } from "../services/signing/Signer.ts"
import { Validator } from "../services/validation/Validator.ts"
import type { Config } from "../settings/AppConfig.ts"
import { installationOf } from "../settings/Installation.ts"
import { filesFailed } from "./CommandFailed.ts"
import { InForce } from "./InForce.ts"
import { ownAddresses } from "./OwnAddresses.ts"

/** Returns the proxies that a configuration sets. */
export const proxiesOf = ({ proxy, proxyVariables }: Config) =>
  makeProxies({
    http_url: Redacted.value(proxy.http_url),
    https_url: Redacted.value(proxy.https_url),
    no_proxy: proxy.no_proxy
  }, proxyVariables)

/** Provides HTTP requests to services that the operator has configured. */
export const web = (config: Config, version: string): Layer.Layer<Web, never, Resolver> =>
  Web.layer(version, proxiesOf(config).outbound)

/** Provides the filter policies of profiles, with the services that the checks of the policies use. */
export const policiesOf = (config: Config, profiles: ReadonlyArray<Guarded>, version: string) => {
  const resolver = Resolver.layer(config.dns.resolver)
  return Policies.layer(profiles).pipe(
    Layer.provide(Layer.merge(Layer.provide(JsonGet.layer, web(config, version)), Scripts.layer)),
    Layer.provide(resolver),
    mapLayerError(filesFailed)
  )
}

/**
 * Provides the services that outlive every generation. They need an open database whose schema is current. `process` is
 * the number of this process among those of its parent, if it has one.
 */
export const kept = (roles: Roles, process?: number) =>
  Layer.unwrap(Effect.map(InForce, ({ config }) =>
    Layer.mergeAll(
      Registry.layer(rolesText(roles), series, process),
      Loops.layer,
      Layer.provideMerge(
        Layer.merge(Notifier.layer(config), PublishedCrls.layer(takeBack)),
        Queue.layer({ kinds: knownKinds, config })
      ),
      Nonces.layer(config),
      AccountKeys.layer,
      AuditAllowance.layer,
      RenewalAsks.layer,
      RenewalHours.layer,
      Passwords.layer(),
      ProfileStates.layer,
      SharedClock.layer
    ))).pipe(Layer.provideMerge(Entropy.layer))

/** The services of {@link kept}. */
export type Kept = Layer.Success<ReturnType<typeof kept>> | Database

/** The parts that a generation takes over from the previous generation. */
export interface Before {
  /**
   * Returns whether a profile may be degraded: at startup any profile, at a reload only a profile that is already
   * degraded.
   */
  readonly mayDegrade?: ((profile: string) => boolean) | undefined
  readonly signers?: Signers["Service"]["bySection"] | undefined
  readonly issuers?: Issuers["Service"]["bySection"] | undefined
}

const mountedOf = (config: Config) => config.profiles.filter(({ enabled }) => enabled)

/**
 * Provides the certificates of the CAs with which profiles sign, in every process. A worker first makes the missing
 * certificates.
 */
export const authorities = (config: Config, before: Before) =>
  mapLayerError(Issuers.layer(mountedOf(config), before.issuers, before.mayDegrade), filesFailed)

/** Provides the checks of public keys. A process reads the lists of refused keys only once. */
export const publicKeys = ({ keys }: Pick<Config, "keys">) =>
  mapLayerError(PublicKeys.layer(keys.blocklist_paths), filesFailed)

/** Provides the reverse names of clients for the audit trail, if `audit.reverse_dns` is on. */
export const reverseNames = ({ audit, dns }: Pick<Config, "audit" | "dns">): Layer.Layer<ReverseNames> =>
  audit.reverse_dns
    ? Layer.provide(
      ReverseNames.layer({
        timeoutMillis: audit.reverse_dns_timeout_ms,
        unanswered: (address, isLate) =>
          emit(isLate ? "audit_reverse_dns_timeout" : "audit_reverse_dns_failed", { address })
      }),
      Resolver.layer(dns.resolver)
    )
    : ReverseNames.layerNone

/**
 * Provides the services that the ACME surface needs from one configuration, besides {@link authorities} and
 * {@link publicKeys}. These services never contain a private key.
 */
export const acme = (config: Config, version: string) => {
  const mounted = mountedOf(config)
  return Layer.mergeAll(
    policiesOf(config, mounted, version),
    reverseNames(config),
    Layer.provide(ReadHooks.layer(mounted), Scripts.layer),
    Waits.layer(config.server)
  )
}

/** Provides the service that delivers notifications. */
export const deliveriesOf = (config: Config, version: string) =>
  Deliveries.layer(sectionsOf(config), installationOf(config)).pipe(
    mapLayerError(filesFailed),
    Layer.provide(Layer.mergeAll(Mail.layer, Scripts.layer, web(config, version))),
    Layer.provide(Resolver.layer(config.dns.resolver))
  )

/** Provides the receivers of the audit trail. */
export const auditReceivers = (config: Config, version: string) =>
  AuditReceivers.layer(config.audit, installationOf(config)).pipe(
    Layer.provide(Layer.merge(SyslogTls.layer, web(config, version))),
    Layer.provide(Resolver.layer(config.dns.resolver))
  )

/**
 * Provides the services that the jobs need from one configuration. Only this layer opens private keys. It creates a CA
 * that does not exist yet.
 */
export const worker = (config: Config, version: string, before: Before) =>
  Layer.mergeAll(
    deliveriesOf(config, version),
    auditReceivers(config, version),
    Layer.unwrap(Effect.map(throughProxies(proxiesOf(config).configured), (dialer) =>
      Layer.provide(
        Validator.layer(ownAddresses(config)),
        Layer.merge(HttpGet.layer(version, dialer), AlpnPeer.layer(dialer))
      ))).pipe(
        Layer.provide(Resolver.layer(config.dns.resolver))
      ),
    mapLayerError(
      Backends.layer(mountedOf(config), {
        before: before.signers,
        outbound: { dns: config.dns, proxy: config.proxy, proxyVariables: config.proxyVariables },
        ...before.mayDegrade === undefined ? {} : { mayDegrade: before.mayDegrade }
      }),
      filesFailed
    ).pipe(
      Layer.provide(Layer.mergeAll(Scripts.layer, web(config, version), DnsUpdate.layer)),
      Layer.provide(Resolver.layer(config.dns.resolver))
    )
  )
