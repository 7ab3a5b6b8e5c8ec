import { it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import * as Semaphore from "effect/Semaphore"
import { assert, describe } from "vitest"
import type { JobKind } from "../../../src/domain/words/JobKind.ts"
import { enqueueJob, handler, jobKinds, knownKinds } from "../../../src/domain/words/JobKind.ts"
import * as claims from "../../../src/engine/queue/Claims.ts"
import type { Job } from "../../../src/engine/queue/Job.ts"
import { JobId, shareOf } from "../../../src/engine/queue/Job.ts"
import type { AnyHandler } from "../../../src/engine/queue/Kind.ts"
import { LastTurns } from "../../../src/engine/queue/LastTurns.ts"
import type { Outcome } from "../../../src/engine/queue/Outcome.ts"
import { Done } from "../../../src/engine/queue/Outcome.ts"
import * as Runner from "../../../src/engine/queue/Runner.ts"
import * as Slots from "../../../src/engine/queue/Slots.ts"
import type { Head, Source } from "../../../src/engine/queue/Slots.ts"
import type { Database } from "../../../src/engine/sql/Database.ts"
import { StorageFailed } from "../../../src/engine/sql/Database.ts"
import { databases } from "../../support/Databases.ts"
import { column, count } from "../../support/Graph.ts"
import { useQueue } from "../../support/UseQueue.ts"

const idOf = (index: number) => JobId(`00000000-0000-7000-8000-${String(index).padStart(12, "0")}`)

const job = (kind: JobKind, share = ""): Job => ({
  id: idOf(0),
  kind,
  dedupKey: "",
  payload: "{}",
  attempts: 1,
  maxAttempts: 5,
  deadline: undefined,
  createdAt: 0,
  share,
  spentSeconds: 0
})

const { roomOf } = knownKinds

const nothing: Source = {
  begin: () => {},
  claim: () => Effect.succeed([]),
  due: () => Effect.succeed([]),
  groups: () => Effect.succeed([]),
  heads: () => Effect.succeed([]),
  claimThese: () => Effect.succeed([])
}

const jobsOf = (kind: JobKind, count: number, share = "") => Array.from({ length: count }, () => job(kind, share))

const kinds: ReadonlyArray<JobKind> = ["challenge_validate", "signer_issue", "local_ca_crl_regenerate"]

/** Returns the jobs that one query starts, whether or not the query fails. */
const filled = (slots: ReturnType<typeof Slots.make>, source: Partial<Source>, of = kinds, most = 4, now = 0) =>
  Effect.suspend(() => {
    const begun: Array<Job> = []
    const all: Source = { ...nothing, ...source, begin: (one) => void begun.push(one) }
    const look = slots.fill(most, of, now, all) as Effect.Effect<void, StorageFailed>
    return Effect.map(Effect.exit(look), (exit) => ({ begun, exit }))
  })

describe("the slots of a runner", () => {
  it("are many for a kind that waits for others, and the configured number for a kind that computes", () => {
    assert.deepStrictEqual(
      ([
        "challenge_validate",
        "signer_relay_issue",
        "notify_deliver",
        "signer_issue",
        "signer_revoke",
        "orphan_revoke",
        "key_revoke"
      ] as const).map((kind) => roomOf(kind, 8)?.slots),
      [128, 32, 16, 8, 8, 8, 8]
    )
    assert.isUndefined(roomOf("local_ca_crl_regenerate", 8))
    assert.isUndefined(roomOf("nonce_sweep", 1))
    for (const most of [1, 2, 3, 4, 5, 8, 33]) {
      for (const kind of jobKinds) {
        const room = roomOf(kind, most)
        for (const part of room === undefined ? [] : [room.firstCome, room.group]) {
          assert.isTrue(Number.isInteger(part) && part > 0 && part <= Number(room?.slots), `${kind} of ${most}`)
        }
      }
    }
  })

  it.effect("are filled by one query for all kinds that have free slots", () =>
    Effect.gen(function*() {
      const slots = Slots.make(roomOf)
      const asked: Array<readonly [number, ReadonlyArray<string>, boolean]> = []
      let waiting: ReadonlyArray<Head> = []
      const fill = (...answers: ReadonlyArray<ReadonlyArray<Job>>) => {
        asked.length = 0
        return filled(slots, {
          due: () => Effect.sync(() => waiting),
          claim: ({ among, kinds, limit }) =>
            Effect.sync(() => {
              asked.push([limit, kinds, among])
              return answers[asked.length - 1] ?? []
            })
        })
      }
      yield* fill(jobsOf("signer_issue", 2))
      assert.deepStrictEqual(asked, [[3, kinds, false]])
      waiting = [{ id: idOf(1), share: "", runAt: 0 }]
      yield* fill(jobsOf("signer_issue", 1), jobsOf("challenge_validate", 2))
      const others: ReadonlyArray<JobKind> = ["challenge_validate", "local_ca_crl_regenerate"]
      assert.deepStrictEqual(asked, [[1, kinds, false], [4, others, true]])
      assert.isFalse(slots.release(job("challenge_validate")), "nobody waits")
      assert.isTrue(slots.release(job("signer_issue")), "somebody may be waiting")
      waiting = []
      yield* fill()
      assert.deepStrictEqual(asked, [[4, others, true]], "who waits comes in turn")
      assert.isFalse(slots.release(job("signer_issue")), "nobody waited")
      yield* fill()
      assert.deepStrictEqual(asked, [[2, kinds, false]])
    }))

  it.effect("go to the account with the fewest slots when only a few are left", () =>
    Effect.gen(function*() {
      const slots = Slots.make(roomOf)
      const heads: ReadonlyArray<Head> = ["a/1", "a/2", "b/1"].map((share, index) => ({
        id: idOf(index),
        share,
        runAt: -index
      }))
      const source: Partial<Source> = {
        claim: ({ kinds, limit }) =>
          Effect.succeed(kinds.includes("challenge_validate") ? jobsOf("challenge_validate", limit, "a/1") : []),
        due: ({ kind }) => Effect.succeed(kind === "challenge_validate" ? heads : []),
        claimThese: (ids) =>
          Effect.succeed(
            heads.filter(({ id }) => ids.includes(id)).map(({ share }) => job("challenge_validate", share))
          )
      }
      // There are 64 slots. The first account gets 16, and accounts with fewer slots get the rest, except those that
      // others may still need.
      const { begun: claimed } = yield* filled(slots, source)
      const has = (share: string) => claimed.filter((one) => one.share === share).length
      assert.deepStrictEqual([has("a/1"), has("a/2"), has("b/1")], [16, 6, 8])
    }))

  it.effect("are given equally to receivers of deliveries, even if one of them is behind", () =>
    Effect.gen(function*() {
      const slots = Slots.make(roomOf)
      let shares = ["a/webhook/slow"]
      const heads = () => shares.map((share, index): Head => ({ id: idOf(index), share, runAt: 0 }))
      const source: Partial<Source> = {
        claim: ({ limit }) => Effect.succeed(jobsOf("notify_deliver", limit, "a/webhook/slow")),
        due: () => Effect.sync(heads),
        claimThese: (ids) =>
          Effect.sync(() =>
            heads().filter(({ id }) => ids.includes(id)).map(({ share }) => job("notify_deliver", share))
          )
      }
      const fill = Effect.map(filled(slots, source, ["notify_deliver"], 8), ({ begun }) => begun)
      const first = yield* fill
      assert.lengthOf(first, 4)
      assert.lengthOf(yield* fill, 0, "a receiver that hangs has no more")
      const [one = assert.fail("nothing")] = first
      assert.isTrue(slots.release(one))
      assert.lengthOf(yield* fill, 1, "nor less")
      shares = ["a/webhook/slow", "a/email/-", "b/webhook/chat"]
      const then = yield* fill
      const has = (share: string) => then.filter((one) => one.share === share).length
      assert.deepStrictEqual([has("a/webhook/slow"), has("a/email/-"), has("b/webhook/chat")], [0, 3, 3])
    }))

  it.effect("go round among the parts of a member, which has no more slots than without parts", () =>
    Effect.gen(function*() {
      const slots = Slots.make(roomOf)
      let queues = [
        ...Array.from({ length: 200 }, () => "a/webhook/chat#many"),
        "a/webhook/chat#one",
        "a/webhook/chat#two",
        "a/webhook/chat#one"
      ].map((share, at): Head => ({ id: idOf(at), share, runAt: at }))
      const take = (rows: ReadonlyArray<Head>) => {
        queues = queues.filter((row) => !rows.includes(row))
        return rows.map(({ id, share }) => ({ ...job("notify_deliver", share), id }))
      }
      const source: Partial<Source> = {
        claim: ({ limit }) => Effect.sync(() => take(queues.slice(0, limit))),
        due: ({ limit }) => Effect.sync(() => queues.slice(0, limit)),
        groups: () => Effect.succeed(["a"]),
        heads: () =>
          Effect.sync(() =>
            [...new Set(queues.map(({ share }) => share))].sort().flatMap((share) =>
              queues.find((row) => row.share === share) ?? []
            )
          ),
        claimThese: (ids) => Effect.sync(() => take(queues.filter(({ id }) => ids.includes(id))))
      }
      const fill = Effect.map(filled(slots, source, ["notify_deliver"], 8, 1000), ({ begun }) => begun)
      let running = yield* fill
      const ended: Array<string> = []
      while (queues.some(({ share }) => !share.endsWith("many"))) {
        assert.isAtMost(running.length, 4, "the other receivers have what they had")
        const [one = assert.fail("nothing"), ...rest] = running
        ended.push(one.share)
        slots.release(one)
        running = [...rest, ...(yield* fill)]
      }
      assert.isAtMost(ended.length, 12)
    }))

  it("are given evenly to groups first, and never beyond a share", () => {
    const heads = ["a/1", "a/2", "a/3", "b/1", "b/2"].map((share, index) => ({ id: idOf(index), share, runAt: index }))
    const none = () => [0, 0, 0] as const
    const chosen = (
      free: number,
      has: (share: string) => readonly [number, number, number],
      group = 9,
      memberPart = 9
    ) =>
      Slots.choose(heads, { of: has, waitsSince: (_, runAt) => runAt }, { free, group, memberPart })
        .map(({ share }) => share)
    assert.deepStrictEqual(chosen(3, none), ["a/1", "b/1", "a/2"])
    assert.deepStrictEqual(chosen(9, none, 2), ["a/1", "b/1", "a/2", "b/2"])
    assert.deepStrictEqual(chosen(1, (share) => share.startsWith("a/") ? [1, 1, 1] : [0, 0, 0]), ["b/1"])
    const some = (share: string) => share === "a/2" ? [1, 1, 1] as const : [0, 0, 0] as const
    assert.include(chosen(20, some, 20, 1 / 4), "a/2")
    assert.notInclude(chosen(20, some, 4, 1 / 4), "a/2", "what is left is for others")
  })

  it.effect("go round among shares that have a queue, however few slots there are and however old the queue is", () =>
    Effect.gen(function*() {
      for (const most of [1, 2, 3, 4, 8]) {
        const slots = Slots.make(roomOf)
        // All jobs of `a/1` to `a/9` are older than the jobs of the others.
        const flood = Array.from({ length: 9 }, (_, at) => `a/${at + 1}`)
        const queues = [
          ...Array.from({ length: 20 }, (_, at) => flood.map((share) => ({ share, runAt: at }))).flat(),
          ...["a/late", "b/1", "a/late", "b/1"].map((share) => ({ share, runAt: 30 }))
        ].map((row, at) => ({ ...row, id: idOf(at) }))
        const take = (rows: ReadonlyArray<Head>) =>
          rows.map((row) => {
            queues.splice(queues.findIndex(({ id }) => id === row.id), 1)
            return { ...job("signer_issue", row.share), id: row.id }
          })
        const source: Partial<Source> = {
          claim: ({ limit }) => Effect.sync(() => take(queues.slice(0, limit))),
          due: () =>
            Effect.sync(() =>
              [...new Set(queues.map(({ share }) => share))].sort().flatMap((share) =>
                queues.filter((row) => row.share === share).slice(0, 1)
              )
            ),
          claimThese: (ids) => Effect.sync(() => take(queues.filter(({ id }) => ids.includes(id))))
        }
        const fill = Effect.map(filled(slots, source, ["signer_issue"], most, 40), ({ begun }) => begun)
        let running = yield* fill
        const ended: Array<string> = []
        for (let one = running[0]; one !== undefined; one = running[0]) {
          ended.push(one.share)
          slots.release(one)
          running = [...running.slice(1), ...(yield* fill)]
        }
        const places = (share: string) => ended.flatMap((one, at) => one === share ? [at] : [])
        const [first = assert.fail(), second = assert.fail()] = places("b/1")
        assert.isAtMost(first, 2 * most, `${most} slots: another profile has the next turn`)
        assert.isAtMost(second, first + 2 * most, `${most} slots: and every other turn`)
        // Nine accounts with older jobs, and the other profile, have one turn each before it.
        const [own = assert.fail(), then = assert.fail()] = places("a/late")
        assert.isAtMost(own, 9 + 2 * most + 2, `${most} slots: an account waits for one turn of each other account`)
        assert.isAtMost(then, own + 9 + 2 * most, `${most} slots: and again`)
        assert.lengthOf(ended, 184)
      }
    }))

  it.effect("go round even if the clock is set back and newcomers keep coming", () =>
    Effect.gen(function*() {
      const slots = Slots.make(roomOf)
      let heads: ReadonlyArray<Head> = [{ id: idOf(0), share: "a/1", runAt: 0 }]
      const source: Partial<Source> = {
        claim: () => Effect.succeed(jobsOf("signer_issue", 1, "a/1")),
        due: () => Effect.sync(() => heads),
        claimThese: (ids) =>
          Effect.sync(() => heads.filter(({ id }) => ids.includes(id)).map(({ share }) => job("signer_issue", share)))
      }
      const next = (now: number) =>
        Effect.gen(function*() {
          const { begun: [one = assert.fail("nothing")] } = yield* filled(slots, source, ["signer_issue"], 1, now)
          yield* filled(slots, source, ["signer_issue"], 1, now)
          slots.release(one)
          heads = [...heads.filter(({ share }) => share === "a/1" || share !== one.share), {
            id: idOf(heads.length + now),
            share: `a/${heads.length + now}`,
            runAt: now
          }]
          return one.share
        })
      for (const now of [1_000_000, 1_000_000, 1_000_001]) yield* next(now)
      const order = yield* Effect.forEach(Array.from({ length: 20 }, (_, at) => 10 + at), next)
      assert.isAtLeast(order.filter((share) => share === "a/1").length, 2)
    }))

  describe("of which there are fewer than shares that wait", () => {
    /** A table that is read as `Claims.ts` reads it. */
    const table = (rows: ReadonlyArray<Pick<Head, "runAt" | "share">>) => {
      let waiting: ReadonlyArray<Head> = rows.map((row, at) => ({ ...row, id: idOf(at) }))
      const take = (taken: ReadonlyArray<Head>) => {
        waiting = waiting.filter((row) => !taken.includes(row))
        return taken.map(({ id, share }) => ({ ...job("signer_issue", share), id }))
      }
      const due = (now: number) =>
        waiting.filter(({ runAt }) => runAt <= now).sort((one, other) => one.runAt - other.runAt)
      const groupOf = (share: string) => share.split("/")[0] ?? ""
      return {
        source: (now: number): Partial<Source> => ({
          claim: ({ limit }) => Effect.sync(() => take(due(now).slice(0, limit))),
          due: ({ limit }) => Effect.sync(() => due(now).slice(0, limit)),
          groups: () => Effect.sync(() => [...new Set(waiting.map(({ share }) => groupOf(share)))]),
          heads: ({ from = "", group, limit }) =>
            Effect.sync(() => {
              const found = new Map<string, Head>()
              for (const row of waiting.filter(({ share }) => groupOf(share) === group && share >= from)) {
                if (row.runAt < (found.get(row.share)?.runAt ?? Number.POSITIVE_INFINITY)) found.set(row.share, row)
              }
              return [...found.keys()].sort().slice(0, limit).flatMap((share) => found.get(share) ?? [])
            }),
          claimThese: (ids) => Effect.sync(() => take(due(now).filter(({ id }) => ids.includes(id))))
        })
      }
    }
    const accounts = (count: number, runAt: number) =>
      Array.from({ length: count }, (_, at) => ({ share: `a/${String(at).padStart(5, "0")}`, runAt }))

    it.effect("go to another profile in its turn, however many accounts of one profile wait", () =>
      Effect.gen(function*() {
        for (const most of [1, 3, 8]) {
          const slots = Slots.make(roomOf)
          const { source } = table([...accounts(1500, 1), { share: "b/1", runAt: 5 }])
          const fill = Effect.map(filled(slots, source(9), ["signer_issue"], most, 9), ({ begun }) => begun)
          let running = yield* fill
          let ended = 0
          for (; !running.some(({ share }) => share === "b/1"); ended++) {
            const [one = assert.fail("nothing"), ...rest] = running
            slots.release(one)
            running = [...rest, ...(yield* fill)]
            assert.isAtMost(ended, 2 * most, `${most} slots`)
          }
        }
      }))

    it.effect("are looked for once in a pass if the only profile may have no more", () =>
      Effect.gen(function*() {
        const slots = Slots.make(roomOf)
        const { source } = table([...accounts(1500, 1)])
        yield* filled(slots, source(9), ["signer_issue"], 8, 9)
        const asked: Array<string> = []
        const reading = source(9)
        const counted: Partial<Source> = {
          ...reading,
          due: (of) => Effect.suspend(() => (asked.push("due"), (reading.due ?? nothing.due)(of))),
          groups: (of) => Effect.suspend(() => (asked.push("groups"), (reading.groups ?? nothing.groups)(of))),
          heads: (of) => Effect.suspend(() => (asked.push("heads"), (reading.heads ?? nothing.heads)(of)))
        }
        const { begun } = yield* filled(slots, counted, ["signer_issue"], 8, 9)
        assert.deepStrictEqual([begun, asked], [[], ["due", "groups"]])
      }))

    it.effect("are all seen even if rows that are not due are many more than the due ones", () =>
      Effect.gen(function*() {
        const slots = Slots.make(roomOf)
        const { source } = table([{ share: "a/1", runAt: 1 }, ...accounts(1500, 100), { share: "z/1", runAt: 5 }])
        const fill = (now: number) =>
          Effect.map(
            filled(slots, source(now), ["signer_issue"], 1, now),
            ({ begun }) => begun.map(({ share }) => share)
          )
        assert.deepStrictEqual(yield* fill(2), ["a/1"])
        yield* fill(3)
        slots.release(job("signer_issue", "a/1"))
        assert.deepStrictEqual(yield* fill(6), ["z/1"])
        slots.release(job("signer_issue", "z/1"))
        assert.deepStrictEqual(yield* fill(7), [])
        assert.isTrue(slots.reserve(1, "signer_issue", "c/1"), "no row that is due waits")
      }))
  })

  it("remember the turns of many shares", () => {
    const turns = new LastTurns()
    turns.setTime(10)
    turns.end("a/1")
    for (let at = 0; at < 50_000; at++) turns.end(`b/${at}`)
    assert.isAtLeast(turns.waitsSince("a/1", 5), 10)
    assert.strictEqual(turns.waitsSince("c/1", 5), 5)
    for (let at = 0; at < 100_000; at++) turns.end(`c/${at}`)
    assert.strictEqual(turns.waitsSince("a/1", 5), 5, "but not of all that there ever were")
  })

  it.effect("belong to rows that have begun, even if a later query fails or its caller ends with a defect", () =>
    Effect.gen(function*() {
      const failed = new StorageFailed({ statement: "job_claim", detail: "gone", transient: false })
      for (const ends of [Effect.fail(failed), Effect.die("planted")]) {
        const slots = Slots.make(roomOf)
        const { begun, exit } = yield* filled(slots, {
          claim: ({ among, limit }) => among ? ends : Effect.succeed(jobsOf("signer_issue", limit)),
          due: () => ends
        })
        assert.lengthOf(begun, 3)
        assert.isTrue(Exit.isFailure(exit), "it is not passed over")
        for (const one of begun) slots.release(one)
        const again = yield* filled(slots, {
          claim: ({ limit }) => Effect.succeed(jobsOf("signer_issue", Math.min(limit, 3)))
        })
        assert.lengthOf(again.begun, 3, "no slot is lost")
      }
    }))
})

const options = {
  poll_interval_ms: 1000,
  max_concurrent: 4,
  lease_seconds: 300,
  retry_base_seconds: 30,
  retry_max_seconds: 3600,
  owner: "host:1:a"
}

describe.each(databases)("slots on $name", (backend) => {
  const { test } = useQueue(backend)

  const of = (
    kind: "challenge_validate" | "signer_issue" | "local_ca_crl_regenerate",
    run: Effect.Effect<Outcome<Database>>
  ): AnyHandler<Database> =>
    handler({
      kind,
      budgetMillis: () => 10_000,
      run: () => run,
      abandon: () => Effect.void
    })

  const validate = (profile: string, account: string, index: number) =>
    enqueueJob({
      kind: "challenge_validate",
      dedupKey: `${profile} ${account} ${index}`,
      payload: { challenge_id: `${account} ${index}`, profile, thumbprint: "t" },
      share: shareOf(profile, account)
    })

  test(
    "are left for other work while validations hang",
    () =>
      Effect.gen(function*() {
        for (let account = 0; account < 12; account++) {
          for (let index = 0; index < 32; index++) yield* validate("attacked", `silent ${account}`, index)
        }
        const done: Outcome<Database> = Done()
        const silent = yield* Deferred.make<void>()
        const runner = yield* Runner.make(options, [
          handler<"challenge_validate", Database>({
            kind: "challenge_validate",
            budgetMillis: () => 10_000,
            run: ({ challenge_id }) =>
              Effect.as(challenge_id.startsWith("silent") ? Deferred.await(silent) : Effect.void, done),
            abandon: () => Effect.void
          }),
          of("signer_issue", Effect.succeed(done)),
          of("local_ca_crl_regenerate", Effect.succeed(done))
        ])
        yield* runner.pass
        yield* enqueueJob({ kind: "local_ca_crl_regenerate", dedupKey: "i", payload: { issuer: "i" } })
        const payload = { order_id: "o", profile: "attacked", csr: "", client: {} }
        yield* enqueueJob({ kind: "signer_issue", dedupKey: "o", payload, share: shareOf("attacked", "honest") })
        yield* validate("attacked", "honest", 0)
        yield* validate("other", "honest", 0)
        const settled = column("SELECT dedup_key FROM jobs WHERE status = 'done' ORDER BY dedup_key")
        yield* Effect.repeat(Effect.andThen(runner.pass, settled), { until: ({ length }) => length === 4, times: 200 })
        assert.deepStrictEqual(yield* settled, ["attacked honest 0", "i", "o", "other honest 0"])
        yield* Deferred.succeed(silent, undefined)
        yield* Effect.repeat(Effect.andThen(runner.pass, runner.idle), {
          until: () =>
            Effect.map(Effect.orDie(count("SELECT count(*) FROM jobs WHERE status = 'ready'")), (left) => left === 0)
        })
      })
  )

  test(
    "are given to the single order of one account before most of the many orders of another",
    () =>
      Effect.gen(function*() {
        const order = (account: string, index: number) =>
          enqueueJob({
            kind: "signer_issue",
            dedupKey: `${account} ${index}`,
            payload: { order_id: "o", profile: "p", csr: "", client: {} },
            share: shareOf("p", account)
          })
        for (let index = 0; index < 40; index++) yield* order("many", index)
        const begun: Array<string> = []
        const turns = yield* Semaphore.make(4)
        const gate = yield* Deferred.make<void>()
        const runner = yield* Runner.make(options, [
          handler<"signer_issue", Database>({
            kind: "signer_issue",
            budgetMillis: () => 10_000,
            run: (_, { dedupKey }) =>
              turns.withPermits(1)(Effect.suspend(() => {
                begun.push(dedupKey)
                return Effect.as(begun.length < 4 ? Deferred.await(gate) : Effect.void, Done())
              })),
            abandon: () => Effect.void
          })
        ])
        yield* runner.pass
        yield* order("one", 0)
        const waiting = yield* Effect.forkChild(runner.idle)
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(waiting)
        yield* Effect.repeat(Effect.andThen(runner.pass, runner.idle), { until: () => begun.includes("one 0") })
        assert.isBelow(begun.indexOf("one 0"), 8)
      })
  )

  test(
    "are planned with the oldest row of each share, however many rows a share has",
    () =>
      Effect.gen(function*() {
        for (
          const [share, runAt] of [["a/2", 3], ["a/2", 1], ["a/1", 2], ["", 5], ["c/1", 9], ["a/1", 4], [
            "a-b/1",
            7
          ]] as const
        ) {
          yield* enqueueJob({
            kind: "challenge_validate",
            dedupKey: `${share}${runAt}`,
            payload: { challenge_id: "c", profile: "p", thumbprint: "t" },
            share,
            runAt
          })
        }
        const kind = "challenge_validate"
        const told = (found: ReadonlyArray<Head>) => found.map(({ runAt, share }) => [share, runAt])
        const looked = (group: string, limit = 9, from?: string) =>
          Effect.map(claims.heads({ kind, group, from, limit }), told)
        assert.deepStrictEqual(yield* looked("a"), [["a/1", 2], ["a/2", 1]])
        assert.deepStrictEqual(yield* looked("a", 1), [["a/1", 2]])
        assert.deepStrictEqual(yield* looked("a", 9, "a/2"), [["a/2", 1]])
        assert.deepStrictEqual(yield* looked("a-b"), [["a-b/1", 7]])
        assert.deepStrictEqual(yield* looked("c"), [["c/1", 9]])
        assert.deepStrictEqual(yield* looked(""), [["", 5]])
        assert.deepStrictEqual(yield* looked("d"), [])
        assert.deepStrictEqual(yield* claims.heads({ kind: "signer_issue", group: "a", from: undefined, limit: 2 }), [])
        assert.sameMembers([...(yield* claims.groups(kind))], ["", "a", "a-b", "c"])
        assert.deepStrictEqual(yield* claims.groups("signer_issue"), [])
        const due = (now: number, limit: number) => Effect.map(claims.due({ kind, now, limit }), told)
        assert.deepStrictEqual(yield* due(4, 9), [["a/2", 1], ["a/1", 2], ["a/2", 3], ["a/1", 4]])
        assert.deepStrictEqual(yield* due(4, 1), [["a/2", 1]])
      })
  )
})
