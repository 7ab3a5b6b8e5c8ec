import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import { hostname } from "node:os"
import { Entropy } from "../crypto/Entropy.ts"
import type { Roles } from "../domain/Role.ts"
import { rolesText } from "../domain/Role.ts"
import { emit } from "../domain/words/Log.ts"
import { supervised } from "../domain/words/Loop.ts"
import { bounds, Loops } from "../engine/Loops.ts"
import { Resolver } from "../engine/net/Resolver.ts"
import { Web } from "../engine/net/Web.ts"
import { Queue } from "../engine/queue/Queue.ts"
import { start } from "../engine/queue/Runner.ts"
import { SharedClock } from "../engine/queue/SharedClock.ts"
import * as workers from "../engine/queue/Workers.ts"
import { Database } from "../engine/sql/Database.ts"
import { currentMillis } from "../engine/Time.ts"
import { watchLost } from "../operations/LostChanges.ts"
import { kindsFault, knownWords } from "../operations/OlderProcesses.ts"
import { makeReport, refresh } from "../operations/ProfileHealth.ts"
import { keepExported } from "../operations/work/crl/CrlExport.ts"
import type { DatabaseEmptied } from "../operations/work/crl/Emptied.ts"
import { refuseEmptied } from "../operations/work/crl/Emptied.ts"
import * as crl from "../operations/work/crl/ListPublication.ts"
import { recover } from "../operations/work/Sweeps.ts"
import { RenewalAsks } from "../services/signing/RenewalAsks.ts"
import { RenewalHours } from "../services/signing/RenewalHours.ts"
import type { Config } from "../settings/AppConfig.ts"
import type { Loaded } from "../settings/Load.ts"
import * as states from "../store/ProfileStateRows.ts"
import type { SignInState } from "../surfaces/cli/Welcome.ts"
import { advise, adviseOfFile, adviseOnOperators } from "./Advisories.ts"
import type { Child } from "./Child.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { beginCounters } from "./Counters.ts"
import type { Generation } from "./Generation.ts"
import * as Generations from "./Generation.ts"
import * as Graph from "./Graph.ts"
import { Host } from "./Host.ts"
import { InForce } from "./InForce.ts"
import * as Listeners from "./Listeners.ts"
import { reload } from "./Reload.ts"
import { Settings } from "./Settings.ts"

const hostError = ({ message }: { readonly message: string }) => new CommandFailed({ code: 1, message })

/**
 * Fails if the database file was replaced or removed, because everything that is written from then on would be lost.
 */
const replaced = Effect.flatMap(
  Database,
  ({ lost }) =>
    lost === undefined
      ? Effect.never
      : Effect.flatMap(lost, (message) => new CommandFailed({ code: 1, message }))
)

/**
 * Fails if background work fails again and again. A new process begins in a clean state, but restarted background work
 * does not.
 */
const givenUp = Effect.gen(function*() {
  const { givenUp } = yield* Loops
  const loop = yield* givenUp
  yield* emit("server_loop_given_up", { loop })
  return yield* new CommandFailed({
    code: 1,
    message:
      `The background work ${loop} has died ${bounds.end} times in a row, so that this process ends. Its last error is in the record server_loop_failed.`
  })
})

const emptied = ({ number, path }: DatabaseEmptied) =>
  new CommandFailed({
    code: 3,
    message:
      `The database has no revocation list of this CA, but ${path} is its list number ${number}: the database was lost, or database.url names another one. Restore the database from a backup. If it is lost for good, start with an empty one by serve --accept-empty-database: accounts and orders start from nothing, what its last list revokes is revoked again where the record of that list is left beside it, with .issued at its end, and the next list has a higher number.`
  })

/** The options of a run of `serve`. */
export interface Run {
  readonly roles: Roles
  /** The configuration, as it was read for the roles of this run. */
  readonly loaded: Loaded
  /**
   * Whether to start with an empty database even if a published revocation list shows that there was a different
   * database before.
   */
  readonly acceptsEmptyDatabase: boolean
  /** Prints the welcome text when everything is served. A child never prints it, because the parent does. */
  readonly announce: (signIn: Run["signIn"]) => Effect.Effect<void, never, Database | Entropy>
  /** Finds out whether somebody can sign in to the panel, for the welcome text. */
  readonly signIn: Effect.Effect<SignInState | undefined, never, Database | Entropy>
  /** What the process knows of its parent, if it has one. */
  readonly child: Child | undefined
}

/** The exporter of spans. It is loaded only if tracing is configured. */
const traces = Layer.unwrap(Effect.gen(function*() {
  const config = (yield* InForce).config()
  const { version } = (yield* Host).process
  const { endpoint, sample_percent } = config.tracing
  if (endpoint === "") return Layer.empty
  const { layer } = yield* Effect.promise(() => import("../engine/telemetry/Otlp.ts"))
  return Layer.unwrap(Effect.map(
    Web,
    (web) => layer({ send: spansTo(new URL(endpoint), web), version, samplePercent: sample_percent })
  )).pipe(Layer.provide(Graph.web(config, version)), Layer.provide(Resolver.layer(config.dns.resolver)))
}))

const mostAnswered = 4096

const spansTo = (url: URL, web: Web["Service"]) => (body: string) =>
  Effect.flatMap(
    Effect.mapError(
      web.send({ method: "POST", url, headers: { "Content-Type": "application/json" }, body, maxBytes: mostAnswered }),
      ({ detail }) => ({ message: detail })
    ),
    ({ status }) => status < 300 ? Effect.void : Effect.fail({ message: `the collector answered ${status}` })
  )

const startRunner = Effect.fnUntraced(function*(
  config: Config,
  as: { readonly owner: string; readonly isGone: (owner: string) => boolean },
  generation: Generation
) {
  if (generation.signers === undefined) return undefined
  yield* recover(config)
  yield* Effect.provide(crl.initialize, generation.signers)
  return yield* start({ ...config.jobs, ...as }, generation.handlers)
})

const betweenLooks = "5 seconds"

/**
 * In a worker, stores the profiles for which it can sign. In every process, reads the profiles for which no worker can
 * sign.
 */
const watchProfiles = Effect.fnUntraced(function*(owner: string, signers: Effect.Effect<Generation["signers"]>) {
  const report = makeReport(owner)
  const look = Effect.gen(function*() {
    const mine = yield* signers
    if (mine !== undefined) yield* Effect.provide(report, mine)
    yield* refresh
    yield* (yield* SharedClock).measure
  })
  if ((yield* signers) !== undefined) {
    yield* Effect.addFinalizer(() => Effect.ignore(states.forget(owner, [])))
    yield* Effect.ignore(states.forgetGone)
  }
  yield* Effect.ignore(look)
  // While the database is unavailable, the last known states are kept.
  yield* supervised("profile_states", Effect.repeat(Effect.delay(Effect.ignore(look), betweenLooks), Schedule.forever))
})

/** Binds the sockets, starts everything and runs `announce`. Returns what the shutdown needs. */
const begin = Effect.fnUntraced(function*({ acceptsEmptyDatabase, announce, child, loaded, roles, signIn }: Run) {
  const { config } = loaded
  const { process } = yield* Host
  const entropy = yield* Entropy
  const speaksFor = child === undefined ? roles : child.speaksFor
  const build = { roles, speaksFor, isChild: child !== undefined, version: process.version, panel: process.panel }
  // A process that does not sign finds out from the workers for which profiles none of them can sign.
  const may = roles.has("worker") ? { mayDegrade: () => true } : {}
  const first = yield* Generations.build(loaded, build, may)
  const current = yield* Effect.acquireRelease(
    Ref.make(first),
    (ref) => Effect.flatMap(Ref.get(ref), ({ close }) => close)
  )
  if (first.signers !== undefined && !acceptsEmptyDatabase) {
    yield* Effect.provide(Effect.catchTag(refuseEmptied, "DatabaseEmptied", emptied), first.signers)
  }
  const listeners = yield* Listeners.make
  const sockets = yield* listeners.prepare(first.surfaces)
  const machine = workers.here()
  const owner = workers.ownerOf(machine, { host: hostname(), pid: process.pid, uuid: yield* entropy.uuid })
  const knows = knownWords.join(" ")
  yield* Layer.build(workers.presence({ owner, roles: rolesText(roles), version: process.version, knows }))
  const fault = yield* kindsFault(config)
  if (fault !== undefined) return yield* new CommandFailed({ code: 3, message: fault })
  // The process listens for the signal before it runs its first job. So jobs that have begun end in an orderly way,
  // however early the signal comes.
  const stopped = yield* supervised("stop_signal", process.stopSignal)
  const runner = yield* startRunner(config, { owner, isGone: workers.isGone(machine) }, first)
  if (runner !== undefined) {
    yield* supervised("crl_export", keepExported(Effect.map(Ref.get(current), ({ signers }) => signers)))
  }
  yield* watchProfiles(owner, Effect.map(Ref.get(current), ({ signers }) => signers))
  yield* supervised("lost_changes", watchLost)
  if (roles.has("acme")) yield* supervised("renewal_asks", (yield* RenewalAsks).keepWriting)
  if (roles.has("worker")) yield* supervised("renewal_hours", (yield* RenewalHours).keepCounting)
  const { upkeep } = yield* Database
  if (upkeep !== undefined) yield* supervised("database_checkpoints", upkeep)
  const stop = runner === undefined ? Effect.succeed(0) : runner.stop
  yield* Effect.addFinalizer(() => stop)
  yield* beginCounters(roles, config)
  yield* sockets.publish
  yield* Generations.told(build, undefined, config)
  if (speaksFor !== undefined) {
    yield* adviseOfFile(loaded)
    yield* advise(config, speaksFor)
  }
  yield* adviseOnOperators(config, roles)
  if (child === undefined) yield* announce(signIn)
  else yield* child.report({ scrape: Effect.flatMap(Ref.get(current), ({ scrape }) => scrape), signIn })
  return { build, current, listeners, runner, stop, stopped: Fiber.join(stopped) }
})

/**
 * Serves until the stop signal. Every socket is bound before anything is served. The process reports its presence and
 * runs the recovery before it claims the first job. At the end, requests and jobs finish at the same time. Then the
 * presence is removed and the database is closed (docs/contribute/decisions/process.md). SIGHUP reloads the
 * configuration. An uncaught exception ends the process in the same order, and becomes the failure of this effect. The
 * same happens if vital background work fails again and again. A child reloads when its parent asks for that, and not
 * on SIGHUP.
 */
export const serve = (run: Run): Effect.Effect<void, CommandFailed, Graph.Kept | Host | InForce | Settings> =>
  Effect.scoped(Effect.gen(function*() {
    const { process } = yield* Host
    const { build, current, listeners, runner, stop, stopped } = yield* Effect.raceFirst(begin(run), process.uncaught)
    const count = yield* Ref.make(0)
    const surroundings = { ...build, scope: yield* Effect.scope, listeners, runner }
    const reloading = run.child === undefined
      ? Effect.forever(Effect.andThen(process.reloadSignal, reload(current, count, surroundings)))
      : run.child.reloads(current, surroundings)
    const broken = Effect.flip(Effect.sandbox(Effect.raceFirst(process.uncaught, givenUp)))
    const ended = yield* Effect.raceFirst(Effect.raceFirst(stopped, reloading), Effect.raceFirst(broken, replaced))
    const begun = yield* currentMillis
    // A child ignores SIGHUP. A signal that came long ago would be taken for one that came during the shutdown.
    if (run.child === undefined) {
      yield* supervised(
        "reload_refused",
        Effect.forever(Effect.andThen(process.reloadSignal, emit("server_reload_supervisor_gone", {})))
      )
    }
    yield* emit("server_shutdown_started", {
      signal: !Cause.isCause(ended) ? ended : Cause.hasFails(ended) ? "loop_given_up" : "uncaughtException"
    })
    // The listeners first announce that they close. Then the held requests are answered, so their clients do not reuse
    // the connection.
    const released = Effect.andThen(Queue.use(({ ends }) => Effect.sync(ends.stop)), stop)
    const [requests_cut, jobs_released] = yield* Effect.all([listeners.drain, released], { concurrency: 2 })
    const elapsed_ms = (yield* currentMillis) - begun
    yield* emit("server_shutdown_completed", { requests_cut, jobs_released, elapsed_ms })
    if (Cause.isCause(ended)) return yield* Effect.failCause(ended)
  })).pipe(
    Effect.catchTag("StorageFailed", hostError),
    Effect.provide(traces)
  )
