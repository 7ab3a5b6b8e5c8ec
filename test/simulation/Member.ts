import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { makeUses } from "../../src/app/Uses.ts"
import { Entropy } from "../../src/crypto/Entropy.ts"
import type { Roles } from "../../src/domain/Role.ts"
import { rolesText } from "../../src/domain/Role.ts"
import { knownKinds } from "../../src/domain/words/JobKind.ts"
import { Scripts } from "../../src/engine/host/Scripts.ts"
import type { Answer, Request } from "../../src/engine/http/Message.ts"
import { Loops } from "../../src/engine/Loops.ts"
import { DnsUpdate } from "../../src/engine/net/DnsUpdate.ts"
import { ReverseNames } from "../../src/engine/net/ReverseNames.ts"
import { Web } from "../../src/engine/net/Web.ts"
import { Queue } from "../../src/engine/queue/Queue.ts"
import { start } from "../../src/engine/queue/Runner.ts"
import { Waits } from "../../src/engine/queue/Waits.ts"
import * as workers from "../../src/engine/queue/Workers.ts"
import { ownerOf } from "../../src/engine/queue/Workers.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import type { Record } from "../../src/engine/telemetry/EventLog.ts"
import { EventLog } from "../../src/engine/telemetry/EventLog.ts"
import { knownWords } from "../../src/operations/OlderProcesses.ts"
import * as crl from "../../src/operations/work/crl/ListPublication.ts"
import { takeBack } from "../../src/operations/work/crl/ServedLists.ts"
import { recover } from "../../src/operations/work/Sweeps.ts"
import { AuditAllowance } from "../../src/services/audit/AuditAllowance.ts"
import { AuditReceivers } from "../../src/services/audit/AuditReceivers.ts"
import { AccountKeys } from "../../src/services/keys/AccountKeys.ts"
import { PublicKeys } from "../../src/services/keys/PublicKeys.ts"
import { Nonces } from "../../src/services/nonce/Nonces.ts"
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
import { Signers } from "../../src/services/signing/Signer.ts"
import { Validator } from "../../src/services/validation/Validator.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import { handlers } from "../../src/surfaces/jobs/JobHandlers.ts"
import { surfaceOf } from "../support/Handle.ts"
import type { Process } from "./Machine.ts"
import type { Receivers } from "./Receivers.ts"
import type { Store } from "./Store.ts"
import type { World } from "./World.ts"

/** What every process of the service gets when it starts. */
export interface Installation {
  readonly seed: string
  readonly config: Config
  /**
   * Each reload takes the next of these configurations, and the first one again after the last. The first is `config`.
   */
  readonly reloads: ReadonlyArray<Config>
  readonly profiles: ReadonlyArray<SigningProfile>
  readonly store: Store
  readonly world: World
  readonly receivers: Receivers
  readonly logged: (process: Process, record: Record) => void
  /** Called with each request that a live process began, and that ended without an answer though its client waits. */
  readonly unanswered: (process: Process, request: Request) => void
}

/** A process of the service, with the layers that `serve` builds but without the sockets and the outside world. */
export interface Member {
  readonly process: Process
  readonly roles: Roles
  /** Whether the process already answers requests. */
  readonly serves: () => boolean
  /**
   * Answers a request, or returns nothing if the process ends first. An interruption simulates a client that
   * disconnects.
   */
  readonly request: (request: Request) => Effect.Effect<Answer | undefined>
  /** Returns the configuration with which the process answers new requests. */
  readonly config: () => Config
  /**
   * Reads the next configuration as SIGHUP does. Requests that have begun keep the former configuration. If there are
   * such requests, `isUsed` is called.
   */
  readonly reload: (isUsed: () => void) => void
  /** Ends the process as SIGTERM does. */
  readonly terminate: () => void
}

const kept = ({ config }: Installation) =>
  Layer.mergeAll(
    Layer.provideMerge(
      Layer.merge(Notifier.layer(() => config), PublishedCrls.layer(takeBack)),
      Queue.layer({ kinds: knownKinds, config: () => config })
    ),
    Nonces.layer(() => config),
    Loops.layer,
    AccountKeys.layer,
    AuditAllowance.layer,
    RenewalAsks.layer,
    RenewalHours.layer,
    ProfileStates.layer
  )

type Kept = Layer.Success<ReturnType<typeof kept>> | Database | Entropy

/** How long a process waits for its requests when it is asked to end. */
const drainMillis = 30_000

type Served = (request: Request) => Effect.Effect<Answer>

/** What answers requests with one configuration. */
interface Generation {
  readonly config: Config
  /** Begins a request. */
  readonly ask: (request: Request) => Fiber.Fiber<Answer>
  readonly isUsed: () => boolean
  /** Closes the generation as soon as all of its requests are answered. */
  readonly retire: Effect.Effect<void>
}

/** Starts a process. A process that cannot start ends by itself, as a real one does. */
export const startMember = (installation: Installation, process: Process, roles: Roles): Member => {
  const { config, profiles, receivers, store, world } = installation
  const owner = ownerOf({ place: undefined, begun: () => undefined }, { host: "machine", pid: 1, uuid: process.name })
  const stopping = Deferred.makeUnsafe<void>()
  const asked = new Set<Fiber.Fiber<Answer>>()
  let current: Generation | undefined
  // Requests that are left after the drain are cut off.
  let isDrained = false
  let reload: ((isUsed: () => void) => Effect.Effect<void>) | undefined

  const serving = Effect.fnUntraced(function*(inForce: Config) {
    const services = yield* Layer.build(
      Layer.mergeAll(
        Policies.layerNone,
        Layer.orDie(PublicKeys.layer([])),
        ReverseNames.layerNone,
        Issuers.layer(profiles),
        Layer.provide(ReadHooks.layer(profiles), Scripts.layer),
        Waits.layer(inForce.server)
      )
    )
    const surface = yield* Effect.provide(surfaceOf(inForce), services)
    const around = yield* Effect.context<Kept>()
    return (request: Request): ReturnType<Served> =>
      Effect.provide(surface.handle(request), Context.merge(around, services))
  })

  const generationOf = Effect.fnUntraced(function*(inForce: Config) {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const close = Scope.close(scope, Exit.void)
    const serve = yield* Effect.onError(Scope.provide(serving(inForce), scope), () => close)
    const uses = makeUses()
    const under = new Set<Fiber.Fiber<Answer>>()
    // A request has no services left once its generation is closed.
    yield* Scope.addFinalizer(scope, Effect.sync(() => under.forEach((fiber) => fiber.interruptUnsafe())))
    return {
      config: inForce,
      ask: (request) => {
        const fiber = process.fork(serve(request))
        uses.begun(fiber)
        under.add(fiber)
        asked.add(fiber)
        fiber.addObserver(() => {
          under.delete(fiber)
          asked.delete(fiber)
        })
        return fiber
      },
      isUsed: () => under.size > 0,
      retire: Effect.ensuring(uses.ended, close)
    } satisfies Generation
  })

  const working = Effect.gen(function*() {
    const services = yield* Layer.build(
      Layer.mergeAll(
        receivers.layer(),
        AuditReceivers.layerOf([]),
        Layer.provide(Validator.layer(), world.layer()),
        Layer.effect(Signers, Effect.map(Signers, (signers) => world.signing(signers, process))).pipe(
          Layer.provide(Backends.layer(profiles)),
          Layer.provide(Layer.mergeAll(Scripts.layer, Web.layer("0"), DnsUpdate.layer)),
          Layer.provide(world.layer())
        )
      )
    )
    yield* recover(config)
    yield* Effect.provide(crl.initialize, services)
    const issuers = yield* Layer.build(Issuers.layer(profiles))
    return yield* Effect.provide(
      Effect.flatMap(handlers(config), (known) => start({ ...config.jobs, owner }, known)),
      Context.merge(services, issuers)
    )
  })

  const life = Effect.scoped(Effect.gen(function*() {
    const driver = yield* store.driverOf(process)
    yield* Effect.gen(function*() {
      // The program also ends by itself if a loop cannot be restarted.
      yield* Effect.forkScoped(Effect.flatMap(Loops, ({ givenUp }) => Effect.map(givenUp, () => process.kill())))
      yield* Layer.build(
        workers.presence({ owner, roles: rolesText(roles), version: "0", knows: knownWords.join(" ") })
      )
      const runner = roles.has("worker") ? yield* working : undefined
      if (roles.has("acme")) {
        const scope = yield* Effect.scope
        const around = yield* Effect.context<Kept>()
        let reloads = 0
        current = yield* generationOf(config)
        reload = (isUsed) =>
          Effect.provide(
            // As in the service, a configuration that cannot be made leaves the former one in force.
            Effect.ignore(Effect.gen(function*() {
              const next = yield* generationOf(installation.reloads[++reloads % installation.reloads.length] ?? config)
              const before = current
              if (before === undefined) return
              current = next
              if (before.isUsed()) isUsed()
              yield* before.retire
            })),
            Context.add(around, Scope.Scope, scope)
          )
      }
      yield* Deferred.await(stopping)
      current = undefined
      // What is held is answered now, with the present state.
      yield* Queue.use(({ ends }) => Effect.sync(ends.stop))
      // As with listeners, earlier requests are answered before the services that they need are closed.
      const answered = Effect.timeoutOption(Effect.forEach([...asked], Fiber.await, { discard: true }), drainMillis)
      yield* Effect.all([answered, runner?.stop ?? Effect.void], { concurrency: 2 })
      isDrained = true
    }).pipe(
      Effect.provide(kept(installation)),
      Effect.provide(Entropy.layerSeeded(`${installation.seed}/${process.name}`)),
      Effect.provideService(Database, driver),
      Effect.provideService(EventLog, {
        enabled: () => true,
        write: (record) => installation.logged(process, record)
      })
    )
  }))
  process.fork(life).addObserver(() => process.kill())

  return {
    process,
    roles,
    serves: () => process.isAlive && current !== undefined,
    config: () => current?.config ?? config,
    request: (request) =>
      Effect.callback((resume) => {
        if (!process.isAlive || current === undefined) return resume(Effect.succeed(undefined))
        let isWaiting = true
        const gone = () => resume(Effect.succeed(undefined))
        process.onKilled.add(gone)
        const fiber = current.ask(request)
        fiber.addObserver((exit) => {
          process.onKilled.delete(gone)
          const isCut = Exit.hasInterrupts(exit)
          if (isCut && isWaiting && process.isAlive && !isDrained) installation.unanswered(process, request)
          resume(isCut ? Effect.succeed(undefined) : exit)
        })
        return Effect.sync(() => {
          isWaiting = false
          fiber.interruptUnsafe()
        })
      }),
    reload: (isUsed) => {
      if (process.isAlive && current !== undefined && reload !== undefined) process.fork(reload(isUsed))
    },
    terminate: () => Deferred.doneUnsafe(stopping, Exit.void)
  }
}
