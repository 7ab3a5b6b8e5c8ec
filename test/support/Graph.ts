import { Effect, Layer, Result } from "effect"
import type { KeyObject } from "node:crypto"
import { createPublicKey } from "node:crypto"
import { fileURLToPath } from "node:url"
import { Entropy } from "../../src/crypto/Entropy.ts"
import type { AccountKey } from "../../src/crypto/jose/Jwk.ts"
import { importSpki } from "../../src/crypto/jose/Jwk.ts"
import type { ClientFacts } from "../../src/domain/words/JobKind.ts"
import { knownKinds } from "../../src/domain/words/JobKind.ts"
import { Scripts } from "../../src/engine/host/Scripts.ts"
import { Loops } from "../../src/engine/Loops.ts"
import { DnsUpdate } from "../../src/engine/net/DnsUpdate.ts"
import type { ResolveFailed } from "../../src/engine/net/Resolver.ts"
import { Resolver } from "../../src/engine/net/Resolver.ts"
import { ReverseNames } from "../../src/engine/net/ReverseNames.ts"
import { Web } from "../../src/engine/net/Web.ts"
import { Queue } from "../../src/engine/queue/Queue.ts"
import { Waits } from "../../src/engine/queue/Waits.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import * as Migrations from "../../src/engine/sql/Migrations.ts"
import type { Record } from "../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../src/engine/telemetry/EventLog.ts"
import * as accounts from "../../src/operations/acme/Accounts.ts"
import * as orders from "../../src/operations/acme/Orders.ts"
import type { Caller } from "../../src/operations/Caller.ts"
import { Activity } from "../../src/operations/operator/Activity.ts"
import { Attention } from "../../src/operations/operator/Attention.ts"
import { takeBack } from "../../src/operations/work/crl/ServedLists.ts"
import { AuditAllowance } from "../../src/services/audit/AuditAllowance.ts"
import type { AuditReceiver } from "../../src/services/audit/AuditReceiver.ts"
import { AuditReceivers } from "../../src/services/audit/AuditReceivers.ts"
import { AccountKeys } from "../../src/services/keys/AccountKeys.ts"
import { PublicKeys } from "../../src/services/keys/PublicKeys.ts"
import { Nonces } from "../../src/services/nonce/Nonces.ts"
import { Deliveries } from "../../src/services/notify/Deliveries.ts"
import { Notifier } from "../../src/services/notify/Notifier.ts"
import { Policies } from "../../src/services/policy/Policies.ts"
import type { SigningProfile } from "../../src/services/signing/Backends.ts"
import * as Backends from "../../src/services/signing/Backends.ts"
import { Issuers } from "../../src/services/signing/Issuers.ts"
import { ProfileStates } from "../../src/services/signing/ProfileStates.ts"
import { PublishedCrls } from "../../src/services/signing/PublishedCrls.ts"
import { ReadHooks } from "../../src/services/signing/ReadHooks.ts"
import { RenewalAsks } from "../../src/services/signing/RenewalAsks.ts"
import { RenewalHours } from "../../src/services/signing/RenewalHours.ts"
import type { DirectSigner, Signer } from "../../src/services/signing/Signer.ts"
import { ProfileNotMounted, Signers } from "../../src/services/signing/Signer.ts"
import { Validator } from "../../src/services/validation/Validator.ts"
import type { Config, ProfileConfig } from "../../src/settings/AppConfig.ts"
import { resolveConfig } from "../../src/settings/Resolve.ts"
import type { PanelFiles } from "../../src/surfaces/panel/Statics.ts"
import { newEcKey } from "./Keys.ts"
import { issuersOf } from "./KnownIssuers.ts"
import { idLiteral, sql } from "./OpenDatabase.ts"

export { idLiteral, openDriver, sql } from "./OpenDatabase.ts"

/*
 * The layers of the service over a database of the test. Everything is real except the outside world, which is
 * scripted, and randomness, which is seeded.
 */

/** The folder of the migrations. */
export const migrationsFolder: string = fileURLToPath(new URL("../../migrations", import.meta.url))

/** The files of the panel. */
export const panelFiles: PanelFiles = {
  folder: fileURLToPath(new URL("../../panel", import.meta.url)),
  htmx: fileURLToPath(new URL("../../node_modules/htmx.org/dist/htmx.min.js", import.meta.url))
}

/** Returns the migrations of an engine. */
export const migrationsOf = (dialect: "sqlite" | "postgres") => Effect.orDie(Migrations.read(migrationsFolder, dialect))

/** Brings the schema up to date. */
export const migrated: Effect.Effect<void, never, Database> = Effect.orDie(Effect.gen(function*() {
  const { dialect } = yield* Database
  yield* Migrations.migrate(yield* migrationsOf(dialect))
}))

/** Returns the first column of the first row, as a number. */
export const count = (text: string): Effect.Effect<number, never, Database> =>
  Effect.map(sql(text), ([row]) => Number(Object.values(row ?? { nothing: Number.NaN })[0]))

/** Returns the first column of every row, as text. */
export const column = (text: string): Effect.Effect<ReadonlyArray<string>, never, Database> =>
  Effect.map(sql(text), (rows) => rows.map((row) => String(Object.values(row)[0])))

const read = (toml: string): Config =>
  Result.getOrThrowWith(
    resolveConfig({ fileText: `${toml}\n[profiles.default]\n[profiles.other]\n`, env: {} }),
    ({ message }) => new Error(message)
  ).config

let plain: Config | undefined

/** Returns a configuration with the profiles `default` and `other`. `toml` comes before them. */
export const configOf = (toml = ""): Config => toml === "" ? plain ??= read("") : read(toml)

/** Returns a profile of a configuration. */
export const profileOf = (config: Config, name = "default"): ProfileConfig => {
  const profile = config.profiles.find((one) => one.name === name)
  if (profile === undefined) throw new Error(`there is no profile ${name}`)
  return profile
}

/** Returns signers for `profiles` that a function implements. */
const manualSigners = (signer: Signer, profiles = ["default", "other"]): Layer.Layer<Signers> =>
  Layer.succeed(Signers, {
    bySection: new Map(),
    crlIssuers: [],
    troubles: Effect.succeed(new Map()),
    of: (profile) => profiles.includes(profile) ? Effect.succeed(signer) : new ProfileNotMounted({ profile })
  })

const realSigners = (profiles: ReadonlyArray<SigningProfile>) =>
  Layer.orDie(
    Layer.flatMap(
      Backends.layer(profiles),
      (made) => Layer.mergeAll(Layer.succeedContext(made), Issuers.layer(profiles), ReadHooks.layer(profiles))
    )
  ).pipe(
    Layer.provide(Layer.mergeAll(Scripts.layer, Web.layer("1"), DnsUpdate.layer)),
    Layer.provide(Resolver.layerStatic({}))
  )

/** The chain of {@link signsAtOnce}, which is PEM but not a certificate. */
export const handmadeChain = "-----BEGIN CERTIFICATE-----\nTEFG\n-----END CERTIFICATE-----\n"

/** Signs every request with a handmade chain. */
export const signsAtOnce: DirectSigner["issue"] = () =>
  Effect.succeed({ chain: handmadeChain, serial: "0badcafe", notAfter: 7_776_000 })

/** The simulated outside world of a {@link world}. */
export interface Script {
  readonly validate?: Parameters<(typeof Validator)["layerScripted"]>[0]
  readonly issue?: DirectSigner["issue"]
  readonly revoke?: NonNullable<Signer["revoke"]>
  /** The profiles whose CAs sign, instead of `issue`. */
  readonly profiles?: ReadonlyArray<SigningProfile>
  /** The PTR names of addresses. Without them, nothing is looked up. */
  readonly names?: { readonly [address: string]: ReadonlyArray<string> | ResolveFailed }
  /** The answers of the operator's signer while clients wait, by default none. */
  readonly hooks?: Partial<ReadHooks["Service"]>
  readonly maxAttempts?: number
  readonly server?: Parameters<(typeof Waits)["layer"]>[0]
  readonly nonceTtlSeconds?: number
  /** Receives every log record. */
  readonly records?: Array<Record>
  readonly seed?: string
  /** Files of blocked keys. */
  readonly blocklists?: ReadonlyArray<string>
  /** Receives deliveries. By default, everything is accepted. */
  readonly deliver?: Deliveries["Service"]["deliver"]
  /** The receivers of the audit trail, by default none. */
  readonly receivers?: ReadonlyArray<AuditReceiver>
  /** The configuration about whose state operators are told. */
  readonly config?: Config
  /** The policies, by default none. */
  readonly policies?: Layer.Layer<Policies>
}

/** Returns all services that requests and jobs need, over a database. */
export const world = (script: Script = {}) =>
  Layer.mergeAll(
    Layer.provideMerge(
      Layer.merge(
        Waits.layer(script.server ?? { request_timeout_ms: 60_000, max_concurrent_requests: 100, hold_ms: 0 }),
        PublishedCrls.layer(takeBack)
      ),
      Queue.layer({ kinds: knownKinds, config: () => ({ jobs: { max_attempts: script.maxAttempts ?? 3 } }) })
    ),
    Nonces.layer(() => ({ nonce: { ttl_seconds: script.nonceTtlSeconds ?? 300 } })),
    AccountKeys.layer,
    Layer.orDie(PublicKeys.layer(script.blocklists ?? [])),
    script.policies ?? Policies.layerNone,
    Validator.layerScripted(script.validate ?? (() => Effect.void)),
    AuditAllowance.layer,
    RenewalAsks.layer,
    RenewalHours.layer,
    ProfileStates.layer,
    Notifier.layerNone,
    Deliveries.layerScripted(script.deliver ?? (() => Effect.succeed({ answer: "taken" }))),
    AuditReceivers.layerOf(script.receivers ?? []),
    Activity.layer(["default", "other"]),
    script.names === undefined
      ? ReverseNames.layerNone
      : Layer.provide(
        ReverseNames.layer({ timeoutMillis: 2000, unanswered: () => Effect.void }),
        Resolver.layerStatic({}, {}, script.names)
      ),
    script.profiles === undefined
      ? Layer.mergeAll(
        manualSigners({
          issue: script.issue ?? signsAtOnce,
          ...script.revoke === undefined ? {} : { revoke: script.revoke }
        }),
        Layer.succeed(Issuers, issuersOf(() => undefined)),
        Layer.succeed(ReadHooks, {
          crl: () => Effect.succeed(undefined),
          window: () => Effect.succeed(undefined),
          ...script.hooks
        })
      )
      : realSigners(script.profiles)
  ).pipe(
    (services) => Layer.provideMerge(Attention.layer(script.config ?? configOf()), services),
    Layer.provideMerge(Layer.merge(Entropy.layerSeeded(script.seed ?? "seed"), Loops.layer)),
    Layer.provideMerge(layerMemory(script.records ?? []))
  )

/** The services of a {@link world}. */
export type World = Layer.Success<ReturnType<typeof world>>

/** Returns a private P-256 key. */
export const newPrivateKey = (): KeyObject => newEcKey()

/** Returns the account key of a private key, by default a new one. */
export const accountKeyOf = (key: KeyObject = newPrivateKey()): AccountKey =>
  importSpki(createPublicKey(key).export({ type: "spki", format: "der" }))

/** The sender of requests that are made without a socket. */
export const sender: ClientFacts = { ip: "192.0.2.1", user_agent: "test/1", request_id: "request-1" }

/** Requests an account with only a key. */
export const registerKey = (profile: ProfileConfig, key: AccountKey, client: ClientFacts = sender) =>
  accounts.register({
    profile,
    key,
    contact: [],
    termsOfServiceAgreed: true,
    onlyReturnExisting: false,
    binding: undefined,
    url: "",
    client
  })

/** Makes a new account at a profile, and returns it as a caller. */
export const callerAt = Effect.fnUntraced(function*(profile: ProfileConfig, key: AccountKey = accountKeyOf()) {
  const { account } = yield* registerKey(profile, key)
  const caller: Caller = {
    profile,
    accountId: account.id,
    thumbprint: key.thumbprint,
    pubkey: key.spki,
    client: sender
  }
  return caller
})

/** Places a new order for these names. */
export const orderOf = (caller: Caller, ...names: ReadonlyArray<string>) =>
  orders.create(caller, {
    identifiers: names.map((value) => ({ type: "dns", value })),
    notBefore: undefined,
    notAfter: undefined
  })

/** Places a new order, and sets columns of its row directly, for example `status = 'valid'`. */
export const orderWith = Effect.fnUntraced(function*(caller: Caller, set: string, ...names: ReadonlyArray<string>) {
  const { id } = yield* orderOf(caller, ...names.length === 0 ? ["a.example"] : names)
  const { dialect } = yield* Database
  yield* sql(`UPDATE orders SET ${set} WHERE id = ${idLiteral(dialect, id)}`)
  return id
})

/** Returns the logged events, in order. */
export const eventsOf = (records: ReadonlyArray<Record>): ReadonlyArray<string> => records.map(({ event }) => event)

/** Returns the fields of every log record of an event. */
export const fieldsOf = (records: ReadonlyArray<Record>, event: Record["event"]): ReadonlyArray<Record["fields"]> =>
  records.filter((record) => record.event === event).map(({ fields }) => fields)
