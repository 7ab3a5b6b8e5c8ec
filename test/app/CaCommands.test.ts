import { Effect } from "effect"
import { createPublicKey, generateKeyPairSync, X509Certificate } from "node:crypto"
import { existsSync, readdirSync, readFileSync, rmSync, statSync, unlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { generateCa } from "../../src/crypto/x509/CaCertificate.ts"
import { newSerial } from "../crypto/Ca.ts"
import { csrOf, der, dns, ecKey, ext, opensslCsr, pem, rsaKey, seq } from "../crypto/Pki.ts"
import { newEcKey } from "../support/Keys.ts"
import { daySeconds, foreignCa, keyPem, madeAt } from "../support/LocalCa.ts"
import type { Around, Place } from "../support/RunCommand.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { useTests } from "../support/UseTests.ts"

/* The commands of `ca`, run in this process. `e2e/ceremony` runs them as programs. */

const { test } = useTests({ startsAt: madeAt })
const passphrase = "correct horse battery"
const passing = ["--passphrase-file", "pass"]

const file = ({ directory }: Place, name: string): string => join(directory, name)
const textOf = (place: Place, name: string): string => readFileSync(file(place, name), "utf8")
const listed = ({ directory }: Place): ReadonlyArray<string> => readdirSync(directory).sort()

const newPlace = (config?: (directory: string) => string): Place => {
  const place = freshPlace(config)
  writeFileSync(file(place, "pass"), `${passphrase}\n`, { mode: 0o600 })
  return place
}

const run = (place: Place, words: ReadonlyArray<string>, around?: Around) =>
  Effect.tap(place.run(["ca", ...words], around), ({ err, out }) =>
    Effect.sync(() => {
      for (const said of [out, err]) for (const secret of [passphrase, "PRIVATE KEY-"]) assert.notInclude(said, secret)
    }))

const succeeds = (place: Place, words: ReadonlyArray<string>, around?: Around) =>
  Effect.map(run(place, words, around), ({ code, err, out }) => {
    assert.strictEqual(code, 0, err)
    return out
  })

/** Runs a command that must be refused, and must leave the files as they were. */
const refuses = (place: Place, words: ReadonlyArray<string>, sentence: string | RegExp, code = 3, around?: Around) =>
  Effect.gen(function*() {
    const before = listed(place)
    const ended = yield* run(place, words, around)
    assert.strictEqual(ended.code, code, ended.err)
    if (typeof sentence === "string") assert.include(ended.err, sentence)
    else assert.match(ended.err, sentence)
    assert.deepStrictEqual(listed(place), before)
  })

const init = (place: Place, ...more: ReadonlyArray<string>) =>
  succeeds(place, ["init", "--root", "r", ...passing, ...more])

/** A place with a request and its key, but without an answer. */
const requested = Effect.gen(function*() {
  const place = newPlace()
  yield* succeeds(place, ["csr", "--out", "issuing.csr"])
  return place
})

/** A machine of a root. */
const rootPlace = (...more: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const place = newPlace(undefined)
    unlinkSync(file(place, "config.toml"))
    yield* init(place, "--root-only", "--root-name", "Example Root", ...more)
    return place
  })

const sign = ["sign", "issuing.csr", "--root", "r", ...passing, "--yes"]

/** Writes a request for a root, by default a correct one. */
const writeRequest = (place: Place, content: string | Uint8Array = opensslCsr(newEcKey(), ["-subj", "/CN=A CA"])) =>
  writeFileSync(file(place, "issuing.csr"), content)

describe("ca init", () => {
  test("makes a root whose key is encrypted, and an issuing CA that the configuration names", () =>
    Effect.gen(function*() {
      const place = newPlace((at) =>
        `[profiles.web.signer.local_ca]\ncert_path = "${at}/web.pem"\nkey_path = "${at}/web.key"\nkey_type = "ecdsa-p384"\n` +
        `[profiles.other.signer.local_ca]\ncert_path = "o.pem"\nkey_path = "o.key"\ncrl_path = "o.crl"\n`
      )
      const permitted = ["--permit", "Corp.Example.", "--permit", "corp.example"]
      const lifetimes = ["--root-days", "400", "--days", "30"]
      const words = ["init", "--profile", "web", "--root", "r/", ...passing, ...permitted, ...lifetimes, "--json"]
      const said = yield* succeeds(place, words)
      const { issuing, root, transcript } = JSON.parse(said) as Record<string, Record<string, unknown>>
      assert.deepInclude(issuing, {
        keyType: "ecdsa-p384",
        notBefore: "2025-12-31T23:00:00Z",
        notAfter: "2026-01-31T00:00:00Z",
        pathLength: 0,
        permitted: ["corp.example"],
        certPath: file(place, "web.pem"),
        keyPath: file(place, "web.key")
      })
      assert.deepInclude(root, { subject: "CN=ACME Service Local CA Root", notAfter: "2027-02-05T00:00:00Z" })
      assert.notProperty(root, "pathLength")
      assert.include(textOf(place, "r/root.key"), "BEGIN ENCRYPTED PRIVATE KEY")
      assert.strictEqual(statSync(file(place, "r/root.key")).mode & 0o777, 0o600)
      assert.strictEqual(statSync(file(place, "r")).mode & 0o777, 0o700)
      assert.strictEqual(String(transcript), file(place, "r/transcript.txt"))
      assert.match(textOf(place, "r/transcript.txt"), /^ {2}for profile +web$/m)
      assert.include(textOf(place, "web.pem"), textOf(place, "r/root.pem"))
      yield* refuses(place, ["test-sign"], "profile is needed, because there are several profiles: other, web.", 2)
      yield* succeeds(place, ["test-sign", "web"])
      yield* refuses(place, ["test-sign", "other"], "neither")
    }))

  test("asks for the passphrase twice, and refuses one that is short, empty or differs", () =>
    Effect.gen(function*() {
      const place = newPlace()
      const typing = (...hidden: ReadonlyArray<string>): Around => ({ hidden })
      const words = ["init", "--root", "r"]
      yield* refuses(place, words, "The two passphrases differ", 3, typing("long enough", "long enoogh"))
      yield* refuses(place, words, "The passphrase has fewer than 8 characters.", 3, typing("short", "short"))
      yield* refuses(place, words, "The passphrase is empty.", 3, typing("  ", "  "))
      writeFileSync(file(place, "lines"), "first line\nsecond line\n", { mode: 0o600 })
      yield* refuses(place, [...words, "--passphrase-file", "lines"], "has more than one line")
      yield* refuses(
        place,
        [...words, "--passphrase-file", "none"],
        /--passphrase-file: .*none cannot be used: no such file/
      )
      yield* succeeds(place, words, typing(passphrase, passphrase))
      // It is the passphrase that was typed.
      writeRequest(place)
      yield* succeeds(place, sign)
    }))

  test("warns about a passphrase that others may read", () =>
    Effect.gen(function*() {
      const place = newPlace()
      writeFileSync(file(place, "open"), passphrase, { mode: 0o644 })
      const { code, err } = yield* run(place, ["init", "--root", "r", "--passphrase-file", "open"])
      assert.strictEqual(code, 0)
      assert.include(err, "Warning: others may read open.")
    }))

  test("overwrites nothing, and says how to go on with what a crash left", () =>
    Effect.gen(function*() {
      const place = newPlace()
      yield* init(place)
      const [key, certificate] = [textOf(place, "ca.key"), textOf(place, "ca.pem")]
      const again = ["init", "--root", "r", ...passing]
      yield* refuses(place, again, /ca\.pem exists already, and nothing that exists is overwritten/)
      unlinkSync(file(place, "ca.pem"))
      yield* refuses(place, again, /ca\.key exists without a certificate.*`acme-svc ca csr`.*`acme-svc ca import`/)
      // The copy in the folder of the root is the answer that a crash did not write.
      const [copy = ""] = readdirSync(file(place, "r")).filter((name) => name.startsWith("issued-"))
      yield* succeeds(place, ["import", join("r", copy)])
      assert.strictEqual(textOf(place, "ca.pem"), certificate)
      unlinkSync(file(place, "ca.key"))
      yield* refuses(place, again, /ca\.pem exists without its key .*ca\.key/)
      yield* refuses(place, ["csr"], /ca\.pem exists without its key .*ca\.key, so no other key is made/)
      unlinkSync(file(place, "ca.pem"))
      yield* refuses(place, again, /--root: .*root\.key exists already.*`acme-svc ca sign`/)
      unlinkSync(file(place, "r/root.key"))
      yield* refuses(place, again, /--root: .*root\.pem exists already/)
      assert.notStrictEqual(key, "")
    }))

  test("leaves nothing if one of the files cannot be written", () =>
    Effect.gen(function*() {
      const place = newPlace((at) => `[profiles.default.signer.local_ca]\ncert_path = "${at}/none/ca.pem"\n`)
      const ended = yield* run(place, ["init", "--root", "r", ...passing])
      assert.strictEqual(ended.code, 1)
      assert.match(ended.err, /none\/ca\.pem cannot be written: no such file or directory\. No CA was made\./)
      assert.deepStrictEqual(readdirSync(file(place, "r")), [])
      assert.isFalse(existsSync(file(place, "ca.key")))
      const inFile = newPlace()
      yield* refuses(inFile, ["init", "--root", "config.toml", ...passing], /config\.toml\S* cannot be used/)
    }))

  test("refuses wrong names, lifetimes, profiles and combinations", () =>
    Effect.gen(function*() {
      const place = newPlace(() =>
        "[profiles.default]\n[profiles.up.signer]\nbackend = \"relay\"\nrelay.directory_url = \"https://a.example/d\"\n"
      )
      const words = (...more: ReadonlyArray<string>) => ["init", "--root", "r", ...passing, ...more]
      yield* refuses(place, words("--permit", "*.corp.example"), "A name without *. covers every name below it too.", 2)
      yield* refuses(place, words("--permit", "192.0.2.1"), "The last label is a number", 2)
      yield* refuses(place, words("--permit", ".corp.example"), "--permit: \".corp.example\" cannot be permitted.", 2)
      yield* refuses(place, words("--permit", "bücher.example"), "not ASCII; write it with xn-- labels", 2)
      yield* refuses(place, words("--days", "400", "--root-days", "399"), "the issuing CA cannot outlive the root", 2)
      yield* refuses(place, words("--days", "0"), "--days takes a whole number from 1 to 36525.", 2)
      yield* refuses(place, words("--key-type", "dsa"), "--key-type takes one of ecdsa-p256", 2)
      yield* refuses(place, words("--root-name", "ACME Service Local CA"), "cannot have the same name")
      yield* refuses(place, words("--root-name", "x".repeat(65)), "more than 64 characters")
      yield* refuses(place, words("--profile", "up"), "Profile up has no CA of its own: its signer.backend is relay.")
      yield* refuses(place, words("--profile", "none"), "--profile: none is not configured")
      yield* refuses(place, words("--root-only"), "--root-only requires --root-name.", 2)
      yield* refuses(place, words("--root-only", "--root-name", "R", "--permit", "a.example"), "makes none", 2)
      yield* refuses(place, ["init", ...passing], "ca init needs --root.", 2)
    }))
})

describe("ca csr", () => {
  test("makes the key once, and a request for the same key after that", () =>
    Effect.gen(function*() {
      const place = newPlace()
      const first = yield* run(place, ["csr"])
      assert.strictEqual(first.code, 0, first.err)
      assert.match(first.err, /^Made the key in .*ca\.key \(ecdsa-p256\)\.\nSHA-256 of the key: (?:[0-9A-F]{2}:){31}/)
      assert.match(first.out, /^-----BEGIN CERTIFICATE REQUEST-----\n/)
      const key = textOf(place, "ca.key")
      const again = yield* run(place, ["csr", "--out", "two.csr", "--key-type", "rsa-2048", "--json"])
      assert.match(
        JSON.parse(again.err).remarks[0],
        /^The request is for the existing key in .*ca\.key \(ecdsa-p256\)\./
      )
      assert.deepInclude(JSON.parse(again.out), {
        isNew: false,
        out: file(place, "two.csr"),
        request: textOf(place, "two.csr")
      })
      assert.strictEqual(textOf(place, "ca.key"), key)
      yield* refuses(place, ["csr", "--out", "two.csr"], /--out: .*two\.csr exists already/)
      yield* refuses(place, ["init", "--root", "r", ...passing], "`acme-svc ca csr` makes its request")
    }))

  test("makes no key if the request cannot be written", () =>
    Effect.gen(function*() {
      const place = newPlace()
      writeFileSync(file(place, "there"), "")
      yield* refuses(place, ["csr", "--out", "there"], "exists already")
      yield* refuses(place, ["csr", "--out", "none/there"], "cannot be written", 1)
      assert.isFalse(existsSync(file(place, "ca.key")))
    }))

  test("encrypts the key if a passphrase is configured, and needs it then", () =>
    Effect.gen(function*() {
      const place = newPlace(() => "[profiles.default.signer.local_ca]\nkey_passphrase_file = \"pass\"\n")
      yield* succeeds(place, ["csr"])
      assert.include(textOf(place, "ca.key"), "BEGIN ENCRYPTED PRIVATE KEY")
      yield* succeeds(place, ["csr"])
      writeFileSync(file(place, "pass"), "another passphrase")
      yield* refuses(place, ["csr"], /key_path: .*ca\.key cannot be used: the passphrase does not open the CA key/)
      unlinkSync(file(place, "pass"))
      yield* refuses(place, ["csr"], /key_passphrase_file: .*pass cannot be used: no such file/)
    }))

  test("keeps the name of a CA that has a certificate", () =>
    Effect.gen(function*() {
      const place = newPlace()
      writeFileSync(file(place, "ca.key"), keyPem(ecKey), { mode: 0o600 })
      writeFileSync(file(place, "ca.pem"), foreignCa({ name: "Known by this name", key: ecKey }).certificatePem)
      const root = yield* rootPlace()
      writeRequest(root, yield* succeeds(place, ["csr"]))
      const signed = yield* succeeds(root, sign)
      assert.strictEqual(new X509Certificate(signed).subject, "CN=Known by this name")
    }))
})

describe("ca sign", () => {
  test("shows what it will sign, and signs it only if the answer is yes", () =>
    Effect.gen(function*() {
      const place = yield* rootPlace()
      writeRequest(place)
      const words = ["sign", "issuing.csr", "--root", "r", "--permit", "corp.example", "--days", "10"]
      const no = yield* run(place, words, { typed: "n", hidden: [passphrase] })
      assert.strictEqual(no.code, 3)
      for (
        const part of [
          /^ {2}subject +CN=A CA$/m,
          /^ {2}until +2026-01-11T00:00:00Z$/m,
          /^ {2}issues +leaves only$/m,
          /corp\.example/
        ]
      ) assert.match(no.err, part)
      assert.include(no.err, "Nothing was changed.")
      assert.strictEqual(no.out, "")
      assert.deepStrictEqual(readdirSync(file(place, "r")).sort(), ["root.key", "root.pem", "transcript.txt"])
      const yes = yield* run(place, words, { typed: "y", hidden: [passphrase] })
      assert.strictEqual(yes.code, 0, yes.err)
      assert.isTrue(new X509Certificate(yes.out).verify(createPublicKey(textOf(place, "r/root.pem"))))
      yield* refuses(place, words, "pass --yes", 2)
    }))

  test("takes a request in PEM with text around it, with CRLF, and in DER", () =>
    Effect.gen(function*() {
      const place = yield* rootPlace()
      const octets = opensslCsr(rsaKey, ["-subj", "/CN=A CA"])
      const text = `Please sign\n${pem("NEW CERTIFICATE REQUEST", octets)}Thanks\n`
      for (const content of [octets, text, `\ufeff${text.replaceAll("\n", "\r\n")}`]) {
        writeRequest(place, content)
        const { certificate, ...facts } = JSON.parse(yield* succeeds(place, [...sign, "--json"])) as Record<
          string,
          unknown
        >
        assert.deepInclude(facts, { subject: "CN=A CA", keyType: "rsa-2048", pathLength: 0 })
        assert.include(String(certificate), textOf(place, "r/root.pem"))
      }
      const piped = yield* run(place, ["sign", "-", "--root", "r", ...passing, "--yes"], { piped: octets })
      assert.strictEqual(piped.code, 0, piped.err)
      yield* refuses(place, ["sign", "-", "--root", "r", "--yes"], "cannot both come from standard input", 2)
    }))

  test("refuses what is no sound request of an issuing CA", () =>
    Effect.gen(function*() {
      const place = yield* rootPlace()
      const refusesRequest = (content: string | Uint8Array, sentence: string | RegExp) =>
        Effect.suspend(() => {
          writeRequest(place, content)
          return refuses(place, sign, sentence)
        })
      const sound = opensslCsr(newEcKey(), ["-subj", "/CN=A CA"])
      const request = pem("CERTIFICATE REQUEST", sound)
      yield* refusesRequest("hello", "the file holds no request in PEM or DER")
      yield* refusesRequest("", "the file holds no request in PEM or DER")
      yield* refusesRequest(request + request, "the file holds more than one request")
      yield* refusesRequest(textOf(place, "r/root.pem"), "the file holds a CERTIFICATE and not a CERTIFICATE REQUEST")
      yield* refusesRequest(request.slice(0, -30), "not closed")
      yield* refusesRequest(pem("CERTIFICATE REQUEST", seq()), "not a DER PKCS#10 request")
      const small = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey
      yield* refusesRequest(opensslCsr(small, ["-subj", "/CN=A CA"]), "The RSA key has 1024 bits")
      yield* refusesRequest(opensslCsr(rsaKey, ["-sha1", "-subj", "/CN=A CA"]), "no longer safe, such as SHA-1")
      const spoilt = Buffer.from(sound)
      spoilt[spoilt.length - 1] = (spoilt[spoilt.length - 1] ?? 0) ^ 1
      yield* refusesRequest(spoilt, "signature of the CSR does not verify")
      yield* refusesRequest(csrOf({ extensions: [] }), "has an empty subject")
      yield* refusesRequest(opensslCsr(newEcKey(), ["-subj", "/CN=Example Root"]), "the name of the root itself")
      unlinkSync(file(place, "issuing.csr"))
      yield* refuses(place, sign, "file: issuing.csr cannot be used: no such file or directory.")
    }))

  test("refuses the key of the root itself, a wrong passphrase, and a lifetime beyond the root", () =>
    Effect.gen(function*() {
      const root = foreignCa({ name: "By others", key: ecKey, notAfter: madeAt + 100 * daySeconds })
      const place = yield* rootPlace("--root-days", "100")
      writeRequest(place)
      yield* refuses(
        place,
        [...sign, "--days", "101"],
        "--days: the certificate would outlive the root, which ends at 2026-04-11"
      )
      const signed = yield* succeeds(place, sign)
      assert.strictEqual(new X509Certificate(signed).validTo, "Apr 11 00:00:00 2026 GMT")
      writeFileSync(file(place, "pass"), "not the passphrase")
      yield* refuses(place, sign, "root.key cannot be used: the passphrase does not open the key")
      writeFileSync(file(place, "r/root.pem"), root.certificatePem)
      yield* refuses(place, sign, "root.key cannot be used: the passphrase does not open the key")
      writeRequest(place, opensslCsr(ecKey, ["-subj", "/CN=A CA"]))
      yield* refuses(place, sign, "The key of the request is the key of the root itself.")
      writeFileSync(file(place, "pass"), passphrase)
      writeRequest(place)
      yield* refuses(place, sign, "the CA key and certificate do not match")
    }))

  test("refuses a folder whose root cannot sign", () =>
    Effect.gen(function*() {
      const place = yield* rootPlace()
      writeRequest(place)
      const put = (name: string, content: string) => writeFileSync(file(place, join("r", name)), content)
      const root = textOf(place, "r/root.pem")
      const below = foreignCa({ name: "Below", issuer: foreignCa({ name: "Above" }) })
      put("root.pem", below.certificatePem)
      yield* refuses(place, sign, "it is not the certificate of a root")
      put("root.pem", foreignCa({ name: "Ended", notAfter: madeAt - 1 }).certificatePem)
      yield* refuses(place, sign, "CN=Ended ended at")
      const { certificatePem } = yield* generateCa({
        keyType: "ecdsa-p256",
        subject: { commonName: "Made at a start" },
        now: madeAt,
        serial: newSerial()
      })
      put("root.pem", certificatePem)
      yield* refuses(place, sign, "its pathLenConstraint 0 forbids a CA below it")
      const narrow = ext("2.5.29.30", seq(der(0xa0, seq(dns("corp.example")))), true)
      put("root.pem", foreignCa({ name: "Narrow", more: [narrow] }).certificatePem)
      const outside = [...sign, "--permit", "corp.example", "--permit", "example.org"]
      yield* refuses(place, outside, "--permit: the name constraints of the root forbid example.org.")
      put("root.pem", "nonsense")
      yield* refuses(place, sign, "root.pem cannot be used: the certificate file")
      put("root.pem", root)
      put("root.key", keyPem(ecKey))
      yield* refuses(place, sign, "root.key cannot be used: it is not an encrypted PKCS#8 key")
      unlinkSync(file(place, "r/root.key"))
      yield* refuses(place, sign, /root\.key cannot be used: no such file or directory/)
      rmSync(file(place, "r"), { recursive: true })
      yield* refuses(place, sign, /root\.pem cannot be used: no such file or directory/)
    }))
})

describe("ca import", () => {
  const answered = Effect.gen(function*() {
    const [place, root] = [yield* requested, yield* rootPlace()]
    writeRequest(root, textOf(place, "issuing.csr"))
    return { place, root, answer: yield* succeeds(root, sign) }
  })

  test("takes a chain in any order, with text around it, CRLF and a byte order mark", () =>
    Effect.gen(function*() {
      const { answer, place } = yield* answered
      const [issuing = "", root = ""] = answer.split(/(?<=-----END CERTIFICATE-----\n)/)
      const text = `\ufeffHello,\nsubject=root\n${root}subject=issuing\n${issuing}-- \nThe root\n`.replaceAll(
        "\n",
        "\r\n"
      )
      writeFileSync(file(place, "answer"), text)
      const said = yield* succeeds(place, ["import", "answer"])
      assert.match(said, /^Wrote the chain of 2 certificate\(s\) to .*ca\.pem\.$/m)
      assert.strictEqual(textOf(place, "ca.pem"), issuing + root)
      assert.strictEqual(statSync(file(place, "ca.pem")).mode & 0o777, 0o644)
      const before = statSync(file(place, "ca.pem")).ino
      assert.match(yield* succeeds(place, ["import", "-"], { piped: answer }), /already holds exactly this chain/)
      assert.strictEqual(statSync(file(place, "ca.pem")).ino, before)
      yield* succeeds(place, ["test-sign"])
    }))

  test("writes nothing for an answer that is wrong, and says what is wrong", () =>
    Effect.gen(function*() {
      const { answer, place, root } = yield* answered
      const refusesAnswer = (text: string | Uint8Array, sentence: string | RegExp) =>
        Effect.suspend(() => {
          writeFileSync(file(place, "answer"), text)
          return refuses(place, ["import", "answer"], sentence)
        })
      const rootPem = textOf(root, "r/root.pem")
      yield* refusesAnswer(rootPem, "holds only the root CN=Example Root, whose key is not the key of the profile")
      yield* refusesAnswer(
        answer.slice(0, answer.indexOf(rootPem)),
        "the certificate of its issuer, CN=Example Root, is missing"
      )
      const other = foreignCa({ name: "Other" })
      yield* refusesAnswer(
        foreignCa({ name: "Issuing", issuer: other }).certificatePem + other.certificatePem,
        "no certificate is for the key of the profile; there is: CN=Issuing; CN=Other"
      )
      yield* refusesAnswer(answer + other.certificatePem, "CN=Other does not belong to the chain of")
      yield* refusesAnswer("nothing here", "it holds no certificate in PEM")
      yield* refusesAnswer(answer + keyPem(newEcKey()), "it holds a PRIVATE KEY and not only certificates")
      yield* refusesAnswer(Buffer.from(answer, "utf16le"), /no certificate in PEM|not UTF-8/)
      yield* refusesAnswer(Buffer.from([0xff, 0xfe, 0x30]), "not UTF-8 text")
      unlinkSync(file(place, "answer"))
      yield* refuses(place, ["import", "answer"], "file: answer cannot be used: no such file or directory.")
      assert.isFalse(existsSync(file(place, "ca.pem")))
      yield* refuses(newPlace(), ["import", "pass"], /ca\.key does not exist; `acme-svc ca csr` makes the key/)
    }))

  test("replaces another certificate only if it is told to, and keeps it", () =>
    Effect.gen(function*() {
      const { answer, place, root } = yield* answered
      writeFileSync(file(place, "answer"), answer)
      yield* succeeds(place, ["import", "answer"])
      const renewed = yield* succeeds(root, sign)
      writeFileSync(file(place, "answer"), renewed)
      yield* refuses(
        place,
        ["import", "answer"],
        /ca\.pem holds another certificate \(CN=ACME Service Local CA, SHA-256 [0-9a-f]{64}\); --replace/
      )
      assert.strictEqual(textOf(place, "ca.pem"), answer)
      const said = JSON.parse(yield* succeeds(place, ["import", "answer", "--replace", "--json"])) as Record<
        string,
        unknown
      >
      const aside = `ca.pem.set-aside-${madeAt}`
      assert.deepInclude(said, { wasThere: false, setAside: file(place, aside), path: file(place, "ca.pem") })
      assert.strictEqual(textOf(place, "ca.pem"), renewed)
      assert.strictEqual(textOf(place, aside), answer)
      // The next one in the same second would overwrite what is kept, so it is refused.
      writeFileSync(file(place, "answer"), yield* succeeds(root, sign))
      yield* refuses(place, ["import", "answer", "--replace"], /set-aside-\d+ cannot be written: exists already/)
      assert.strictEqual(textOf(place, "ca.pem"), renewed)
    }))
})

describe("ca test-sign", () => {
  test("refuses a CA that is not complete, does not fit, or has ended", () =>
    Effect.gen(function*() {
      const place = newPlace()
      yield* refuses(place, ["test-sign"], /neither .*ca\.pem nor .*ca\.key exists/)
      writeFileSync(file(place, "ca.key"), keyPem(ecKey), { mode: 0o600 })
      yield* refuses(place, ["test-sign"], /only .*ca\.key exists; .*`acme-svc ca import` puts the certificate there/)
      writeFileSync(file(place, "ca.pem"), foreignCa({ name: "Other" }).certificatePem)
      yield* refuses(place, ["test-sign"], "the CA key and certificate do not match")
      writeFileSync(
        file(place, "ca.pem"),
        foreignCa({ name: "Ended", key: ecKey, notAfter: madeAt - 1 }).certificatePem
      )
      yield* refuses(place, ["test-sign"], "CN=Ended ended at")
      writeFileSync(file(place, "ca.pem"), foreignCa({ name: "Good", key: ecKey }).certificatePem)
      const before = listed(place)
      const said = JSON.parse(yield* succeeds(place, ["test-sign", "--json"])) as Record<string, unknown>
      assert.deepInclude(said, { profile: "default", subject: "CN=Good", keySource: "file", name: "test-sign.invalid" })
      assert.deepStrictEqual(listed(place), before)
    }))
})
