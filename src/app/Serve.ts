import { Clock, Effect, Layer } from "effect"
import type { Scope } from "effect"
import { hostname } from "node:os"
import * as crl from "../operations/crl.ts"
import { recover } from "../operations/sweeps.ts"
import { parseBindAddress } from "../subsystems/config/Address.ts"
import type { Config } from "../subsystems/config/AppConfig.ts"
import { Entropy } from "../subsystems/crypto/Entropy.ts"
import type { Database, StorageFailed } from "../subsystems/db/Database.ts"
import * as Migrations from "../subsystems/db/Migrations.ts"
import { emit } from "../subsystems/log/EventLog.ts"
import { advise } from "../subsystems/policy/advisories.ts"
import { Policies } from "../subsystems/policy/Policies.ts"
import * as Presence from "../subsystems/queue/Presence.ts"
import * as Runner from "../subsystems/queue/Runner.ts"
import * as acme from "../surfaces/http/acme/app.ts"
import { Endpoint } from "../surfaces/http/acme/Endpoint.ts"
import * as Admission from "../surfaces/http/Admission.ts"
import * as Listener from "../surfaces/http/Listener.ts"
import * as TlsFiles from "../surfaces/http/TlsFiles.ts"
import { handlers } from "../surfaces/jobs/handlers.ts"
import { CommandFailed, filesFailed } from "./CommandFailed.ts"
import type { Subsystems } from "./Graph.ts"

/** What the process is, beside its configuration. */
export interface Process {
  readonly version: string
  /** Folder that holds `sqlite/` and `postgres/`. */
  readonly migrations: string
  readonly pid: number
  /** Completes with the signal that asks the process to stop. */
  readonly stopSignal: Effect.Effect<"SIGINT" | "SIGTERM">
  /** Dies of an exception that reached nobody. */
  readonly uncaught: Effect.Effect<never>
}

const roles = "acme,admin,worker"
const maxConnections = 4096

const hostError = ({ message }: { readonly message: string }) => new CommandFailed({ code: 1, message })

/** Brings the schema up to date, as a process with the worker role does at start. */
export const migrate = (
  process: Pick<Process, "migrations">,
  dialect: "sqlite" | "postgres"
): Effect.Effect<ReadonlyArray<string>, CommandFailed, Database> =>
  Effect.flatMap(Migrations.read(process.migrations, dialect), Migrations.migrate).pipe(
    Effect.mapError((error) => hostError({ message: error._tag === "SchemaUnusable" ? error.detail : error.message }))
  )

const bindAcme = (config: Config): Effect.Effect<Listener.Listener, CommandFailed, Scope.Scope | Entropy> =>
  Effect.gen(function*() {
    const { server } = config
    const { host, port } = parseBindAddress(server.bind_address) ?? { host: "", port: 0 } // checked with the configuration
    const { cert_path, enabled, handshake_timeout_ms, key_path } = server.tls
    const tls = enabled
      ? yield* TlsFiles.load({ listener: "acme", cert_path, key_path, host: new URL(server.base_url).hostname })
      : undefined
    if (tls !== undefined) yield* TlsFiles.watchExpiry("acme", tls.notAfter)
    return yield* Listener.bind({
      name: "acme",
      host,
      port,
      tls: tls === undefined ? undefined : { ...tls, handshakeTimeoutMillis: handshake_timeout_ms },
      maxConnections,
      requestTimeoutMillis: server.request_timeout_ms,
      maxBodyBytes: server.max_body_bytes,
      maxBodies: 4 * server.max_concurrent_requests
    })
  }).pipe(
    Effect.tapErrorTag(
      "BindFailed",
      ({ address, detail }) => emit("server_socket_bind_failed", { address, error: detail })
    ),
    Effect.mapError((error) =>
      error._tag === "BindFailed" ? hostError({ message: `server.bind_address: ${error.message}` }) : filesFailed(error)
    )
  )

/** What an operator should see once at start. */
const advisories = (config: Config): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { base_url, tls } = config.server
    if (!tls.enabled) yield* emit("tls_disabled", { base_url })
    if (tls.enabled !== base_url.startsWith("https:")) yield* emit("tls_base_url_mismatch", { base_url })
    for (const { challenge, enabled, name } of config.profiles) {
      if (enabled && challenge.bypass) yield* emit("challenge_validation_bypassed", { profile: name })
    }
    yield* advise(config.profiles.filter(({ enabled }) => enabled))
  })

/**
 * Serves until the stop signal: socket bound before anything serves, presence and recovery before the first claim, and
 * at the end requests and jobs finish side by side before presence and database go (`process.md`, "Start", "Shutdown").
 */
export const serve = (
  config: Config,
  process: Process,
  announce: Effect.Effect<void>
): Effect.Effect<void, CommandFailed, Database | Subsystems> =>
  Effect.scoped(Effect.gen(function*() {
    const entropy = yield* Entropy
    const mounted = config.profiles.filter(({ enabled }) => enabled)
    const endpoints = new Map(mounted.map((profile) => [profile.name, new Endpoint(profile, config.server.base_url)]))
    const listener = yield* bindAcme(config)
    const owner = `${hostname()}:${process.pid}:${yield* entropy.uuid}`
    const stopRunner = yield* Effect.gen(function*() {
      yield* Layer.build(Presence.layer({ owner, roles, version: process.version }))
      yield* recover(config)
      yield* crl.initialize
      return yield* Runner.start({ ...config.jobs, owner }, handlers(config))
    }).pipe(Effect.mapError((error: StorageFailed) => hostError(error)))
    const admission = yield* Admission.make({
      slots: config.server.max_concurrent_requests,
      waitMillis: config.server.admission_wait_ms
    })
    const policies = yield* Policies
    yield* listener.serve(acme.make(endpoints, { admission, policies, proxies: config.filter }))
    const { base_url, tls } = config.server
    yield* emit("server_listening", { address: listener.address, tls: tls.enabled, base_url })
    for (const { name, signer } of mounted) yield* emit("profile_mounted", { profile: name, backend: signer.backend })
    yield* advisories(config)
    yield* announce

    const signal = yield* process.stopSignal
    const begun = yield* Clock.currentTimeMillis
    yield* emit("server_shutdown_started", { signal })
    const [requests_cut, jobs_released] = yield* Effect.all([listener.drain, stopRunner], { concurrency: 2 })
    const ended = yield* Clock.currentTimeMillis
    yield* emit("server_shutdown_completed", { requests_cut, jobs_released, elapsed_ms: ended - begun })
  }))
