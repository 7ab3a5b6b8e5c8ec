import { Layer, Redacted } from "effect"
import type { Config } from "../subsystems/config/AppConfig.ts"
import { maskedDatabaseUrl } from "../subsystems/config/DatabaseUrl.ts"
import { AccountKeys } from "../subsystems/crypto/AccountKeys.ts"
import { Entropy } from "../subsystems/crypto/Entropy.ts"
import { AuditAllowance } from "../subsystems/db/AuditAllowance.ts"
import { Database } from "../subsystems/db/Database.ts"
import * as Postgres from "../subsystems/db/Postgres.ts"
import * as Sqlite from "../subsystems/db/Sqlite.ts"
import { emit } from "../subsystems/log/EventLog.ts"
import { Nonces } from "../subsystems/nonce/Nonces.ts"
import { AlpnPeer } from "../subsystems/outside/AlpnPeer.ts"
import { HttpGet } from "../subsystems/outside/HttpGet.ts"
import { JsonGet } from "../subsystems/outside/JsonGet.ts"
import { Resolver } from "../subsystems/outside/Resolver.ts"
import { ReverseNames } from "../subsystems/outside/ReverseNames.ts"
import { Scripts } from "../subsystems/outside/Scripts.ts"
import { Policies } from "../subsystems/policy/Policies.ts"
import { Queue } from "../subsystems/queue/Queue.ts"
import * as Backends from "../subsystems/signing/Backends.ts"
import { Issuers } from "../subsystems/signing/Issuers.ts"
import { PublishedCrls } from "../subsystems/signing/PublishedCrls.ts"
import { Validator } from "../subsystems/validation/Validator.ts"
import { CommandFailed, filesFailed } from "./CommandFailed.ts"

const sqlitePrefix = "sqlite://"

/** The database of `database.url`: the scheme alone picks the engine. */
export const database = ({ database: settings }: Pick<Config, "database">): Layer.Layer<Database, CommandFailed> => {
  const url = Redacted.value(settings.url)
  const database_url = maskedDatabaseUrl(settings.url)
  const engine = url.startsWith(sqlitePrefix)
    ? Sqlite.layer({ path: url.slice(sqlitePrefix.length), synchronous: settings.sqlite.synchronous })
    : Postgres.layer(settings)
  return engine.pipe(
    Layer.tap(() =>
      emit("db_opened", { database_url, backend: url.slice(0, url.indexOf(":")), pool_max: settings.pool_max })
    ),
    Layer.mapError((error) => {
      const cause = error.cause instanceof Error ? error.cause.message || error.cause.name : error.message
      return new CommandFailed({ code: 1, message: `database.url: ${database_url} cannot be opened: ${cause}` })
    })
  )
}

/** The filter policies of profiles, with what they look at the world with. */
export const policiesOf = (config: Config, profiles: Config["profiles"], version: string) => {
  const resolver = Resolver.layer(config.dns.resolver)
  return Policies.layer(profiles).pipe(
    Layer.provide(Layer.mergeAll(JsonGet.layer(version), Scripts.layer)),
    Layer.provide(resolver),
    Layer.mapError(filesFailed)
  )
}

/** Everything that acts for requests and jobs, over an open database whose schema is current. */
export const subsystems = (config: Config, version: string) => {
  const mounted = config.profiles.filter(({ enabled }) => enabled)
  const validator = Layer.provide(
    Validator.layer,
    Layer.mergeAll(Resolver.layer(config.dns.resolver), HttpGet.layer(version), AlpnPeer.layer)
  )
  const policies = policiesOf(config, mounted, version)
  // In this order: the signers make a CA that does not exist yet.
  const signers = Layer.mapError(
    Layer.flatMap(Backends.layer(mounted), (made) => Layer.merge(Layer.succeedContext(made), Issuers.layer(mounted))),
    filesFailed
  )
  return Layer.mergeAll(
    Queue.layer({ maxAttempts: config.jobs.max_attempts }),
    Nonces.layer({ ttlSeconds: config.nonce.ttl_seconds }),
    AccountKeys.layer,
    AuditAllowance.layer,
    PublishedCrls.layer,
    Layer.provide(ReverseNames.layer(config.audit), Resolver.layer(config.dns.resolver)),
    validator,
    policies,
    signers
  ).pipe(Layer.provideMerge(Entropy.layer))
}

/** The services of {@link subsystems}, by name. */
export type Subsystems = Layer.Layer.Success<ReturnType<typeof subsystems>>
