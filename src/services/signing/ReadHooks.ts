import * as Cache from "effect/Cache"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { splitPem } from "../../crypto/asn1/Pem.ts"
import { isRevocationList } from "../../crypto/x509/Crl.ts"
import { emit } from "../../domain/words/Log.ts"
import { sectionText } from "../../engine/config/Section.ts"
import { Scripts } from "../../engine/host/Scripts.ts"
import type { FairSemaphore } from "../../engine/net/FairSemaphore.ts"
import { makeFairSemaphore } from "../../engine/net/FairSemaphore.ts"
import { currentMillis } from "../../engine/Time.ts"
import type { SigningProfile } from "./Backends.ts"
import type { CustomSettings } from "./SignerScript.ts"
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
          const printed = yield* ask(scripts, settings, { name, input: {}, maxBytes: maxCrlBytes, turns })
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
            maxBytes: maxWindowBytes,
            turns
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
    // Runs the program in a fiber of its own. Otherwise an interruption of the first fiber that asked would make the
    // cache interrupt all fibers that wait for the answer.
    const apart = <A, E>(asked: Effect.Effect<A, E>) => Effect.flatMap(Effect.forkIn(asked, scope), Fiber.join)
    return {
      crl: settings.supports_crl ? apart(Cache.get(crls, "crl")) : Effect.succeed(undefined),
      window: (leaf: Uint8Array) =>
        settings.supports_renewal_info
          ? apart(Cache.get(windows, new Leaf({ base64: Buffer.from(leaf).toString("base64") })))
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
