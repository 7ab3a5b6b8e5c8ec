import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { randomFillSync } from "node:crypto"
import { sha256Octets } from "./Digest.ts"

/** The number of characters in a token of {@link Entropy}. A token is 32 octets in base64url without padding. */
export const tokenLength = 43

/** The source of unpredictable values. Tests replace it with a counter. */
export class Entropy extends Context.Service<Entropy, {
  /** Returns `size` random bytes, in memory that belongs to the caller. */
  readonly bytes: (size: number) => Effect.Effect<Uint8Array>
  /** A UUID of version 7 (RFC 9562). Within this process, each UUID is greater than the one before. */
  readonly uuid: Effect.Effect<string>
  /** Returns a UUID like `uuid`, but without an Effect, for code that already has the time in epoch milliseconds. */
  readonly uuidAt: (millis: number) => string
  /** 32 random bytes in base64url without padding ({@link tokenLength} characters), for nonces and tokens. */
  readonly token: Effect.Effect<string>
  /** Returns several tokens at once. */
  readonly tokens: (count: number) => Effect.Effect<ReadonlyArray<string>>
  /** A random number in [0, 1), uniformly distributed, for jitter. */
  readonly fraction: Effect.Effect<number>
}>()("acme/crypto/Entropy") {
  static readonly layer: Layer.Layer<Entropy> = Layer.sync(this, () => make(pooled()))

  /** A reproducible source: the SHA-256 of the seed and a counter. */
  static readonly layerSeeded = (seed: string): Layer.Layer<Entropy> =>
    Layer.sync(this, () => {
      let counter = 0
      return make((size) => {
        const blocks: Array<Buffer> = []
        for (let length = 0; length < size; length += 32) {
          blocks.push(sha256Octets(`${seed}/${counter++}`))
        }
        return Buffer.concat(blocks).subarray(0, size)
      })
    })
}

type Source = (size: number) => Buffer

const poolSize = 4096

// Random bytes are taken from a pool, because a system call for every 16 bytes would cost forty times as much.
const pooled = (): Source => {
  const pool = Buffer.alloc(poolSize)
  let used = poolSize
  return (size) => {
    if (size > poolSize) return randomFillSync(Buffer.alloc(size))
    if (used + size > poolSize) {
      randomFillSync(pool)
      used = 0
    }
    used += size
    return Buffer.from(pool.subarray(used - size, used))
  }
}

const make = (source: Source): Entropy["Service"] => {
  let lastMillis = 0
  let sequence = 0
  const uuidAt = (clockMillis: number): string => {
    const random = source(10)
    if (clockMillis > lastMillis) {
      lastMillis = clockMillis
      sequence = random.readUInt16BE(0) & 0x7ff // the upper half stays free for increments within the millisecond
    } else if (++sequence > 0xfff) {
      lastMillis++
      sequence = 0
    }
    random[2] = ((random[2] ?? 0) & 0x3f) | 0x80
    const time = lastMillis.toString(16).padStart(12, "0")
    const tail = random.toString("hex", 2)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${sequence.toString(16).padStart(3, "0")}-${tail.slice(0, 4)}-${
      tail.slice(4)
    }`
  }
  const token = () => source(32).toString("base64url")
  return {
    bytes: (size) => Effect.sync(() => source(size)),
    // This avoids `Clock.currentTimeMillis`, which costs five operations, because every request and every row needs an
    // id.
    uuid: Effect.withFiber((fiber) => Effect.succeed(uuidAt(fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()))),
    uuidAt,
    token: Effect.sync(token),
    tokens: (count) => Effect.sync(() => Array.from({ length: count }, token)),
    fraction: Effect.sync(() => source(4).readUInt32BE(0) / 2 ** 32)
  }
}
