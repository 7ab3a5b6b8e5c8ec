import * as Cache from "effect/Cache"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { splitPem } from "../../crypto/asn1/Pem.ts"
import { isRevocationList } from "../../crypto/x509/Crl.ts"
import { emit } from "../../domain/words/Log.ts"
import { sectionText } from "../../engine/config/Section.ts"
import { Scripts } from "../../engine/host/Scripts.ts"
import type { FairSemaphore } from "../../engine/net/FairSemaphore.ts"
import { currentPeer, makeFairSemaphore } from "../../engine/net/FairSemaphore.ts"
import { currentMillis } from "../../engine/Time.ts"
import type { SigningProfile } from "./Backends.ts"
import type { CustomSettings, Hook } from "./SignerScript.ts"
import { ask, HookFailed } from "./SignerScript.ts"
import type { SuggestedWindow } from "./SuggestedWindow.ts"
import { isWebUrl } from "./SuggestedWindow.ts"

/** How many hooks run at the same time in one process, for all profiles together. */
const maxRunning = 4
/** For how long an answer or a failure is used again, so that not every request starts a program. */
const answerLife = "1 minute"
const failureLife = "5 seconds"
const maxCrlBytes = 16 * 1_048_576
const maxWindowBytes = 8192
const windowsKept = 1024

/** Reads the output of a hook: empty, or `<start> <end>` with an optional URL. */
const readWindow = (printed: string): Result.Result<SuggestedWindow | undefined, string> => {
  const words = printed.split(/\s+/).filter((word) => word !== "")
  if (words.length === 0) return Result.succeed(undefined)
  const [start = "", end = "", url] = words
  if (words.length < 2 || words.length > 3) return Result.fail(`the script printed ${words.length} words`)
  if (![start, end].every((word) => /^-?\d{1,11}$/.test(word))) return Result.fail("the script printed no timestamps")
  const window = { start: Number(start), end: Number(end) }
  if (window.end <= window.start) return Result.fail("the script printed a window that ends before it begins")
  return Result.succeed({ ...window, explanationUrl: url !== undefined && isWebUrl(url) ? url : undefined })
}

/**
 * Returns the list that a program printed. It may be DER, or PEM as OpenSSL prints it by default. Returns undefined if
 * the output is neither.
 */
const listIn = (printed: Buffer): Uint8Array | undefined => {
  if (isRevocationList(printed)) return printed
  const blocks = Result.getOrElse(splitPem(printed.toString("latin1").trim(), "before"), () => [])
  const [list, ...others] = blocks.filter(({ label }) => label === "X509 CRL")
  return list !== undefined && others.length === 0 && isRevocationList(list.der) ? list.der : undefined
}

/** A leaf, used as the key of a cache. */
class Leaf extends Data.Class<{ readonly base64: string }> {}

const hooksOf = (scripts: Scripts["Service"], settings: CustomSettings, turns: FairSemaphore) =>
  Effect.gen(function*() {
    const timeToLive = <A, E>(exit: Exit.Exit<A, E>) => Exit.isSuccess(exit) ? answerLife : failureLife
    const crls = yield* Cache.makeWith(
      (name: "crl") =>
        Effect.gen(function*() {
          const begun = yield* currentMillis
          const printed = yield* ask(scripts, settings, { name, input: {}, maxBytes: maxCrlBytes })
          if (printed.length === 0) return undefined
          const list = listIn(printed)
          if (list !== undefined) return list
          const error = "the script printed no revocation list, neither in DER nor in PEM"
          const elapsed_ms = (yield* currentMillis) - begun
          yield* emit("signer_script_failed", { hook: name, exit_code: 0, elapsed_ms, error, output: undefined })
          return yield* new HookFailed({ exit: 0, detail: error })
        }),
      { capacity: 1, timeToLive }
    )
    const windows = yield* Cache.makeWith(
      ({ base64 }: Leaf) =>
        Effect.flatMap(
          ask(scripts, settings, {
            name: "renewal_info",
            input: { cert_der_base64: base64 },
            maxBytes: maxWindowBytes
          }),
          (printed) =>
            Effect.mapError(
              Effect.fromResult(readWindow(printed.toString("utf8"))),
              (detail) => new HookFailed({ exit: 0, detail })
            )
        ),
      { capacity: windowsKept, timeToLive }
    )
    const scope = yield* Effect.scope
    const withoutTurn = (hook: Hook["name"]) => {
      const error = `the script did not begin within ${settings.timeout_ms} ms, because other scripts ran`
      const fields = { hook, exit_code: undefined, elapsed_ms: settings.timeout_ms, error, output: undefined }
      return Effect.andThen(
        emit("signer_script_timeout", fields),
        new HookFailed({ exit: undefined, detail: error, isTimedOut: true })
      )
    }
    /**
     * Returns the answer that is kept, or that a running program will give. If there is none, waits for a turn in the
     * share of the fiber's peer, and then runs the program. The wait is not part of the run that others join. Otherwise
     * they would wait in the share of the peer that asked first, and would get its failure if it had no turn in time.
     */
    const answerOf = <Key, A>(
      cache: Cache.Cache<Key, A, HookFailed>,
      key: Key,
      hook: Hook["name"]
    ): Effect.Effect<A, HookFailed> =>
      Effect.flatMap(Cache.getOption(cache, key), (kept) => {
        if (Option.isSome(kept)) return Effect.succeed(kept.value)
        let hasTurn = false
        // If the program of another peer has begun in the meantime, the turn is given back before its answer comes.
        const begin = Effect.suspend(() => {
          hasTurn = true
          return Effect.flatMap(
            Cache.has(cache, key),
            (isKnown) => isKnown ? Effect.succeed(answerOf(cache, key, hook)) : Effect.exit(Cache.get(cache, key))
          )
        })
        const turn = turns.takeWithin(settings.timeout_ms, begin, Effect.succeed(withoutTurn(hook)))
        // The program runs in a fiber of its own, with its turn. So it goes on if its client leaves, and others who wait
        // for its answer get it. But a client that leaves before its turn leaves the queue.
        return Effect.flatMap(Effect.forkIn(turn, scope), (fiber) =>
          Effect.flatten(
            Effect.onInterrupt(Fiber.join(fiber), () => Effect.sync(() => hasTurn || fiber.interruptUnsafe()))
          ))
      })
    // All clients wait for the same list, so it belongs to no peer's share.
    const crl = Effect.provideService(answerOf(crls, "crl", "crl"), currentPeer, undefined)
    return {
      crl: settings.supports_crl ? crl : Effect.succeed(undefined),
      window: (leaf: Uint8Array) =>
        settings.supports_renewal_info
          ? answerOf(windows, new Leaf({ base64: Buffer.from(leaf).toString("base64") }), "renewal_info")
          : Effect.succeed(undefined)
    }
  })

/**
 * Runs the hooks of the operator's signer whose answers clients wait for (the hooks crl and renewal_info of
 * `signer.custom`). They run in the process that answers the client. Equal requests at the same time share one run.
 */
export class ReadHooks extends Context.Service<ReadHooks, {
  /** Returns the DER of the revocation list, or `undefined` if the signer has no list. */
  readonly crl: (profile: string) => Effect.Effect<Uint8Array | undefined, HookFailed>
  /**
   * Returns the window that the signer suggests for a leaf, which is given as DER. Returns `undefined` if the signer
   * suggests nothing.
   */
  readonly window: (profile: string, leaf: Uint8Array) => Effect.Effect<SuggestedWindow | undefined, HookFailed>
}>()("acme/services/signing/ReadHooks") {
  /** Provides the hooks of those profiles whose signer is a program. Other profiles have no hooks. */
  static readonly layer = (profiles: ReadonlyArray<SigningProfile>): Layer.Layer<ReadHooks, never, Scripts> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const scripts = yield* Scripts
        const turns = makeFairSemaphore(maxRunning)
        const bySection = new Map<string, Effect.Success<ReturnType<typeof hooksOf>>>()
        const byProfile = new Map<string, Effect.Success<ReturnType<typeof hooksOf>>>()
        for (const { name, signer } of profiles) {
          if (signer.backend !== "custom") continue
          const section = sectionText(signer)
          const hooks = bySection.get(section) ?? (yield* hooksOf(scripts, signer.custom, turns))
          bySection.set(section, hooks)
          byProfile.set(name, hooks)
        }
        return {
          crl: (profile) => byProfile.get(profile)?.crl ?? Effect.succeed(undefined),
          window: (profile, leaf) => byProfile.get(profile)?.window(leaf) ?? Effect.succeed(undefined)
        }
      })
    )
}
