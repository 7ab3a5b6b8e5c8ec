import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { trustOf } from "../domain/ClientAddress.ts"
import type { JobFailure } from "../domain/JobFailure.ts"
import type { Roles } from "../domain/Role.ts"
import { rolesText } from "../domain/Role.ts"
import { jobKinds } from "../domain/words/JobKind.ts"
import { emit } from "../domain/words/Log.ts"
import type { Sharing } from "../engine/http/BoundSocket.ts"
import { makeFairSemaphore } from "../engine/net/FairSemaphore.ts"
import type { AnyHandler } from "../engine/queue/Kind.ts"
import type { StorageFailed } from "../engine/sql/Database.ts"
import { Database } from "../engine/sql/Database.ts"
import type { Connections } from "../engine/sql/Driver.ts"
import type { Sample } from "../engine/telemetry/Metrics.ts"
import { Metrics } from "../engine/telemetry/Metrics.ts"
import { LogOutput } from "../engine/telemetry/Sink.ts"
import { certificateEnds } from "../operations/operator/CertificateEnds.ts"
import { make as databaseUp } from "../operations/operator/DatabaseUp.ts"
import * as samples from "../operations/operator/Samples.ts"
import type { PublicKeys } from "../services/keys/PublicKeys.ts"
import type { Notifier } from "../services/notify/Notifier.ts"
import { notify, whereWanted } from "../services/notify/Notifier.ts"
import { sectionsOf } from "../services/notify/NotifyRoutes.ts"
import { Policies } from "../services/policy/Policies.ts"
import { Issuers } from "../services/signing/Issuers.ts"
import { ProfileStates } from "../services/signing/ProfileStates.ts"
import { Signers } from "../services/signing/Signer.ts"
import type { Config } from "../settings/AppConfig.ts"
import { receiversOf } from "../settings/AuditTable.ts"
import type { Resolved } from "../settings/Resolve.ts"
import * as acme from "../surfaces/acme/AcmeApp.ts"
import { Endpoint } from "../surfaces/acme/Endpoint.ts"
import { handlers } from "../surfaces/jobs/JobHandlers.ts"
import type { PanelFiles } from "../surfaces/panel/Statics.ts"
import { adminSurface } from "./AdminSurface.ts"
import type { CommandFailed } from "./CommandFailed.ts"
import * as Graph from "./Graph.ts"
import type { Surface } from "./Listeners.ts"
import * as ListenerTls from "./ListenerTls.ts"
import { metricsSurface } from "./MetricsSurface.ts"
import { publishSurface } from "./PublishSurface.ts"
import { readiness } from "./Readiness.ts"
import type { Uses } from "./Uses.ts"
import { makeUses } from "./Uses.ts"

/** The properties of a process that its configuration does not contain. */
export interface Build {
  readonly roles: Roles
  /**
   * The roles for which this process logs the records about the whole service. If the service is a single process,
   * these are its own roles. If it has several processes, one of them has the roles of all here, and the others have
   * undefined.
   */
  readonly speaksFor: Roles | undefined
  /** Whether the process has a parent, which serves the metrics of all its processes. */
  readonly isChild: boolean
  readonly version: string
  readonly panel: PanelFiles
}

/**
 * A configuration that is ready to be served, with everything that was built from it. The services that outlive a
 * generation (database, queue, nonces, sockets, metrics) do not belong to it, and are passed to it.
 */
export interface Generation {
  readonly config: Config
  /** The surfaces to serve, with their addresses. */
  readonly surfaces: ReadonlyArray<Surface>
  /** The text of a scrape. Empty if metrics are off. */
  readonly scrape: Effect.Effect<string, never, Graph.Kept>
  /** The job handlers of this process. Empty if the process does not have the worker role. */
  readonly handlers: ReadonlyArray<AnyHandler<Graph.Kept, JobFailure>>
  /** The signers, for work outside jobs. Undefined if the process does not have the worker role. */
  readonly signers: Context.Context<Signers> | undefined
  readonly before: Graph.Before
  /** Closes everything that the generation has opened. */
  readonly close: Effect.Effect<void>
  /** Closes the generation as soon as all requests and attempts that began with it have ended. */
  readonly retire: Effect.Effect<void>
}

const maxConnections = 4096

const sharingOf = ({ server }: Config, isChild: boolean): Sharing =>
  isChild ? "socket" : server.reuse_port ? "port" : "nobody"

const acmeSurface = Effect.fnUntraced(function*(
  config: Config,
  { isChild, roles, version }: Build,
  shared: Context.Context<Issuers | PublicKeys>,
  uses: Uses
) {
  const services = Context.merge(shared, yield* Layer.build(Graph.acme(config, version)))
  const mounted = config.profiles.filter(({ enabled }) => enabled)
  const endpoints = new Map(mounted.map((profile) => [profile.name, new Endpoint(profile, config.server.base_url)]))
  const relaying = mounted.filter(({ signer }) =>
    signer.backend === "relay" && signer.relay.challenge_strategy === "http01"
  )
  const respondsForRelay = relaying.length > 0
  const { admission_wait_ms, base_url, cors_origins: corsOrigins, max_concurrent_requests } = config.server
  const app = yield* Effect.provide(
    Effect.map(
      Policies,
      (policies) =>
        acme.make(endpoints, {
          corsOrigins,
          policies,
          proxies: config.filter,
          respondsForRelay,
          slots: makeFairSemaphore(max_concurrent_requests),
          waitMillis: admission_wait_ms
        })
    ),
    services
  )
  const own = yield* readiness(roles)
  const tls = yield* ListenerTls.load(config, "acme")
  const { bind_address, max_body_bytes, request_timeout_ms } = config.server
  const surface: Surface = {
    name: "acme",
    key: "server.bind_address",
    bindAddress: bind_address,
    sharing: sharingOf(config, isChild),
    maxConnections,
    notAfter: tls.notAfter,
    serve: (listener) =>
      Effect.andThen(
        Effect.provide(
          listener.serve({
            app,
            own,
            watch: uses,
            ...trustOf([config, ...mounted].map(({ filter }) => filter)),
            tls: tls.settings,
            requestTimeoutMillis: request_timeout_ms,
            maxBodyBytes: max_body_bytes,
            maxBodies: 4 * max_concurrent_requests
          }),
          services
        ),
        tls.watch(listener)
      ),
    listening: (address) =>
      Effect.andThen(
        emit("server_listening", { address, tls: tls.settings !== undefined, base_url }),
        Effect.forEach(relaying, ({ name }) => emit("http_01_responder_mounted", { profile: name }), { discard: true })
      )
  }
  return [surface, ...yield* publishSurface(config, services, uses, sharingOf(config, isChild))]
})

/** Returns the text of a scrape for this process. A worker also gives the metrics of the database. */
const scraping = Effect.fnUntraced(function*(
  config: Config,
  roles: Roles,
  { bySection }: Issuers["Service"],
  others: ReadonlyArray<Surface>
) {
  const states = yield* ProfileStates
  const sample = yield* samples.make({
    isDegraded: (profile) => states.of(profile) !== undefined,
    kinds: jobKinds,
    profiles: config.profiles.filter((profile) => profile.enabled).map(({ name }) => name),
    issuers: new Set([...bySection.values()].flat().map(({ issuer }) => issuer.id)),
    receivers: receiversOf(config.audit),
    notifies: [...sectionsOf(config).values()].some(({ enabled }) => enabled.length > 0)
  })
  const listeners = () =>
    others.flatMap(({ name, notAfter }) => {
      const end = notAfter()
      return end === undefined ? [] : [{ listener: name, notAfter: Math.floor(end.getTime() / 1000) }]
    })
  const role = rolesText(roles)
  const up = databaseUp(role)
  const nothing: Effect.Effect<samples.Samples> = Effect.succeed(new Map())
  return Effect.gen(function*() {
    const database = yield* Database
    const metrics = yield* Metrics
    const all = [
      roles.has("worker") ? sample : nothing,
      up,
      certificateEnds(bySection.values(), listeners())
    ]
    const found = yield* Effect.all(all, { concurrency: 3 })
    const { state } = yield* LogOutput
    const connections = ({ busy, idle }: Connections): ReadonlyArray<Sample> => [
      { labels: { role, state: "idle" }, value: idle },
      { labels: { role, state: "busy" }, value: busy }
    ]
    const { standby } = database
    const own: samples.Samples = new Map([
      ["acme_svc_database_pool_connections", connections(database.connections())],
      ["acme_svc_database_standby_connections", standby === undefined ? [] : connections(standby.connections())],
      ["acme_svc_database_read_only", [{ labels: { role }, value: database.isReadOnly() ? 1 : 0 }]],
      ["acme_svc_log_writes_failed_total", [{ labels: { role }, value: state().lost }]]
    ])
    return yield* metrics.render(new Map([own, ...found].flatMap((one) => [...one])))
  })
})

/**
 * In a process with the acme role, logs which endpoints were mounted or unmounted. At startup, `before` is undefined,
 * because no endpoints were mounted before.
 */
export const told = (
  { roles, speaksFor }: Pick<Build, "roles" | "speaksFor">,
  before: Config | undefined,
  after: Config
): Effect.Effect<void, never, Notifier> => {
  if (!roles.has("acme") || speaksFor === undefined) return Effect.void
  const mountedOf = (config: Config | undefined) => config?.profiles.filter(({ enabled }) => enabled) ?? []
  const lacks = (config: Config | undefined) => ({ name }: { readonly name: string }) =>
    !mountedOf(config).some((profile) => profile.name === name)
  return Effect.all([
    ...mountedOf(after).filter(lacks(before)).map(({ name, signer }) =>
      Effect.andThen(
        emit("profile_mounted", { profile: name, backend: signer.backend }),
        whereWanted("profile_mounted", name, notify({ event: "profile_mounted", scope: name, fields: {} }))
      )
    ),
    ...mountedOf(before).filter(lacks(after)).map(({ name }) => emit("profile_unmounted", { profile: name }))
  ], { discard: true })
}

/** Builds a generation. If that fails, closes everything that was opened for it. */
export const build = (
  resolved: Pick<Resolved, "config" | "sources">,
  process: Build,
  before: Graph.Before
): Effect.Effect<Generation, CommandFailed | StorageFailed, Graph.Kept> =>
  Effect.gen(function*() {
    const { config } = resolved
    const scope = yield* Scope.make()
    const close = Scope.close(scope, Exit.void)
    const uses = makeUses()
    const built = Effect.gen(function*() {
      // The worker part comes first: it creates the CA, and the ACME part reads the certificate of this CA.
      const working = process.roles.has("worker")
        ? yield* Layer.build(Graph.worker(config, process.version, before))
        : undefined
      const issuers = yield* Layer.build(Graph.authorities(config, before))
      const known = Context.get(issuers, Issuers)
      const shared = yield* Effect.cached(
        Effect.map(Layer.build(Graph.publicKeys(config)), (keys) => Context.merge(issuers, keys))
      )
      const served = [
        ...process.roles.has("acme") ? yield* acmeSurface(config, process, yield* shared, uses) : [],
        ...process.roles.has("admin") ? yield* adminSurface(resolved, process, yield* shared, uses) : []
      ]
      const signers = working && (yield* Effect.provide(Signers, working))
      const work = working === undefined ? [] : yield* Effect.provide(handlers(config), Context.merge(issuers, working))
      const scrape = config.metrics.enabled
        ? yield* scraping(config, process.roles, known, served)
        : Effect.succeed("")
      const metrics = process.isChild ? [] : metricsSurface(config, scrape, yield* readiness(process.roles))
      return {
        config,
        surfaces: [...served, ...metrics],
        scrape,
        handlers: work.map((one) => ({ ...one, begun: uses.begun })),
        signers: working,
        before: { signers: signers?.bySection, issuers: known.bySection },
        close,
        retire: Effect.ensuring(uses.ended, close)
      } satisfies Generation
    })
    return yield* Effect.onError(Scope.provide(built, scope), () => close)
  })
