import { Effect, Exit, Fiber, Scope } from "effect"
import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Entropy } from "../../src/crypto/Entropy.ts"
import { parseRoles } from "../../src/domain/Role.ts"
import type { Record } from "../../src/engine/telemetry/EventLog.ts"
import { longestWait as longestOrphanWait } from "../../src/operations/work/OrphanedCertificates.ts"
import { generateIfAbsent } from "../../src/services/signing/CaFiles.ts"
import { configOf } from "../support/Graph.ts"
import { madeAt, signerOf } from "../support/LocalCa.ts"
import { areSwapped, Authorities, caNames, declareCompromised, madeIn } from "./Authorities.ts"
import { Client } from "./Client.ts"
import { Commands } from "./Commands.ts"
import { Delays } from "./Delays.ts"
import { Facts } from "./Facts.ts"
import { Flood } from "./Flood.ts"
import { Grants } from "./Grants.ts"
import { Holds, mayBegin } from "./Holds.ts"
import { Judge } from "./Judge.ts"
import { Ledger } from "./Ledger.ts"
import type { Process } from "./Machine.ts"
import { Machine } from "./Machine.ts"
import type { Installation, Member } from "./Member.ts"
import { startMember } from "./Member.ts"
import { kindNames, kindsToml } from "./OfferedKinds.ts"
import { Random } from "./Random.ts"
import { receiverNames, Receivers, receiversToml } from "./Receivers.ts"
import { never, ScopeOperator } from "./ScopeOperator.ts"
import type { Surroundings } from "./Session.ts"
import { openStore, plantedDefect } from "./Store.ts"
import { climateOf, latestMillis, Weather } from "./Weather.ts"
import { World } from "./World.ts"

/* Runs one seed, from the start of the first process to the end of the last job. */

/** The result of a run. */
export interface Outcome {
  readonly seed: string
  /** A digest that is the same for the same seed and the same code. */
  readonly digest: string
  readonly steps: number
  /** The number of answers whose facts the service must keep. */
  readonly acknowledged: number
  readonly certificates: number
  /** The number of committed changes of credentials. */
  readonly changes: number
  /** The number of notifications that arrived, without repetitions. */
  readonly notified: number
  readonly faults: { readonly [fault: string]: number }
  readonly violations: ReadonlyArray<string>
}

const topologies: ReadonlyArray<ReadonlyArray<string>> = [
  ["acme,worker"],
  ["acme", "worker"],
  ["acme,worker", "acme,worker"],
  ["acme", "acme", "worker", "worker"]
]
const profileNames = ["default", "other"]
const mostSteps = 2_000_000
const hourMillis = 3_600_000
const restMillis = 6 * hourMillis
const daySeconds = 86_400
/** The minimum time without faults at the end, in which the service is checked. */
const calmMillis = 50_000
/** The times for which the answers that begin a validation or an issuance may be held. */
const heldMillis = [0, 300, 3000, 20_000]
/** How often a process is reloaded after it got a request whose answer may be held, and within which time. */
const [reloadRate, reloadWithin] = [0.2, 400]
/** The number of validations in a flood, for each worker. A worker has sixteen slots during a flood. */
const floodOf = 20

/** Makes the CAs with which every simulation signs. Returns their folder. */
export const makeCa = async (): Promise<string> => {
  const directory = mkdtempSync(join(tmpdir(), "acme-simulation-"))
  const machine = new Machine({ now: madeAt * 1000, random: new Random("ca", "order") })
  const making = machine.spawn("ca", 3000).fork(
    Effect.provide(
      Effect.forEach(caNames, (name) => generateIfAbsent(madeIn(directory, name))),
      Entropy.layerSeeded("ca")
    )
  )
  await machine.run(() => making.pollUnsafe() !== undefined, () => {})
  await Effect.runPromise(Fiber.join(making))
  if (!areSwapped(directory)) return directory
  rmSync(directory, { recursive: true, force: true })
  return makeCa()
}

const rolesOf = (text: string) => {
  const roles = parseRoles(text.split(","))
  if (roles._tag === "Failure") throw new Error(`no roles: ${text}`)
  return roles.success
}

const records: ReadonlyArray<Record["event"]> = ["request_handler_panicked", "job_run_panicked"]

/** Runs a seed. `trace` receives every event. */
export const simulate = async (
  seed: string,
  caDirectory: string,
  trace?: (line: string) => void
): Promise<Outcome> => {
  const random = (stream: string) => new Random(seed, stream)
  const climate = climateOf(random("climate"))
  const machine = new Machine({ now: (madeAt + daySeconds) * 1000, random: random("order"), trace })
  const violations: Array<string> = []
  const violated = (what: string) => {
    violations.push(what)
    machine.note(`VIOLATED ${what}`)
  }
  const directory = mkdtempSync(join(tmpdir(), "acme-simulation-"))
  for (const file of caNames.flatMap((name) => [`${name}.pem`, `${name}.key`])) {
    copyFileSync(join(caDirectory, file), join(directory, file))
  }
  const world = new World(machine, random("world"), climate.malice)
  const ledger = new Ledger()
  const facts = new Facts(receiverNames, violated)
  const rotating = random("authorities")
  const takeover = rotating.chance(0.5) ? madeAt + daySeconds + rotating.between(1, 60) : undefined
  const authorities = new Authorities({ directory, takeover, ledger, violated })
  const issuing = random("issuing")
  const [hasKinds, hasCredentials] = [issuing.chance(0.5), !climate.isFlooded && issuing.chance(0.6)]
  const kinds = hasKinds ? kindNames : kindNames.slice(0, 1)
  const grants = new Grants({ violated, kinds, never })
  const syncs = random("syncs")
  const isGrouped = syncs.chance(0.5)
  const slowestSync = isGrouped ? syncs.pick([5, 50, 500]) : 0
  const holds = new Holds(violated, slowestSync, climate.late > 0 ? latestMillis : 0)
  const members = new Map<number, Member>()
  const weather: Weather = new Weather({
    climate,
    machine,
    random: random("weather"),
    members: () => [...members.values()].filter(({ process }) => process.isAlive),
    cutPower: () => {
      for (const { process } of members.values()) process.kill()
      for (const commands of [scopeCommands, caCommands]) commands.kill()
      judge.outlives(() => machine.note(`${store.cut((limit) => cuts.below(limit))} commits are gone`))
    },
    spoil: (key) => {
      if (store.isInTransaction()) return false
      store.spoil(key, Math.floor(machine.now / 1000))
      return true
    },
    lose: () => {
      const lost = store.isInTransaction() ? undefined : store.lose((limit) => losses.below(limit))
      if (lost !== undefined) judge.forget(lost)
      return lost !== undefined
    }
  })
  const cuts = random("cuts")
  const losses = random("losses")

  const scope = await Effect.runPromise(Scope.make())
  const judge: Judge = new Judge({
    store: () => store,
    ledger,
    facts,
    grants,
    authorities,
    shown: world.shown,
    program: world.program,
    violated,
    lapsedBefore: () => Math.floor(weather.latestClock() / 1000) - config.order.validity_seconds,
    furthestClock: () => weather.furthestClock(),
    ended: (subject) => holds.ended(subject, machine.now)
  })
  const settings = random("settings")
  const [mostConcurrent, pollMillis] = [settings.pick([1, 2, 8]), settings.pick([500, 1000, 5000])]
  const [mostAttempts, retrySeconds] = [settings.pick([2, 3, 5]), settings.pick([1, 5, 30])]
  const nonceSeconds = settings.pick([30, 300])
  const waits = random("waits")
  const areHeld = waits.chance(0.5)
  const configWith = (answerWait: number, finalizeWait: number) =>
    configOf(`
[challenge]
enabled = ["http-01", "dns-01"]
answer_wait_ms = ${answerWait}
${climate.isFlooded ? "timeout_ms = 30000\nmax_in_flight_per_account = 0" : ""}
[jobs]
poll_interval_ms = ${pollMillis}
max_concurrent = ${climate.isFlooded ? 1 : mostConcurrent}
max_attempts = ${mostAttempts}
retry_base_seconds = ${retrySeconds}
lease_seconds = 30
[order]
retention_days = 0
finalize_wait_ms = ${finalizeWait}
[nonce]
ttl_seconds = ${nonceSeconds}
[eab]
enabled = ${hasCredentials}
${hasKinds ? kindsToml : ""}
${receiversToml}`)
  const reloads = (areHeld ? [0, 1] : [0]).map(() =>
    areHeld ? configWith(waits.pick(heldMillis), waits.pick(heldMillis)) : configWith(0, 0)
  )
  const [config = configWith(0, 0)] = reloads
  const store = await Effect.runPromise(Scope.provide(
    openStore(
      isGrouped ? "grouped" : config.database.sqlite.synchronous,
      weather,
      (written) => judge.committed(written),
      (process, ended) =>
        void machine.after(syncs.between(0, slowestSync), () => {
          if (process.isAlive) ended()
        })
    ),
    scope
  ))
  const delays = new Delays(store, violated)
  /** The processes that have begun to run jobs. The start of a worker is not a wait of its jobs. */
  const runners = new Set<Process>()
  const isWorking = () => [...runners].some(({ isAlive }) => isAlive)
  const installation: Installation = {
    seed,
    config,
    reloads,
    unanswered: (process, { path }) => violated(`${process.name} never answered ${path}`),
    profiles: profileNames.map((name) => ({ name, signer: signerOf(authorities.settings()) })),
    store,
    world,
    receivers: new Receivers({ machine, random: random("receivers"), world, facts }),
    logged: (process, { event, fields }) => {
      machine.note(`${process.name} ${event}`)
      if (event === "job_runner_started") runners.add(process)
      if (event === "certificate_orphaned") judge.told(String(fields["cert_serial"]))
      const error = String(fields["error"])
      if (records.includes(event) && !error.includes(plantedDefect)) {
        violated(`${process.name} logged ${event}: ${error}`)
      }
    }
  }

  const commandsOf = (name: string) =>
    new Commands({ name, seed, machine, store, config, skew: () => weather.hostSkew, violated })
  const [scopeCommands, caCommands] = [commandsOf("operator"), commandsOf("authority")]
  const operator = new ScopeOperator({
    machine,
    random: random("operator"),
    commands: scopeCommands,
    grants,
    ledger,
    profiles: profileNames,
    kinds,
    skew: () => weather.hostSkew,
    violated
  })

  // Each process is started again after its end.
  const restarts = random("restarts")
  let started = 0
  const start = (place: number, roles: string): void => {
    const process = machine.spawn(`${roles}.${place}.${started++}`, climate.longestRun)
    process.skew = weather.hostSkew
    process.lateness = weather.lateness
    process.onKilled.add(() => {
      machine.note(`${process.name} ended`)
      machine.after(restarts.between(100, 8000), () => start(place, roles))
    })
    members.set(place, startMember(installation, process, rolesOf(roles)))
  }
  const topology = settings.pick(topologies)
  topology.forEach((roles, place) => start(place, roles))

  const clients = machine.spawn("clients", 3000)
  let atWork = 0
  const crowd = random("crowd")
  const surroundingsOf = (name: string): Surroundings => {
    const own = random(name)
    return {
      name,
      random: own,
      world,
      ledger,
      grants,
      operator: hasCredentials ? operator : undefined,
      // A client may name a kind only if there are several.
      kinds: hasKinds ? kinds : [],
      mischief: climate.mischief,
      authorities,
      note: (line) => machine.note(line),
      violated,
      send: (request) =>
        Effect.suspend(() => {
          const serving = [...members.values()].filter((member) => member.serves())
          if (serving.length === 0) return Effect.succeed(undefined)
          const member = own.pick(serving)
          const [begun, begunAt, late] = [machine.steps, machine.now, weather.faults["wait late"]]
          const wasLate = weather.isLate()
          const held = holds.begun(request, member.config(), begunAt)
          if (areHeld && mayBegin(request) && waits.chance(reloadRate)) {
            machine.after(waits.below(reloadWithin), () => {
              if (!weather.isHealed) member.reload(() => weather.reloaded(member.process))
            })
          }
          return Effect.map(Effect.ensuring(member.request(request), Effect.sync(() => holds.left(held))), (answer) => {
            const isCalm = weather.calmClock() !== undefined && !wasLate && weather.faults["wait late"] === late
            if (isCalm && answer?.status === 200) {
              holds.answered(held, answer, machine.now)
            }
            if (answer !== undefined && answer.status >= 500 && !weather.excuses(member.process, begun)) {
              violated(`${member.process.name} answered ${answer.status} to ${request.path}: ${String(answer.body)}`)
            }
            return answer
          })
        })
    }
  }
  const live = (life: Effect.Effect<void>) => {
    atWork++
    clients.fork(life).addObserver((exit) => {
      atWork--
      if (Exit.isFailure(exit)) violated(`a client failed: ${String(exit.cause)}`)
    })
  }
  for (let count = crowd.between(1, 4); count > 0; count--) live(new Client(surroundingsOf(`client-${count}`)).life)
  if (climate.isFlooded) {
    const workers = topology.filter((roles) => roles.includes("worker")).length
    live(new Flood(surroundingsOf("flood"), workers * floodOf).life)
  }

  if (hasCredentials) {
    clients.fork(operator.life(() => atWork === 0)).addObserver((exit) => {
      if (Exit.isFailure(exit)) violated(`the operator failed: ${String(exit.cause)}`)
    })
  }

  if (rotating.chance(0.3)) {
    const isOver = () => atWork === 0
    clients.fork(declareCompromised({ authorities, commands: caCommands, isOver, ledger, random: rotating }))
      .addObserver((exit) => {
        if (Exit.isFailure(exit)) violated(`the operator of the CAs failed: ${String(exit.cause)}`)
      })
  }

  const between = () => {
    delays.look(machine.now, () => isWorking() ? weather.calmClock() : undefined)
    holds.look(machine.now, weather.calmClock() !== undefined && !weather.isLate())
    weather.between()
  }

  let [checkedAt, calmUntil] = [machine.now, 0]
  /**
   * Lets time pass to the next due job if all of them wait for long. Some jobs may wait for a day, so a time that a wrong
   * clock wrote is not corrected if it is nearer than that.
   */
  const passToNext = () => {
    const millis = (judge.nextIsDueAt() ?? 0) * 1000 - machine.now
    if (millis < hourMillis || millis > longestOrphanWait * 1000) return
    machine.pass(millis)
    restUntil = machine.now + restMillis
  }
  const isOver = () => {
    if (violations.length > 0 || machine.steps >= mostSteps) return true
    if (!weather.isHealed) {
      if (atWork > 0) return false
      weather.heal()
      world.malice = 0
      checkedAt = machine.now
      calmUntil = machine.now + calmMillis
      machine.note("clients are done, and nothing goes wrong any more")
    }
    if (machine.now - checkedAt < 1000 || machine.now < calmUntil) return false
    checkedAt = machine.now
    restUntil ??= machine.now + restMillis
    if (machine.now >= restUntil) return true
    if (!judge.isAtRest()) {
      passToNext()
      return false
    }
    if (!judge.isLeftToSweep()) return true
    // The next daily sweep must sign the lists that were left to the sweep.
    const dueAt = judge.sweepIsDueAt()
    if (dueAt === undefined) return false
    if (sweptAt === undefined) {
      sweptAt = dueAt
      machine.note("the lists are left to the daily sweep")
      machine.pass(Math.max(0, dueAt * 1000 - machine.now))
      restUntil = machine.now + restMillis
    }
    return dueAt > sweptAt
  }
  let sweptAt: number | undefined
  let restUntil: number | undefined

  try {
    const ended = await machine.run(isOver, between)
    if (violations.length === 0) {
      if (!ended) violated("everything waits for something that nobody does")
      else if (machine.steps >= mostSteps) violated(`no end after ${mostSteps} steps, ${atWork} clients at work`)
      else if (!judge.isAtRest()) violated(`never at rest: ${judge.unfinished().join("; ")}`)
      else judge.atRest()
    }
  } finally {
    for (const process of machine.processes.values()) {
      process.onKilled.clear()
      process.kill()
    }
    await Effect.runPromise(Scope.close(scope, Exit.void))
    rmSync(directory, { recursive: true, force: true })
  }
  return {
    seed,
    digest: machine.digest(),
    steps: machine.steps,
    acknowledged: ledger.acknowledged,
    certificates: ledger.certificates.size,
    changes: grants.changes,
    notified: facts.arrived,
    faults: weather.faults,
    violations
  }
}
