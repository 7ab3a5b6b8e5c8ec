import { describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { createPublicKey, randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "vitest"
import { readCaKey } from "../../../src/crypto/x509/CaMaterial.ts"
import { encryptionOctets, encryptKey, manyRounds } from "../../../src/crypto/x509/EncryptedKey.ts"
import { ecKey, openssl, rsaKey, spkiOf, withDirectory } from "../Pki.ts"

describe("encryptKey", () => {
  it.effect("makes PBES2 that OpenSSL and this service open with the passphrase, and with no other", () =>
    Effect.gen(function*() {
      for (const key of [ecKey, rsaKey]) {
        const encrypted = yield* encryptKey(key, "correct horsé", randomBytes(encryptionOctets), manyRounds)
        assert.deepStrictEqual(
          Buffer.from(Result.getOrThrow(readCaKey(encrypted, "correct horsé")).spki),
          spkiOf(key)
        )
        assert.isTrue(Result.isFailure(readCaKey(encrypted, "correct horse")))
        withDirectory((directory) => {
          const [file, pass] = [join(directory, "key"), join(directory, "pass")]
          writeFileSync(file, encrypted)
          writeFileSync(pass, "correct horsé\n")
          const opened = openssl(["pkey", "-in", file, "-passin", `file:${pass}`, "-pubout"])
          assert.isTrue(createPublicKey(opened).equals(createPublicKey(key)))
          const parsed = openssl(["asn1parse", "-in", file]).toString()
          for (const part of ["PBES2", "PBKDF2", "hmacWithSHA256", "aes-256-cbc", ":0927C0"]) {
            assert.include(parsed, part)
          }
        })
      }
    }))
})
