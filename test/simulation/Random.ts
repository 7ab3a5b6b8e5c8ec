import { createHash } from "node:crypto"

/** Reproducible random values. The same seed and stream give the same values, whatever other streams are used for. */
export class Random {
  readonly #state: Uint32Array

  constructor(seed: string, stream: string) {
    const digest = createHash("sha256").update(`${seed}/${stream}`).digest()
    this.#state = Uint32Array.from([0, 4, 8, 12], (at) => digest.readUInt32LE(at) | 1)
  }

  // xoshiro128**
  #next(): number {
    const s = this.#state
    const [s0 = 0, s1 = 0, s2 = 0, s3 = 0] = s
    const rotated = Math.imul(s1, 5)
    const result = Math.imul((rotated << 7) | (rotated >>> 25), 9) >>> 0
    s[2] = s2 ^ s0
    s[3] = s3 ^ s1
    s[1] = s1 ^ (s[2] ?? 0)
    s[0] = s0 ^ (s[3] ?? 0)
    s[2] = (s[2] ?? 0) ^ (s1 << 9)
    const last = s[3] ?? 0
    s[3] = (last << 11) | (last >>> 21)
    return result
  }

  /** Returns a random number, uniform in [0, 1). */
  fraction(): number {
    return this.#next() / 2 ** 32
  }

  /** Returns a whole number from 0 up to but not including `limit`. */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit)
  }

  /** Returns a whole number within bounds, both inclusive. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  /** Returns true with this probability. */
  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  /** Returns a random member of a list. */
  pick<A>(from: readonly [A, ...ReadonlyArray<A>] | ReadonlyArray<A>): A {
    const one = from[this.below(from.length)]
    if (one === undefined) throw new Error("there is nothing to pick from")
    return one
  }
}
