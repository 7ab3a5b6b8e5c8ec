import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Roles } from "../domain/Role.ts"
import { supervised } from "../domain/words/Loop.ts"
import { Loops } from "../engine/Loops.ts"
import type { Parent } from "../engine/processes/OwnParent.ts"
import { lifeMillis } from "../engine/Time.ts"
import type { Loaded } from "../settings/Load.ts"
import type { SignInState } from "../surfaces/cli/Welcome.ts"
import { CommandFailed, messageOf } from "./CommandFailed.ts"
import type { Generation } from "./Generation.ts"
import type { Kept } from "./Graph.ts"
import type { InForce } from "./InForce.ts"
import type { Reply, SignIn } from "./ProcessMessage.ts"
import { ToChild } from "./ProcessMessage.ts"
import type { Prepared, Surroundings } from "./Reload.ts"
import { prepare } from "./Reload.ts"
import { Settings } from "./Settings.ts"

type Told<T extends ToChild["type"]> = Extract<ToChild, { readonly type: T }>

/** What a child answers when its parent asks. */
interface Answers<R> {
  /** The text of a scrape. */
  readonly scrape: Effect.Effect<string, never, R>
  /** Whether somebody can sign in to the panel. Makes the link of the state `link`. */
  readonly signIn: Effect.Effect<SignInState | undefined, never, R>
}

/** A process that serves a part of a service for its parent (docs/contribute/decisions/processes.md). */
export interface Child {
  /** The number of the process among the children of its parent. */
  readonly number: number
  readonly roles: Roles
  readonly speaksFor: Roles | undefined
  /** The configuration, made from the file that the parent has read. */
  readonly loaded: Effect.Effect<Loaded, CommandFailed, Settings>
  /** Returns the vital loops that keep failing in other processes. */
  readonly failingElsewhere: () => ReadonlyArray<string>
  /**
   * Tells the parent that this process serves. After that, tells the parent whether the process is ready, and answers
   * its questions.
   */
  readonly report: <R>(answers: Answers<R>) => Effect.Effect<void, never, R | Loops | Scope.Scope>
  /**
   * Reloads whenever the parent asks for a reload. The parent asks every process to prepare first, and then to publish
   * or abandon.
   */
  readonly reloads: (
    current: Ref.Ref<Generation>,
    surroundings: Surroundings
  ) => Effect.Effect<never, never, Kept | InForce | Settings>
}

/** Returns a state as a message, which the parent alone receives. */
const signInOf = (state: SignInState | undefined): SignIn =>
  state === undefined
    ? { _tag: "unknown" }
    : state._tag === "link"
    ? { ...state, url: Redacted.value(state.url) }
    : state

const decode = Schema.decodeUnknownOption(ToChild)
const betweenLooks = "1 second"

type Order = Told<"build" | "publish" | "abandon">

/** The orders that the parent gives about the configuration, and what is needed to obey them. */
interface Orders {
  readonly orders: Queue.Dequeue<Order>
  readonly load: (file: Told<"build">["file"]) => Effect.Effect<Loaded, CommandFailed, Settings>
  readonly reply: (message: Reply) => Effect.Effect<void>
}

/** Obeys the orders about the configuration, one after the other. */
const obeying = (
  { load, orders, reply }: Orders,
  current: Ref.Ref<Generation>,
  surroundings: Surroundings
): Effect.Effect<never, never, Kept | InForce | Settings> => {
  let ready: Prepared | undefined
  const drop = Effect.suspend(() => {
    const abandoned = ready
    ready = undefined
    return abandoned?.abandon ?? Effect.void
  })
  const build = ({ file, id }: Told<"build">) =>
    load(file).pipe(
      Effect.flatMap((loaded) => prepare(loaded, current, surroundings)),
      Effect.map((prepared): Reply => {
        ready = prepared
        return { type: "built", id, rebound: prepared.rebound }
      }),
      Effect.catch((error) =>
        Effect.succeed<Reply>({
          type: "refused",
          id,
          code: error._tag === "CommandFailed" ? error.code : 1,
          message: error.message
        })
      ),
      Effect.catchDefect((defect) =>
        Effect.succeed<Reply>({ type: "refused", id, code: 1, message: messageOf(defect) })
      ),
      Effect.flatMap(reply)
    )
  const publish = ({ id }: Told<"publish">) =>
    Effect.suspend(() => {
      const published = ready
      ready = undefined
      return Effect.uninterruptible(
        Effect.andThen(published?.publish ?? Effect.void, reply({ type: "published", id }))
      )
    })
  const obey = Effect.flatMap(Queue.take(orders), (order): Effect.Effect<void, never, Kept | InForce | Settings> => {
    switch (order.type) {
      case "build":
        return build(order)
      case "publish":
        return publish(order)
      case "abandon":
        return drop
    }
  })
  return Effect.ensuring(Effect.forever(obey), drop)
}

/** Waits until the parent says what this process has to do. */
export const begun = Effect.fnUntraced(function*(parent: Parent): Effect.fn.Return<Child> {
  const questions = yield* Queue.unbounded<Told<"scrape" | "signIn">>()
  const orders = yield* Queue.unbounded<Order>()
  let elsewhere: ReadonlyArray<string> = []
  const next = Effect.map(parent.received, decode)

  const first: Effect.Effect<Told<"begin">> = Effect.flatMap(
    next,
    (message) => Option.isSome(message) && message.value.type === "begin" ? Effect.succeed(message.value) : first
  )
  const { file, task } = yield* first
  const roles: Roles = new Set(task.roles)

  const load = (from: typeof file) =>
    Effect.map(Effect.flatMap(Settings, ({ fresh }) => fresh(roles, from)), (loaded): Loaded => ({
      ...loaded,
      config: {
        ...loaded.config,
        server: { ...loaded.config.server, max_concurrent_requests: task.requests }
      }
    }))
  const reply = (message: Reply) => parent.send(message)

  const report = <R>({ scrape, signIn }: Answers<R>) =>
    Effect.gen(function*() {
      yield* supervised(
        "process_messages",
        Effect.forever(Effect.flatMap(next, (given): Effect.Effect<unknown> => {
          if (Option.isNone(given)) return Effect.void
          const message = given.value
          switch (message.type) {
            case "begin":
              return Effect.void
            case "service":
              elsewhere = message.failing
              return Effect.void
            case "ping": // answered here, because a scrape or a build may take long in a process that is well
              return reply({ type: "pong", id: message.id })
            case "scrape":
            case "signIn":
              return Queue.offer(questions, message)
            default:
              return Queue.offer(orders, message)
          }
        }))
      )
      const { failing } = yield* Loops
      let told: string | undefined
      const tell = Effect.flatMap(lifeMillis, (life) => {
        const now = failing(life)
        if (told === now.join()) return Effect.void
        told = now.join()
        return parent.send({ type: "state", failing: now })
      })
      yield* supervised("process_state", Effect.repeat(tell, Schedule.spaced(betweenLooks)))
      const answer = Effect.flatMap(
        Queue.take(questions),
        ({ id, type }) =>
          type === "scrape"
            ? Effect.flatMap(scrape, (text) => reply({ type: "scraped", id, text }))
            : Effect.flatMap(signIn, (state) => reply({ type: "signIns", id, state: signInOf(state) }))
      )
      yield* supervised("process_scrapes", Effect.forever(answer))
    })

  return {
    number: task.process,
    roles,
    speaksFor: task.speaksFor.length === 0 ? undefined : new Set(task.speaksFor),
    loaded: load(file),
    failingElsewhere: () => elsewhere,
    report,
    reloads: (current, surroundings) => obeying({ load, orders, reply }, current, surroundings)
  }
})
