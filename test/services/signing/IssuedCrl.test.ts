import { Effect } from "effect"
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import { encodeEntries, makeCrlSigner } from "../../../src/crypto/x509/Crl.ts"
import { issuedPathOf, make } from "../../../src/services/signing/IssuedCrl.ts"
import { DAY, makeCa, NOW, type TestCa } from "../../crypto/Ca.ts"
import { pem } from "../../crypto/Pki.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { useTests } from "../../support/UseTests.ts"

const { test } = useTests({ first: () => Effect.sync(freshDirectory) })

let own: TestCa
let other: TestCa
beforeAll(async () => {
  own = await makeCa("ecdsa-p256")
  other = await makeCa("ecdsa-p256")
})

const listOf = ({ key, material }: TestCa, number = 1) =>
  makeCrlSigner(material, key)({
    number,
    thisUpdate: NOW,
    nextUpdate: NOW + 7 * DAY,
    entries: [encodeEntries([{ serial: "0a", revokedAt: NOW, reason: 1 }])]
  })

const recordIn = (directory: string) => make(join(directory, "ca.crl"), own.material.publicKey)

describe("the record of the list that a CA issued last", () => {
  test("is written completely next to crl_path, can be read by everybody, and is read back", (directory) =>
    Effect.gen(function*() {
      const record = recordIn(directory)
      assert.strictEqual(record.path, join(directory, "ca.crl.issued"))
      assert.isUndefined(yield* record.read)
      assert.isUndefined(yield* record.trouble)
      for (const number of [1, 2]) {
        const list = Buffer.from(yield* listOf(own, number))
        yield* Effect.provide(record.write(list), Entropy.layer)
        assert.deepStrictEqual(yield* record.read, list)
        assert.deepInclude(yield* record.verified(list), { number })
        assert.isUndefined(yield* record.trouble)
      }
      assert.strictEqual(statSync(record.path).mode & 0o777, 0o644)
      assert.deepStrictEqual(readdirSync(directory), ["ca.crl.issued"])
    }))

  test("is neither used nor replaced if it is anything but a list of this CA", (directory) =>
    Effect.gen(function*() {
      const record = recordIn(directory)
      const { path } = record
      const list = Buffer.from(yield* listOf(own))
      const elsewhere = join(directory, "elsewhere")
      const spoilt: ReadonlyArray<readonly [says: RegExp, spoil: () => void]> = [
        [/it is empty/, () => writeFileSync(path, "")],
        [/no revocation list in DER/, () => writeFileSync(path, list.subarray(0, 100))],
        [/no revocation list in DER/, () => writeFileSync(path, pem("X509 CRL", list))],
        [/no revocation list in DER/, () => writeFileSync(path, own.material.certificates[0] ?? "")],
        [/another CA has signed it/, () => writeFileSync(path, Effect.runSync(listOf(other)))],
        [/not a regular file/, () => mkdirSync(path)],
        [/leads to no file/, () => symlinkSync(elsewhere, path)],
        [/not a regular file/, () => symlinkSync(path, path)],
        [/not a regular file/, () => symlinkSync("/dev/null", path)]
      ]
      for (const [says, spoil] of spoilt) {
        spoil()
        const trouble = yield* record.trouble
        assert.match(trouble ?? "", says)
        assert.include(trouble ?? "", path)
        assert.include(trouble ?? "", "The CA revokes nothing and signs no list")
        if (lstatSync(path).isDirectory()) rmdirSync(path)
        else rmSync(path)
        assert.isUndefined(yield* record.trouble, "it is gone")
      }
      writeFileSync(elsewhere, list)
      symlinkSync(elsewhere, path)
      assert.isUndefined(yield* record.trouble)
      assert.deepStrictEqual(yield* record.read, list)
    }))

  test("leaves no file if it cannot be written, and the error names the path", (directory) =>
    Effect.gen(function*() {
      const record = make(join(directory, "absent", "ca.crl"), own.material.publicKey)
      const failure = yield* Effect.flip(Effect.provide(record.write(yield* listOf(own)), Entropy.layer))
      assert.match(failure.message, /recorded before it is published, and .*absent\/ca\.crl\.issued: no such file/)
      const taken = join(directory, "taken.crl")
      mkdirSync(issuedPathOf(taken))
      const refused = make(taken, own.material.publicKey).write(yield* listOf(own))
      assert.match((yield* Effect.flip(Effect.provide(refused, Entropy.layer))).message, /not a regular file/)
      assert.deepStrictEqual(readdirSync(directory), ["taken.crl.issued"])
      assert.throws(() => readFileSync(issuedPathOf(taken)))
    }))
})
