import { Effect, Exit, Scope } from "effect"
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseRoles } from "../../src/domain/Role.ts"
import type { Record } from "../../src/kernel/telemetry/EventLog.ts"
import { Entropy } from "../../src/pki/Entropy.ts"
import { generateIfAbsent } from "../../src/services/signing/CaFiles.ts"
import { configOf } from "../support/Graph.ts"
import { madeAt, settingsIn, signerOf } from "../support/LocalCa.ts"
import { Client } from "./Client.ts"
import { Judge } from "./Judge.ts"
import { Ledger } from "./Ledger.ts"
import type { Process } from "./Machine.ts"
import { Machine } from "./Machine.ts"
import type { Installation, Member } from "./Member.ts"
import { startMember } from "./Member.ts"
import { Random } from "./Random.ts"
import { openStore } from "./Store.ts"
import { World } from "./World.ts"

/* One seed, from the first process started to the last job done. */

/** What a run came to. */
export interface Outcome {
  readonly seed: string
  /** The same for the same seed and the same code. */
  readonly digest: string
  readonly steps: number
  /** Answers the service was held to. */
  readonly acknowledged: number
  readonly certificates: number
  readonly faults: { readonly [fault: string]: number }
  readonly violations: ReadonlyArray<string>
}

const topologies: ReadonlyArray<ReadonlyArray<string>> = [
  ["acme,worker"],
  ["acme", "worker"],
  ["acme,worker", "acme,worker"],
  ["acme", "acme", "worker", "worker"]
]
const mostSteps = 2_000_000
const restMillis = 6 * 3_600_000
const daySeconds = 86_400

/** Makes the CA every simulation signs with; the folder it is in. */
export const makeCa = async (): Promise<string> => {
  const directory = mkdtempSync(join(tmpdir(), "acme-simulation-"))
  const machine = new Machine({ now: madeAt * 1000, random: new Random("ca", "order") })
  const making = machine.spawn("ca", 3000).fork(
    Effect.provide(generateIfAbsent(settingsIn(directory)), Entropy.layerSeeded("ca"))
  )
  await machine.run(() => making.unsafePoll() !== null, () => {})
  await Effect.runPromise(making)
  return directory
}

const rolesOf = (text: string) => {
  const roles = parseRoles(text.split(","))
  if (roles._tag === "Left") throw new Error(`no roles: ${text}`)
  return roles.right
}

/** What a seed's weather is like: how often each thing goes wrong. */
const climateOf = (random: Random) => {
  const rate = (worst: number) => random.chance(0.4) ? 0 : worst * random.fraction()
  return {
    statement: rate(0.02),
    undone: rate(0.02),
    unheard: rate(0.02),
    /** Between two steps. */
    event: rate(1 / 2000),
    malice: rate(0.2),
    mischief: rate(0.3),
    longestRun: random.pick([30, 300, 3000])
  }
}

const records: ReadonlyArray<Record["event"]> = ["request_handler_panicked", "job_run_panicked"]

/** Runs a seed. `trace` is told what happens. */
export const simulate = async (
  seed: string,
  caDirectory: string,
  trace?: (line: string) => void
): Promise<Outcome> => {
  const random = (stream: string) => new Random(seed, stream)
  const climate = climateOf(random("climate"))
  const machine = new Machine({ now: (madeAt + daySeconds) * 1000, random: random("order"), trace })
  const faults: { [fault: string]: number } = {}
  const violations: Array<string> = []
  let isHealed = false
  const violated = (what: string) => {
    violations.push(what)
    machine.note(`VIOLATED ${what}`)
  }
  const struck = (fault: string, process: Process | undefined): void => {
    faults[fault] = (faults[fault] ?? 0) + 1
    machine.note(`${process?.name ?? "machine"} ${fault}`)
  }

  const directory = mkdtempSync(join(tmpdir(), "acme-simulation-"))
  for (const file of ["ca.pem", "ca.key"]) copyFileSync(join(caDirectory, file), join(directory, file))
  const world = new World(machine, random("world"), climate.malice)
  const ledger = new Ledger()
  const weather = random("weather")
  const lastMishap = new Map<Process, number>()
  // Whoever stands still, or waits for somebody who does with the database in his hands, runs out of time.
  let stalledUntil = 0
  const stalls = (millis: number) => {
    stalledUntil = Math.max(stalledUntil, machine.now + millis + 30_000)
  }
  const strikes = (rate: number) => !isHealed && rate > 0 && weather.chance(rate)
  const mishap = (fault: string, process: Process) => {
    lastMishap.set(process, machine.steps)
    struck(fault, process)
  }

  const scope = await Effect.runPromise(Scope.make())
  const judge: Judge = new Judge({ store: () => store, ledger, shown: world.shown, violated })
  const store = await Effect.runPromise(Scope.extend(
    openStore({
      statement: (process) => {
        if (!strikes(climate.statement)) return false
        mishap("statement", process)
        return true
      },
      commit: (process) => {
        for (const fault of ["undone", "unheard"] as const) {
          if (!strikes(climate[fault])) continue
          mishap(`commit ${fault}`, process)
          return fault
        }
        return undefined
      }
    }, (written) => judge.committed(written)),
    scope
  ))

  const settings = random("settings")
  const installation: Installation = {
    seed,
    config: configOf(`
[challenge]
enabled = ["http-01", "dns-01"]
[jobs]
poll_interval_ms = ${settings.pick([500, 1000, 5000])}
max_concurrent = ${settings.pick([1, 2, 8])}
max_attempts = ${settings.pick([2, 3, 5])}
retry_base_seconds = ${settings.pick([1, 5, 30])}
lease_seconds = 30
[order]
retention_days = 0
[nonce]
ttl_seconds = ${settings.pick([30, 300])}
`),
    profiles: ["default", "other"].map((name) => ({ name, signer: signerOf(settingsIn(directory)) })),
    store,
    world,
    logged: (process, { event, fields }) => {
      machine.note(`${process.name} ${event}`)
      if (records.includes(event)) violated(`${process.name} logged ${event}: ${String(fields["error"])}`)
    }
  }

  // The processes, each started again when it has ended.
  const members = new Map<number, Member>()
  let started = 0
  const start = (place: number, roles: string): void => {
    const process = machine.spawn(`${roles}.${place}.${started++}`, climate.longestRun)
    process.onKilled.add(() => {
      machine.note(`${process.name} ended`)
      machine.after(weather.between(100, 8000), () => start(place, roles))
    })
    members.set(place, startMember(installation, process, rolesOf(roles)))
  }
  settings.pick(topologies).forEach((roles, place) => start(place, roles))

  const clients = machine.spawn("clients", 3000)
  let atWork = 0
  const crowd = random("crowd")
  for (let count = crowd.between(1, 4); count > 0; count--) {
    const own = random(`client ${count}`)
    const client = new Client({
      name: `client-${count}`,
      random: own,
      world,
      ledger,
      mischief: climate.mischief,
      ca: readFileSync(join(directory, "ca.pem"), "utf8"),
      note: (line) => machine.note(line),
      violated,
      send: (request) =>
        Effect.suspend(() => {
          const serving = [...members.values()].filter((member) => member.serves())
          if (serving.length === 0) return Effect.succeed(undefined)
          const member = own.pick(serving)
          const begun = machine.steps
          return Effect.tap(member.request(request), (answer) => {
            // A failure that nothing caused is the service's own.
            const isExcused = machine.now <= stalledUntil || (lastMishap.get(member.process) ?? -1) >= begun - 2000
            if (answer !== undefined && answer.status >= 500 && !isExcused) {
              violated(`${member.process.name} answered ${answer.status} to ${request.path}: ${String(answer.body)}`)
            }
          })
        })
    })
    atWork++
    clients.fork(client.life).addObserver((exit) => {
      atWork--
      if (Exit.isFailure(exit)) violated(`a client failed: ${String(exit.cause)}`)
    })
  }

  const between = () => {
    if (isHealed || climate.event === 0 || !weather.chance(climate.event)) return
    const living = [...members.values()].filter(({ process }) => process.isAlive)
    if (living.length === 0) return
    const member = weather.pick(living)
    const { process } = member
    switch (weather.pick(["kill", "kill", "stop", "terminate", "skew", "leap"])) {
      case "kill":
        struck("killed", process)
        return process.kill()
      case "stop":
        struck("stopped", process)
        process.stoppedUntil = machine.now + weather.between(100, 200_000)
        return stalls(process.stoppedUntil - machine.now)
      case "terminate":
        struck("terminated", process)
        return member.terminate()
      case "skew":
        struck("clock skewed", process)
        process.skew = weather.between(-300_000, 300_000)
        return
      case "leap":
        if (!weather.chance(0.2)) return
        struck("time leapt", undefined)
        machine.pass(weather.pick([60, 3600, daySeconds, 4 * daySeconds]) * 1000)
        return stalls(0)
    }
  }

  let checkedAt = machine.now
  const isOver = () => {
    if (violations.length > 0 || machine.steps >= mostSteps) return true
    if (!isHealed) {
      if (atWork > 0) return false
      isHealed = true
      world.malice = 0
      checkedAt = machine.now
      for (const { process } of members.values()) {
        process.skew = 0
        process.stoppedUntil = 0
      }
      machine.note("clients are done, and nothing goes wrong any more")
    }
    if (machine.now - checkedAt < 1000) return false
    checkedAt = machine.now
    restUntil ??= machine.now + restMillis
    if (machine.now >= restUntil) return true
    if (!judge.isAtRest()) return false
    if (!judge.isLeftToSweep()) return true
    // Then the sweep has a day, and no more.
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
    faults,
    violations
  }
}
