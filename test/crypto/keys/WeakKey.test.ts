import { describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { KeyPairKeyObjectResult } from "node:crypto"
import { checkPrimeSync, generateKeyPairSync, generatePrimeSync, randomBytes } from "node:crypto"
import { assert } from "vitest"
import { keyWeakness } from "../../../src/crypto/keys/KeyWeakness.ts"
import { readSubjectKey, rsaWeakness } from "../../../src/crypto/keys/WeakKey.ts"
import { parseCsr } from "../../../src/crypto/x509/Csr.ts"
import { algorithms, bitString, csrOfPrimes, hexed, rsaKey, rsaSpki, seeded, seq, spkiOf } from "../Pki.ts"

const octets = (n: bigint): Uint8Array => {
  const hex = n.toString(16)
  return hexed(hex.length % 2 === 0 ? hex : `0${hex}`)
}

const prime = (bits: number): bigint => generatePrimeSync(bits, { bigint: true })

const nextPrime = (from: bigint): bigint => {
  let candidate = from | 1n
  while (!checkPrimeSync(candidate)) candidate += 2n
  return candidate
}

/** Returns a number whose two highest bits are set, so that two such primes make a modulus of full length. */
const high = (bits: number): bigint =>
  (3n << BigInt(bits - 2)) | (BigInt(`0x${randomBytes(bits / 8).toString("hex")}`) >> 2n)

// For 2048-bit keys, the flawed library uses the product of the first 126 primes. The check looks at the first 39.
const primorial = (() => {
  let product = 1n
  let found = 0
  for (let p = 2n; found < 126; p++) {
    let composite = false
    for (let d = 2n; d * d <= p; d++) composite ||= p % d === 0n
    if (composite) continue
    product *= p
    found++
  }
  return product
})()

/** Returns a prime as the flawed library generated it: k * M + 65537^a mod M. */
const rocaPrime = (random: () => number): bigint => {
  let residue = 1n
  for (let i = Math.floor(random() * 10000) + 1; i > 0; i--) residue = residue * 65537n % primorial
  const k = (3n << 1022n) / primorial
  let candidate = (k + BigInt(Math.floor(random() * 2 ** 30))) * primorial + residue
  while (!checkPrimeSync(candidate)) candidate += primorial
  return candidate
}

/** Returns the fault that is found in the key of a request with a valid signature. */
const weakness = (csr: Uint8Array): string => keyWeakness(Result.getOrThrow(parseCsr(csr)).spki) ?? "none"

describe("rsaWeakness", () => {
  it("finds the ROCA fingerprint, even if the signature is valid", () => {
    const random = seeded(7)
    const [p, q] = [rocaPrime(random), rocaPrime(random)]
    assert.include(rsaWeakness(octets(p * q)) ?? "", "ROCA")
    assert.include(weakness(csrOfPrimes(p, q)), "ROCA")
  })

  it("finds primes that are too close", () => {
    const p = high(1024)
    const first = nextPrime(p)
    const second = nextPrime(first + 2n)
    assert.include(rsaWeakness(octets(first * second)) ?? "", "too close")
    assert.include(rsaWeakness(octets(first * first)) ?? "", "too close")
    assert.include(weakness(csrOfPrimes(first, second)), "too close")
  })

  it("tries exactly a hundred Fermat rounds", () => {
    // If n = a^2 - b^2 and p, q = a -+ b, the first round tries ceil(sqrt n). With this b, round number `rounds` tries
    // a.
    const a = 1n << 1024n
    for (const [rounds, found] of [[0n, true], [1n, true], [100n, true], [101n, false], [1000n, false]] as const) {
      const b = root(2n * a * rounds)
      const n = a * a - b * b
      assert.strictEqual(isCloseOrSmall(n, a, b), found, `${rounds} rounds`)
    }
  })

  it("finds factors up to the last prime below 2^16", () => {
    for (const small of [2n, 3n, 5n, 167n, 251n, 257n, 1009n, 32749n, 65519n, 65521n]) {
      assert.include(rsaWeakness(octets(small * high(2048))) ?? "", "below 65536", String(small))
    }
    // 65537 is the first prime that is permitted as a factor of a modulus.
    assert.isUndefined(rsaWeakness(octets(65537n * prime(1024) * prime(1016))))
    assert.include(weakness(csrOfPrimes(65521n, prime(1020), prime(1020))), "below 65536")
  })

  it("finds no fault in strong keys", () => {
    const keys: ReadonlyArray<KeyPairKeyObjectResult> = [2048, 2048, 2056, 3072].map((modulusLength) =>
      generateKeyPairSync("rsa", { modulusLength })
    )
    for (const { publicKey } of keys) {
      const { n = "" } = publicKey.export({ format: "jwk" })
      assert.isUndefined(rsaWeakness(Buffer.from(n, "base64url")))
    }
  })
})

describe("Ed25519 keys", () => {
  const spki = (key: Uint8Array) => seq(algorithms.ed25519, bitString(key))
  const p = 2n ** 255n - 19n
  const encoded = (y: bigint, sign = 0n) =>
    Buffer.from(hexed((y | (sign << 255n)).toString(16).padStart(64, "0")).toReversed())

  // Whether forged signatures verify under these keys depends on the release of OpenSSL.
  it("are weak if they are of small order", () => {
    const identity = encoded(1n)
    const eighth = hexed("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
    const other = hexed("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
    for (const key of [encoded(0n), identity, encoded(p - 1n), eighth, other]) {
      assert.include(keyWeakness(spki(key)) ?? "", "small order")
      const negated = Buffer.from(key)
      negated[31] = (negated[31] ?? 0) | 0x80
      assert.include(keyWeakness(spki(negated)) ?? "", "small order")
    }
  })

  it("are weak if their encoding is not canonical", () => {
    for (const y of [p, p + 1n, 2n ** 255n - 1n]) {
      assert.include(keyWeakness(spki(encoded(y))) ?? "", "canonical")
      assert.include(keyWeakness(spki(encoded(y, 1n))) ?? "", "canonical")
    }
  })

  it("are accepted otherwise, like keys of other families", () => {
    for (const { privateKey } of [generateKeyPairSync("ed25519"), generateKeyPairSync("ec", { namedCurve: "P-384" })]) {
      assert.isUndefined(keyWeakness(spkiOf(privateKey)))
    }
  })
})

const root = (n: bigint): bigint => {
  if (n === 0n) return 0n
  let x = 1n << BigInt(n.toString(2).length)
  for (;;) {
    const y = (x + n / x) / 2n
    if (y >= x) return x
    x = y
  }
}

/**
 * Fermat's method works even if a - b and a + b are not prime. However, a small factor would be found first, so neither
 * number may have a small factor.
 */
const isCloseOrSmall = (n: bigint, a: bigint, b: bigint): boolean => {
  for (let shift = 0n; shift < 2000n; shift++) {
    const [p, q] = [a + shift - b, a + shift + b]
    const weakness = rsaWeakness(octets(p * q))
    if (weakness?.includes("below") !== true) return weakness !== undefined
  }
  return assert.fail(`no candidate near ${n}`)
}

describe("readSubjectKey", () => {
  const refused = (spki: Uint8Array): string => {
    const read = readSubjectKey(spki)
    return Result.isFailure(read) ? read.failure.reason : "accepted"
  }
  const modulus = (bits: number): bigint => (1n << BigInt(bits - 1)) | 0xabcdef1n

  it("accepts RSA keys of exactly 2048 to 8192 bits", () => {
    assert.strictEqual(refused(rsaSpki(modulus(2047), 65537n)), "key_size")
    assert.strictEqual(refused(rsaSpki(modulus(2048), 65537n)), "accepted")
    assert.strictEqual(refused(rsaSpki(modulus(8192), 65537n)), "accepted")
    assert.strictEqual(refused(rsaSpki(modulus(8193), 65537n)), "key_size")
    for (const e of [1n, 3n, 17n, 65535n, 65536n, 65538n, 2n ** 32n]) {
      assert.strictEqual(refused(rsaSpki(modulus(2048), e)), "exponent", String(e))
    }
    for (const e of [65537n, 65539n, 2n ** 24n + 1n, 2n ** 32n + 1n]) {
      assert.strictEqual(refused(rsaSpki(modulus(2048), e)), "accepted", String(e))
    }
  })

  it("accepts only one encoding of a key", () => {
    const spki = spkiOf(rsaKey)
    assert.strictEqual(refused(spki), "accepted")
    assert.strictEqual(refused(Buffer.concat([spki, Buffer.from([0])])), "undecodable")
    const noNull = Buffer.from(
      spki.toString("hex").replace("300d06092a864886f70d0101010500", "300b06092a864886f70d010101"),
      "hex"
    )
    assert.strictEqual(refused(noNull), "undecodable")
  })
})
