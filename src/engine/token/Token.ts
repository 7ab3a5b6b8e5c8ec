import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { ChildProcess } from "node:child_process"
import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { readSecretFile, said, stampOf } from "../host/KeyFile.ts"
import { lifeMillis } from "../Time.ts"
import type { Mechanism, Opening, TokenAnswer, TokenFailure, TokenPublicKey, TokenQuestion } from "./pkcs11Module.ts"

/*
 * Signs with a key of a PKCS#11 token. A process of its own loads the module of the token, because a module may hang or
 * crash. The process is killed if a call takes too long, and another one is started for a later signature.
 */

/** Where the key is, and how to log in. An empty text, or a slot of -1, is not set. */
export interface TokenSettings {
  readonly module_path: string
  readonly token_label: string
  readonly slot_id: number
  readonly key_label: string
  readonly key_id: string
  readonly pin_file: string
}

/**
 * There is no signature. `detail` is a clause for operators without a secret. `isFault` means that the configuration
 * must be changed: no later attempt succeeds.
 */
export class TokenFailed extends Data.TaggedError("TokenFailed")<{
  readonly detail: string
  readonly isFault: boolean
}> {}

/** A key of a token. */
export interface Token {
  /** Logs in, finds the key and judges it, unless this is done already. */
  readonly open: Effect.Effect<void, TokenFailed>
  /** Signs a digest, or for RSA a DigestInfo. An elliptic curve gives r and s one after the other. */
  readonly sign: (mechanism: Mechanism, data: Uint8Array) => Effect.Effect<Uint8Array, TokenFailed>
  /** Returns why the token does not sign now. After a failure, this tries to open the token again, with growing waits. */
  readonly trouble: Effect.Effect<string | undefined>
}

/** The program of the module, which is beside this file, or beside the bundle. */
const program = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "./pkcs11Module.ts" : "./pkcs11Module.js", import.meta.url)
)

/**
 * The signatures that are under way at once. Each has a session, and one of the four threads that the runtime has for
 * such calls in the process of the module.
 */
const sessionsAtOnce = 4

type Said = Effect.Effect<TokenAnswer, TokenFailure>

/** A process with the module, and the questions that it has not answered. */
interface Link {
  readonly child: ChildProcess
  readonly waiting: Map<number, (said: Said) => void>
  isGone: boolean
  /** The timer that ends the process if it has no question for a while. */
  idle: NodeJS.Timeout | undefined
}

const failed = (detail: string): Effect.Effect<never, TokenFailure> => Effect.fail({ reason: "call", detail })

const startLink = (): Link => {
  const child = fork(program, [], {
    execArgv: [],
    serialization: "advanced",
    stdio: ["ignore", "ignore", "inherit", "ipc"]
  })
  const link: Link = { child, waiting: new Map(), isGone: false, idle: undefined }
  const end = (detail: string) => {
    link.isGone = true
    for (const resume of link.waiting.values()) resume(failed(detail))
  }
  child.on("message", (said: TokenAnswer) => link.waiting.get(said.id)?.(Effect.succeed(said)))
  child.on("error", (error) => end(`the process of the PKCS#11 module failed: ${error.message}`))
  child.on("exit", (code, signal) => end(`the process of the PKCS#11 module ended with ${signal ?? code}`))
  // The process must not keep this one alive. A question does, by its timer.
  child.unref()
  child.channel?.unref()
  return link
}

const kill = (link: Link): void => {
  clearTimeout(link.idle)
  link.isGone = true
  link.child.kill("SIGKILL")
}

/** Lets the process close its sessions and end by itself. */
const close = (link: Link): void => {
  clearTimeout(link.idle)
  link.isGone = true
  if (link.child.connected) link.child.disconnect()
}

let questions = 0

/** Asks the process of the module. If there is no answer within the limit, the process is killed. */
const ask = (
  link: Link,
  question: { readonly open: Opening } | {
    readonly sign: { readonly mechanism: Mechanism; readonly data: Uint8Array }
  },
  limitMillis: number
): Said =>
  Effect.callback((resume) => {
    if (link.isGone) return resume(failed("the process of the PKCS#11 module has ended"))
    const id = ++questions
    const done = (said: Said) => {
      clearTimeout(timer)
      link.waiting.delete(id)
      resume(said)
    }
    const timer = setTimeout(() => {
      kill(link)
      done(failed(`the token did not answer within ${limitMillis / 1000} s`))
    }, limitMillis)
    link.waiting.set(id, done)
    const sent: TokenQuestion = { id, ...question }
    link.child.send(sent, (error) => {
      if (error !== null) done(failed(`the process of the PKCS#11 module cannot be asked: ${error.message}`))
    })
  })

/** How long a call may take. To open a token includes the start of a process, and a smart card logs in slowly. */
export interface TokenLimits {
  readonly openMillis: number
  readonly signMillis: number
}

const usualLimits: TokenLimits = { openMillis: 30_000, signMillis: 10_000 }

const idleMillis = 600_000
const [firstWaitMillis, longestWaitMillis] = [1000, 60_000]

/**
 * Makes a token, which is opened when it is first needed. `judge` returns why the key of the token cannot be used, or
 * undefined if it can.
 */
export const makeToken = (
  settings: TokenSettings,
  judge: (key: TokenPublicKey) => string | undefined,
  limits = usualLimits
): Token => {
  const opening = Semaphore.makeUnsafe(1)
  const sessions = Semaphore.makeUnsafe(sessionsAtOnce)
  let current: Link | undefined
  let failure: { readonly error: TokenFailed; readonly until: number } | undefined
  let failures = 0
  /** A PIN that the token refused, and its file as it was then. */
  let refused: { readonly stamp: string; readonly pin: string; readonly error: TokenFailed } | undefined

  const fail = Effect.fnUntraced(function*(
    link: Link | undefined,
    { detail, reason }: TokenFailure
  ): Effect.fn.Return<never, TokenFailed> {
    const error = new TokenFailed({ detail, isFault: reason === "key" })
    // Signatures that fail together are one failure.
    if (link === undefined || link === current) {
      const wait = Math.min(longestWaitMillis, firstWaitMillis * 2 ** failures)
      failures++
      failure = { error, until: (yield* lifeMillis) + wait }
      current = undefined
    }
    // The other signatures under way may still succeed. The process ends when the last of them has.
    if (link !== undefined && !link.isGone && link.waiting.size === 0) close(link)
    return yield* error
  })

  const readPin = Effect.mapError(readSecretFile(settings.pin_file), (error): TokenFailure => ({
    reason: "call",
    detail: `the PIN file ${error.path} cannot be used: ${said(error)}`
  }))

  const openNow = Effect.gen(function*() {
    const stamp = yield* stampOf(settings.pin_file)
    const read = yield* Effect.result(readPin)
    if (read._tag === "Failure") return yield* fail(undefined, read.failure)
    const pin = read.success.text
    // The content counts too, because a link to a file stays the same when the file is replaced.
    if (refused?.stamp === stamp && refused.pin === pin) return yield* refused.error
    const link = startLink()
    const asked = ask(link, {
      open: {
        modulePath: settings.module_path,
        tokenLabel: settings.token_label,
        slotId: settings.slot_id,
        keyLabel: settings.key_label,
        keyId: settings.key_id,
        pin
      }
    }, limits.openMillis).pipe(Effect.result, Effect.onInterrupt(() => Effect.sync(() => kill(link))))
    const answered = yield* asked
    const judged = answered._tag === "Failure"
      ? answered.failure
      : "failure" in answered.success
      ? answered.success.failure
      : "key" in answered.success
      ? judge(answered.success.key)
      : "the module gave a signature instead of a key"
    if (judged === undefined) {
      current = link
      failure = undefined
      refused = undefined
      return link
    }
    close(link)
    const why = typeof judged === "string" ? { reason: "key" as const, detail: judged } : judged
    if (why.reason !== "pin") return yield* fail(undefined, why)
    const error = new TokenFailed({
      detail: `${why.detail}; the PIN is not tried again until ${settings.pin_file} is written again`,
      isFault: false
    })
    refused = { stamp, pin, error }
    return yield* error
  })

  const open = opening.withPermits(1)(Effect.gen(function*() {
    if (current !== undefined && !current.isGone) return current
    if (failure !== undefined && (yield* lifeMillis) < failure.until) return yield* failure.error
    return yield* openNow
  }))

  const rest = (link: Link) => {
    clearTimeout(link.idle)
    if (link.waiting.size > 0) return
    if (link !== current) return close(link)
    link.idle = setTimeout(() => {
      if (link.waiting.size > 0) return
      close(link)
      if (link === current) current = undefined
    }, idleMillis)
    link.idle.unref()
  }

  const signOver = Effect.fnUntraced(function*(link: Link, mechanism: Mechanism, data: Uint8Array) {
    const answered = yield* Effect.result(ask(link, { sign: { mechanism, data } }, limits.signMillis))
    if (answered._tag === "Failure") return yield* fail(link, answered.failure)
    if ("failure" in answered.success) return yield* fail(link, answered.success.failure)
    if (!("signature" in answered.success)) {
      return yield* fail(link, { reason: "call", detail: "the module gave a key instead of a signature" })
    }
    failures = 0
    rest(link)
    return answered.success.signature
  })

  return {
    open: Effect.asVoid(open),
    sign: (mechanism, data) =>
      // An interruption would leave the session in use, so it waits, at most until the limit.
      sessions.withPermits(1)(Effect.flatMap(open, (link) => Effect.uninterruptible(signOver(link, mechanism, data)))),
    trouble: Effect.suspend(() =>
      failure === undefined && refused === undefined
        ? Effect.succeed(undefined)
        : Effect.match(open, { onFailure: ({ detail }) => detail, onSuccess: () => undefined })
    )
  }
}
