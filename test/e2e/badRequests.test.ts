import { base64url } from "jose"
import { createHmac, createPublicKey, generateKeyPairSync, randomUUID, sign, X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { gzipSync } from "node:zlib"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { AcmeKey, Deviation, FlattenedJws, ProblemBody } from "../support/AcmeSession.ts"
import { acmeKeyFrom, AcmeSession, makeAcmeKey, problemType, signJws } from "../support/AcmeSession.ts"
import { der, makeCsr, oid } from "../support/Csr.ts"
import { builtServer } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import type { HttpAnswer } from "../support/Http.ts"
import { makeHttpClient } from "../support/Http.ts"
import { leafOf } from "../support/Openssl.ts"

/*
 * Every fault that a signed request can have, one at a time, and the answer to it (docs/contribute/attacks.md, "JWS";
 * docs/reference/protocol.md, "Signed requests"). All requests go to one server.
 */

let ground: Ground
/** An account whose requests are signed with P-256. */
let session: AcmeSession
/** An account whose requests are signed with RSA. */
let rsaSession: AcmeSession
/** A key without an account. */
let stranger: AcmeKey

beforeAll(async () => {
  await builtServer()
  ground = await startGround({
    config: "[profiles.default]\nenabled = true\n\n[profiles.other]\nenabled = true\n"
  })
  session = await AcmeSession.open(ground.server.directoryUrl)
  await session.register()
  rsaSession = await session.another(await makeAcmeKey("rsa"))
  await rsaSession.register()
  stranger = await makeAcmeKey()
})

afterAll(async () => {
  session?.close()
  await ground?.dispose()
})

/** Returns the DER form of a certificate that was not issued to any client. */
const caCertificate = (): Buffer => new X509Certificate(readFileSync(ground.server.caFile)).raw

/** The values that a row of the table can use. */
interface Target {
  readonly session: AcmeSession
  readonly url: string
  readonly payload: object | undefined
  readonly nonce: string
}

interface Row {
  readonly name: string
  readonly make: (target: Target) => Deviation | Promise<Deviation>
  /** The type of the problem; `undefined` stands for 415, the only answer without one. */
  readonly type?: string | ReadonlyArray<string>
  readonly status: number
  /** Whether the request may use up its nonce. Otherwise the nonce must still be valid. */
  readonly maySpend?: boolean
  /** Whether the account with the RSA key sends the request. */
  readonly rsa?: boolean
}

const malformed = (name: string, make: Row["make"]): Row => ({ name, make, type: "malformed", status: 400 })
/** Makes a row whose kid is not the URL of an account here. */
const nobodys = (name: string, make: Row["make"]): Row => ({ name, make, type: "accountDoesNotExist", status: 400 })
const badAlgorithm = (name: string, make: Row["make"]): Row => ({
  name,
  make,
  type: "badSignatureAlgorithm",
  status: 400
})
const badKey = (name: string, make: Row["make"]): Row => ({ name, make, type: "badPublicKey", status: 400 })
const unauthorized = (name: string, make: Row["make"]): Row => ({ name, make, type: "unauthorized", status: 401 })
const unsupportedMedia = (name: string, make: Row["make"]): Row => ({ name, make, status: 415 })

const members = (extra: Readonly<Record<string, unknown>>) => (): Deviation => ({ header: extra })
const signature = (change: (good: Buffer) => Uint8Array) => (): Deviation => ({
  jws: (good) => ({ ...good, signature: base64url.encode(change(Buffer.from(base64url.decode(good.signature)))) })
})
const jws = (change: (good: FlattenedJws) => unknown) => (): Deviation => ({ jws: change })
const path = (change: (url: string) => string) => ({ url }: Target): Deviation => ({ header: { url: change(url) } })
const kid = (change: (kid: string) => string) => ({ session: { kid: good = "" } }: Target): Deviation => ({
  header: { kid: change(good) }
})

const toDer = (raw: Buffer): Buffer => {
  const integer = (bytes: Buffer) => {
    const start = bytes.findIndex((byte) => byte !== 0)
    const minimal = bytes.subarray(Math.max(start, 0))
    return der(0x02, (minimal[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.alloc(1), minimal]) : minimal)
  }
  return der(0x30, integer(raw.subarray(0, 32)), integer(raw.subarray(32)))
}

/** The order of the group of P-256. */
const n = Buffer.from("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", "hex")

/** Sets the unused bits in the last base64url character of a text whose length is not a multiple of four. */
const strayBits = (text: string): string => {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
  assert.notStrictEqual(text.length % 4, 0)
  return text.slice(0, -1) + (alphabet[alphabet.indexOf(text.slice(-1)) | 1] ?? "")
}

const ill = Buffer.from([0x22, 0xff, 0xfe, 0x22])

const anywhere: ReadonlyArray<Row> = [
  // the body
  malformed("an empty body", () => ({ body: () => "" })),
  malformed("a body that is not JSON", () => ({ body: () => "protected=x&payload=y" })),
  malformed("a JSON array", () => ({ body: (good) => `[${good}]` })),
  malformed("a JSON text", () => ({ body: () => "\"jws\"" })),
  malformed("null", () => ({ body: () => "null" })),
  malformed("a body cut short", () => ({ body: (good) => good.slice(0, -2) })),
  malformed("something after the JWS", () => ({ body: (good) => `${good}{}` })),
  malformed("a byte order mark before the JWS", () => ({ body: (good) => `\uFEFF${good}` })),
  malformed("a JWS with invalid UTF-8", () => ({
    body: (good) => Buffer.concat([Buffer.from(good.slice(0, -1)), Buffer.from(",\"x\":"), ill, Buffer.from("}")])
  })),
  malformed("the compact form", () => ({
    body: (good) => {
      const parts = JSON.parse(good) as FlattenedJws
      return `${parts.protected}.${parts.payload}.${parts.signature}`
    }
  })),
  malformed(
    "the general form",
    jws((good) => ({
      payload: good.payload,
      signatures: [{ protected: good.protected, signature: good.signature }]
    }))
  ),
  malformed("a signatures member beside the flattened form", jws((good) => ({ ...good, signatures: [] }))),
  malformed("an unprotected header", jws((good) => ({ ...good, header: { alg: "ES256" } }))),
  malformed("an empty unprotected header", jws((good) => ({ ...good, header: {} }))),
  ...(["protected", "payload", "signature"] as const).flatMap((member) => [
    malformed(`no ${member}`, jws((good) => ({ ...good, [member]: undefined }))),
    malformed(`${member} null`, jws((good) => ({ ...good, [member]: null }))),
    malformed(`${member} a number`, jws((good) => ({ ...good, [member]: 7 }))),
    malformed(`${member} with padding`, jws((good) => ({ ...good, [member]: `${good[member]}==` }))),
    malformed(`${member} with a space`, jws((good) => ({ ...good, [member]: `${good[member]} ` }))),
    malformed(`${member} with a line break`, jws((good) => ({ ...good, [member]: `\n${good[member]}` }))),
    malformed(`${member} with a character of plain base64`, jws((good) => ({ ...good, [member]: `${good[member]}+/` })))
  ]),
  malformed(
    "stray bits at the end of the signature",
    jws((good) => ({
      ...good,
      signature: strayBits(good.signature)
    }))
  ),
  malformed("a body nested 10 000 deep", () => ({
    body: (good) => `${good.slice(0, -1)},"x":${"[".repeat(10_000)}${"]".repeat(10_000)}}`
  })),
  { name: "a body one byte over the limit", ...over((good) => good.padEnd(131_073, " ")) },
  {
    name: "a chunked body over the limit",
    ...over((good) => [Buffer.from(good), ...Array.from({ length: 20 }, () => Buffer.alloc(8192, " "))])
  },
  { name: "a body of 10 MB", ...over((good) => good.padEnd(10 * 1024 * 1024, " ")) },
  {
    name: "10 MB in chunks",
    ...over((good) => [Buffer.from(good), ...Array.from({ length: 160 }, () => Buffer.alloc(65_536, " "))])
  },

  // the media type
  unsupportedMedia("no media type", () => ({ contentType: null })),
  unsupportedMedia("application/json", () => ({ contentType: "application/json" })),
  unsupportedMedia("text/plain", () => ({ contentType: "text/plain" })),
  unsupportedMedia(
    "a media type that is correct only at its beginning",
    () => ({ contentType: "application/jose+jsonx" })
  ),
  unsupportedMedia("a compressed body", () => ({
    headers: { "content-encoding": "gzip" },
    body: (good) => gzipSync(good)
  })),

  // the protected header
  malformed("a protected header that is not JSON", () => ({ protectedText: () => "alg=ES256" })),
  malformed("an empty protected header", () => ({ protectedText: () => "" })),
  malformed("a protected header that is an array", () => ({ protectedText: (good) => JSON.stringify([good]) })),
  malformed("a protected header with invalid UTF-8", () => ({
    protectedText: (good) =>
      Buffer.concat([Buffer.from(JSON.stringify(good).slice(0, -1)), Buffer.from(",\"x\":"), ill, Buffer.from("}")])
  })),
  malformed("a protected header with a byte order mark", () => ({
    protectedText: (good) => `\uFEFF${JSON.stringify(good)}`
  })),
  malformed("a protected header nested 10 000 deep", () => ({
    protectedText: (good) => `${JSON.stringify(good).slice(0, -1)},"x":${"[".repeat(10_000)}${"]".repeat(10_000)}}`
  })),
  malformed("crit with a known member", members({ crit: ["exp"], exp: 1 })),
  malformed("crit empty", members({ crit: [] })),
  malformed("crit with b64", members({ crit: ["b64"], b64: false })),
  malformed("crit null", members({ crit: null })),
  badAlgorithm("a member twice, of which the last one is wrong", () => ({
    protectedText: (good) => `${JSON.stringify(good).slice(0, -1)},"alg":"none"}`
  })),

  // alg
  { ...badAlgorithm("no alg", members({ alg: undefined })), type: ["badSignatureAlgorithm", "malformed"] },
  ...["none", "HS256", "ES384", "ES512", "EdDSA", "PS256", "RS384", "es256", "XS256", ""].map((alg) =>
    badAlgorithm(`alg ${alg === "" ? "empty" : alg}`, members({ alg }))
  ),
  badAlgorithm("RS256 over a P-256 key", members({ alg: "RS256" })),
  { ...badAlgorithm("ES256 over an RSA key", members({ alg: "ES256" })), rsa: true },
  ...[null, 256, ["ES256"], { name: "ES256" }].map((alg) => ({
    ...malformed(`alg ${JSON.stringify(alg)}`, members({ alg })),
    type: ["malformed", "badSignatureAlgorithm"]
  })),

  // url
  malformed("no url", members({ url: undefined })),
  malformed("url null", members({ url: null })),
  malformed("url a number", members({ url: 1 })),
  malformed("url with the other scheme", path((url) => url.replace("http:", "https:"))),
  malformed("url with another host", path((url) => url.replace("127.0.0.1", "localhost"))),
  malformed("url with the scheme in upper case", path((url) => url.replace("http://", "HTTP://"))),
  malformed("url without its port", path((url) => url.replace(/:\d+/, ""))),
  malformed("url with a user part", path((url) => url.replace("://", "://user@"))),
  malformed("url with a query", path((url) => `${url}?x=1`)),
  malformed("url with a fragment", path((url) => `${url}#x`)),
  malformed("url with a trailing slash", path((url) => `${url}/`)),
  malformed("url with a doubled slash", path((url) => url.replace("/profile/", "//profile/"))),
  malformed("url of another endpoint", path((url) => url.replace(/[^/]*$/, "newNonce"))),
  malformed("url of another profile", path((url) => url.replace("/default/", "/other/"))),
  malformed("url relative", path((url) => new URL(url).pathname)),
  malformed("url that matches a forged Host", ({ url }) => ({
    header: { url: url.replace(/127\.0\.0\.1:\d+/, "acme.example") },
    headers: { host: "acme.example", "x-forwarded-host": "acme.example" }
  })),

  // jwk and kid
  malformed("neither jwk nor kid", () => ({ identify: "neither" })),
  malformed("both jwk and kid", () => ({ identify: "both", header: { kid: session.kid } })),

  // the signature
  unauthorized("an empty signature", jws((good) => ({ ...good, signature: "" }))),
  unauthorized("a flipped bit in the signature", signature((good) => good.with(10, (good[10] ?? 0) ^ 1))),
  unauthorized("a signature in DER", signature(toDer)),
  unauthorized("63 octets", signature((good) => good.subarray(0, 63))),
  unauthorized("65 octets", signature((good) => Buffer.concat([good, Buffer.alloc(1)]))),
  unauthorized("r zero", signature((good) => Buffer.concat([Buffer.alloc(32), good.subarray(32)]))),
  unauthorized("s zero", signature((good) => Buffer.concat([good.subarray(0, 32), Buffer.alloc(32)]))),
  unauthorized("r and s zero", signature(() => Buffer.alloc(64))),
  unauthorized("r not below n", signature((good) => Buffer.concat([n, good.subarray(32)]))),
  unauthorized("s not below n", signature((good) => Buffer.concat([good.subarray(0, 32), n]))),
  unauthorized("10 000 octets", signature(() => Buffer.alloc(10_000, 7))),
  unauthorized(
    "the signature of another payload",
    jws((good) => ({
      ...good,
      payload: base64url.encode(JSON.stringify({ contact: ["mailto:other@corp.example"] }))
    }))
  ),
  unauthorized("an HMAC keyed with the public key, named ES256", ({ session: { key } }) => {
    const secret = createPublicKey(key.privateKey).export({ format: "der", type: "spki" })
    const mac = (text: string) => createHmac("sha256", secret).update(text).digest()
    return { jws: (good) => ({ ...good, signature: base64url.encode(mac(`${good.protected}.${good.payload}`)) }) }
  }),
  {
    ...unauthorized("an RSA signature with a flipped bit", signature((good) => good.with(9, (good[9] ?? 0) ^ 1))),
    rsa: true
  },
  { ...unauthorized("an RSA signature cut short", signature((good) => good.subarray(1))), rsa: true },
  {
    ...unauthorized("an RSA signature with PSS padding", ({ session: { key } }) => ({
      jws: (good) => ({
        ...good,
        signature: base64url.encode(
          sign("sha256", Buffer.from(`${good.protected}.${good.payload}`), { key: key.privateKey, padding: 6 })
        )
      })
    })),
    rsa: true
  },

  // the nonce
  { name: "no nonce", make: () => ({ nonce: null }), type: "badNonce", status: 400 },
  {
    name: "an unknown nonce",
    make: () => ({ nonce: base64url.encode(Buffer.alloc(32, 5)) }),
    type: "badNonce",
    status: 400
  },
  { name: "an empty nonce", make: () => ({ nonce: "" }), type: ["badNonce", "malformed"], status: 400 },
  malformed("a nonce that is not base64url", () => ({ nonce: "no nonce!" })),
  malformed("a nonce with padding", ({ nonce }) => ({ nonce: `${nonce}=` })),
  { name: "nonce null", make: members({ nonce: null }), type: "badNonce", status: 400 },
  malformed("nonce a number", members({ nonce: 5 }))
]

const payloads: ReadonlyArray<Row> = [
  malformed("a payload that is not JSON", () => ({ payloadText: "identifiers=x" })),
  malformed("a payload that is an array", () => ({ payloadText: "[]" })),
  malformed("a payload that is null", () => ({ payloadText: "null" })),
  malformed("a payload with invalid UTF-8", () => ({ payloadText: ill })),
  malformed("a payload with a byte order mark", () => ({ payloadText: "\uFEFF{}" })),
  malformed("an empty payload", () => ({ payloadText: "" }))
].map((row) => ({ ...row, maySpend: true }))

/** Makes a row whose answer is 413, even if everything else in the request is right. */
function over(body: NonNullable<Deviation["body"]>): Omit<Row, "name"> {
  return { make: () => ({ body }), type: "malformed", status: 413 }
}

const withKid: ReadonlyArray<Row> = [
  malformed("jwk in place of kid", () => ({ identify: "jwk" })),
  malformed("kid null", members({ kid: null })),
  malformed("kid a number", members({ kid: 7 })),
  malformed("kid an object", members({ kid: {} })),
  malformed("kid empty", members({ kid: "" })),
  nobodys("kid of another profile", kid((good) => good.replace("/default/", "/other/"))),
  nobodys("kid of another host", kid((good) => good.replace("127.0.0.1", "localhost"))),
  malformed("kid relative", kid((good) => new URL(good).pathname)),
  nobodys("kid with a trailing slash", kid((good) => `${good}/`)),
  nobodys("kid with dot segments", kid((good) => good.replace("/acct/", "/acct/./"))),
  nobodys("kid percent-encoded", kid((good) => good.replace("/acct/", "/%61cct/"))),
  nobodys("kid with its id in upper case", kid((good) => good.replace(/[^/]*$/, (id) => id.toUpperCase()))),
  nobodys("kid with an id that is no UUID", kid((good) => good.replace(/[^/]*$/, "1"))),
  nobodys("kid of an order", kid((good) => good.replace("/acct/", "/order/"))),
  {
    name: "kid without an account",
    make: kid((good) => good.replace(/[^/]*$/, randomUUID())),
    type: "accountDoesNotExist",
    status: 400
  },
  unauthorized("the signature of another key", () => ({ key: stranger, identify: "kid" }))
]

const jwk = (change: (good: Readonly<Record<string, unknown>>) => unknown) => (): Deviation => ({
  key: stranger,
  header: { jwk: change({ ...stranger.jwk }) }
})

const spoilt = (member: "x" | "y", change: (good: Buffer) => Uint8Array) =>
  jwk((good) => ({
    ...good,
    [member]: base64url.encode(change(Buffer.from(base64url.decode(String(good[member])))))
  }))

const generated = (make: () => Promise<AcmeKey>) => async (): Promise<Deviation> => ({ key: await make() })

const rsaKey = (modulusLength: number, publicExponent = 0x10001) =>
  generated(() => acmeKeyFrom(generateKeyPairSync("rsa", { modulusLength, publicExponent }).privateKey))

const rsaJwk = (change: (good: Readonly<Record<string, unknown>>) => unknown) => (): Deviation => ({
  key: rsaSession.key,
  header: { jwk: change({ ...rsaSession.key.jwk }) }
})

const withJwk: ReadonlyArray<Row> = [
  malformed("kid in place of jwk", () => ({ identify: "kid", key: session.key, header: { kid: session.kid } })),
  malformed("jwk null", jwk(() => null)),
  malformed("jwk a text", jwk(() => "key")),
  malformed("jwk a list", jwk((good) => [good])),
  { ...malformed("jwk empty", jwk(() => ({}))), type: ["malformed", "badPublicKey"] },
  badKey("x of 31 octets", spoilt("x", (good) => good.subarray(1))),
  badKey("x of 33 octets", spoilt("x", (good) => Buffer.concat([Buffer.alloc(1), good]))),
  badKey("y of 31 octets", spoilt("y", (good) => good.subarray(1))),
  badKey("y of 33 octets", spoilt("y", (good) => Buffer.concat([Buffer.alloc(1), good]))),
  badKey("a point off the curve", spoilt("y", (good) => good.with(31, (good[31] ?? 0) ^ 1))),
  badKey(
    "the point at infinity",
    jwk((good) => {
      const zero = base64url.encode(Buffer.alloc(32))
      return { ...good, x: zero, y: zero }
    })
  ),
  {
    ...badKey("a P-384 key", () => {
      const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-384" })
      return { key: stranger, header: { jwk: publicKey.export({ format: "jwk" }) } }
    }),
    type: ["badPublicKey", "badSignatureAlgorithm"]
  },
  {
    ...badKey("an Ed25519 key", () => {
      const { publicKey } = generateKeyPairSync("ed25519")
      return { key: stranger, header: { jwk: publicKey.export({ format: "jwk" }) } }
    }),
    type: ["badPublicKey", "badSignatureAlgorithm"]
  },
  {
    ...badKey("an ML-DSA key", () => {
      const { publicKey } = generateKeyPairSync("ml-dsa-44")
      return { key: stranger, header: { jwk: publicKey.export({ format: "jwk" }) } }
    }),
    type: ["badPublicKey", "badSignatureAlgorithm"]
  },
  {
    ...badKey("a symmetric key", jwk(() => ({ kty: "oct", k: "c2VjcmV0" }))),
    type: ["badPublicKey", "badSignatureAlgorithm", "malformed"]
  },
  badKey("RSA of 512 bits", rsaKey(512)),
  badKey("RSA of 1024 bits", rsaKey(1024)),
  badKey("RSA with exponent 1", rsaJwk((good) => ({ ...good, e: "AQ" }))),
  badKey("RSA with an even exponent", rsaJwk((good) => ({ ...good, e: "AQAC" }))),
  badKey("RSA of 16384 bits", rsaJwk((good) => ({ ...good, n: base64url.encode(Buffer.alloc(2048, 0xff)) }))),
  badAlgorithm("a jwk of another type than alg", () => ({ key: stranger, header: { jwk: rsaSession.key.jwk } })),
  unauthorized("the signature of another key", () => ({ key: stranger, header: { jwk: session.key.jwk } }))
]

/** Returns whether the nonce still works, that is, a correct request with this nonce is not answered badNonce. */
const isUnspent = async (nonce: string, of = session): Promise<boolean> => {
  const answer = await of.postOnce(of.kid ?? "", undefined, { nonce })
  return problemType(answer) !== "badNonce"
}

const tryRow = async (row: Row, makeTarget: (of: AcmeSession) => Omit<Target, "nonce">): Promise<void> => {
  const of = row.rsa === true ? rsaSession : session
  const target = { ...makeTarget(of), nonce: await of.nonce() }
  const deviation = { nonce: target.nonce, ...await row.make(target) }
  const answer = await target.session.postOnce(target.url, target.payload, deviation)
  assertProblem(answer, row.status, row.type)
  if (problemType(answer) === "badSignatureAlgorithm") {
    const isOfCertificate = target.url === of.directory.revokeCert && deviation.identify === "jwk"
    assert.deepStrictEqual(
      (answer.json as ProblemBody).algorithms,
      [
        "ES256",
        "RS256",
        ...isOfCertificate ? ["ES384", "ES512", "EdDSA", "ML-DSA-44", "ML-DSA-65", "ML-DSA-87"] : []
      ]
    )
  }
  const fresh = answer.headers["replay-nonce"]
  assert.isString(fresh, "no fresh nonce")
  assert.isTrue(await isUnspent(String(fresh), of), "the fresh nonce does not work")
  // A request that is refused before check 8 does not use up its nonce.
  if (deviation.nonce === target.nonce && row.maySpend !== true) {
    assert.isTrue(await isUnspent(target.nonce, of), "the nonce was spent")
  }
}

const assertProblem = (answer: HttpAnswer, status: number, type: Row["type"]): void => {
  const said = `${answer.status} ${answer.text.slice(0, 300)}`
  assert.strictEqual(answer.status, status, said)
  assert.match(answer.headers["content-type"] ?? "", /^application\/problem\+json\b/, said)
  assert.match(String(answer.headers["link"]), /rel="index"/, said)
  const body = answer.json as ProblemBody
  if (type === undefined) assert.isUndefined(body.type, said)
  else if (typeof type === "string") assert.strictEqual(problemType(answer), type, said)
  else assert.include(type, problemType(answer), said)
  assert.strictEqual(body.status, status, said)
  assert.isString(body.detail, said)
}

describe("a signed request with one fault", () => {
  describe("at newOrder, signed with a kid", () => {
    const target = (of: AcmeSession) => ({
      session: of,
      url: of.directory.newOrder,
      payload: { identifiers: [{ type: "dns", value: "a.example" }] }
    })
    it.each([...anywhere, ...payloads, ...withKid])("is refused with $name", (row) => tryRow(row, target))
  })

  describe("at newAccount, signed with a jwk", () => {
    const target = (of: AcmeSession) => ({
      session: of,
      url: of.directory.newAccount,
      payload: { termsOfServiceAgreed: true }
    })
    const rows = [...anywhere, ...payloads, ...withJwk].map((row) => ({
      ...row,
      make: async (at: Target): Promise<Deviation> => ({ identify: "jwk", ...await row.make(at) })
    }))
    it.each(rows)("is refused with $name", (row) => tryRow(row, target))
  })

  describe("at revokeCert", () => {
    const target = (of: AcmeSession) => ({
      session: of,
      url: of.directory.revokeCert ?? "",
      payload: { certificate: base64url.encode(caCertificate()) }
    })
    const either = "in place of"

    describe("signed with a kid", () => {
      const rows = [...anywhere, ...payloads, ...withKid].filter(({ name }) => !name.includes(either))
      it.each(rows)("is refused with $name", (row) => tryRow(row, target))
    })

    describe("signed with a jwk", () => {
      const rows = [...anywhere, ...payloads, ...withJwk].filter(({ name }) => !name.includes(either)).map((row) => ({
        ...row,
        make: async (at: Target): Promise<Deviation> => ({ identify: "jwk", ...await row.make(at) })
      }))
      it.each(rows)("is refused with $name", (row) => tryRow(row, target))
    })

    it.each(["jwk", "kid"] as const)(
      "passes every check up to the look-up of the certificate if it is signed correctly with %s",
      async (identify) => {
        const { payload, url } = target(session)
        const answer = await session.postOnce(url, payload, { identify })
        assertProblem(answer, 404, "malformed")
      }
    )
  })

  describe("at an order, POST-as-GET", () => {
    const urls = new Map<AcmeSession, string>()
    beforeAll(async () => {
      for (const  of of[session, rsaSession]) urls.set(of, (await of.newOrder(["read.example"])).url)
    })
    const target = (of: AcmeSession) => ({ session: of, url: urls.get(of) ?? "", payload: undefined })
    it.each([...anywhere, ...withKid])("is refused with $name", (row) => tryRow(row, target))

    it("is refused with a payload", async () => {
      const answer = await session.postOnce(urls.get(session) ?? "", {})
      assertProblem(answer, 400, "malformed")
    })
  })

  // Each of the refused requests would have changed the key, and the last one does change it.
  describe("at keyChange", () => {
    const movers = new Map<AcmeSession, { readonly mover: AcmeSession; readonly inner: object }>()
    beforeAll(async () => {
      for (const  of of[session, rsaSession]) {
        const mover = await of.another(await makeAcmeKey(of === session ? "ec" : "rsa"))
        const account = await mover.register()
        const next = await makeAcmeKey()
        const header = JSON.stringify({ alg: next.alg, jwk: next.jwk, url: mover.directory.keyChange })
        movers.set(of, {
          mover,
          inner: signJws(next, header, JSON.stringify({ account, oldKey: mover.key.jwk }))
        })
      }
    })
    const target = (of: AcmeSession) => ({
      session: movers.get(of)?.mover ?? of,
      url: of.directory.keyChange ?? "",
      payload: movers.get(of)?.inner
    })

    it.each([...anywhere, ...payloads, ...withKid])("is refused with $name", (row) => tryRow(row, target))

    it("is accepted without a fault", async () => {
      for (const  of of[session, rsaSession]) {
        const { payload, session: mover, url } = target(of)
        const answer = await mover.postOnce(url, payload, { nonce: await of.nonce() })
        assert.strictEqual(answer.status, 200, answer.text)
      }
    })
  })

  it("uses up its nonce once, even if many requests with the nonce come at the same time", async () => {
    const nonce = await session.nonce()
    const tries = Array.from({ length: 50 }, () => session.postOnce(session.kid ?? "", undefined, { nonce }))
    const types = (await Promise.all(tries)).map((answer) => answer.status === 200 ? "ok" : problemType(answer))
    assert.strictEqual(types.filter((type) => type === "ok").length, 1)
    assert.strictEqual(types.filter((type) => type === "badNonce").length, 49)
  })

  it("leaves its nonce usable once, even after thousands of requests with a bad signature", async () => {
    const nonce = await session.nonce()
    for (let round = 0; round < 80; round++) {
      const answers = await Promise.all(
        Array.from(
          { length: 25 },
          () => session.postOnce(session.kid ?? "", undefined, { nonce, key: stranger, identify: "kid" })
        )
      )
      for (const answer of answers) assert.strictEqual(problemType(answer), "unauthorized")
    }
    assert.isTrue(await isUnspent(nonce))
    assert.isFalse(await isUnspent(nonce))
  })
})

describe("a signed request that is unusual but correct", () => {
  const accepted = (deviation: Deviation) => async () => {
    const answer = await session.postOnce(session.kid ?? "", undefined, deviation)
    assert.strictEqual(answer.status, 200, answer.text)
  }

  it("is accepted with an unknown header member", accepted({ header: { unknown: { deep: [1] } } }))
  it("is accepted with b64 but without crit", accepted({ header: { b64: true } }))
  it(
    "is accepted with a header member twice if the last one is correct",
    accepted({
      protectedText: (good) => `{"alg":"none","url":"x",${JSON.stringify(good).slice(1)}`
    })
  )
  it("may have a member of the payload twice, of which the last one counts", async () => {
    const list = (value: string) => JSON.stringify([{ type: "dns", value }])
    const answer = await session.postOnce(session.directory.newOrder, {}, {
      payloadText: `{"identifiers":${list("10.0.0.1")},"identifiers":${list("last.example")}}`
    })
    assert.strictEqual(answer.status, 201, answer.text)
    assert.deepInclude(answer.json as object, { identifiers: [{ type: "dns", value: "last.example" }] })
    const refused = await session.postOnce(session.directory.newOrder, {}, {
      payloadText: `{"identifiers":${list("first.example")},"identifiers":${list("10.0.0.1")}}`
    })
    assert.strictEqual(problemType(refused), "rejectedIdentifier")
  })
  it("is accepted with the members __proto__ and constructor", async () => {
    await accepted({
      protectedText: (good) =>
        `{"__proto__":{"polluted":1},"constructor":{"prototype":{}},${JSON.stringify(good).slice(1)}`
    })()
    await accepted({})()
  })
  it(
    "is accepted with the media type in upper case and with a parameter",
    accepted({
      contentType: "Application/JOSE+JSON; charset=utf-8"
    })
  )
  it("is accepted with an unknown member in the JWS", accepted({ jws: (good) => ({ ...good, extra: true }) }))

  it("finds the same account if its jwk has further, private and reordered members", async () => {
    const key = await makeAcmeKey()
    const another = await session.another(key)
    const location = await another.register()
    const { d, kty, ...rest } = key.privateKey.export({ format: "jwk" })
    const answer = await another.postOnce(another.directory.newAccount, {}, {
      identify: "jwk",
      header: { jwk: { use: "sig", d, ...rest, kid: "mine", kty } }
    })
    assert.strictEqual(answer.status, 200, answer.text)
    assert.strictEqual(answer.headers.location, location)
    assert.notInclude(JSON.stringify(ground.server.records()), String(d))
  })

  it("finds the same account if the modulus has leading zeros", async () => {
    const modulus = Buffer.concat([Buffer.alloc(1), base64url.decode(String(rsaSession.key.jwk.n))])
    const answer = await rsaSession.postOnce(rsaSession.directory.newAccount, {}, {
      identify: "jwk",
      header: { jwk: { ...rsaSession.key.jwk, n: base64url.encode(modulus) } }
    })
    assert.strictEqual(answer.headers.location, rsaSession.kid)
  })
})

describe("a CSR with one fault", () => {
  const names = ["csr.example"]
  const extension = (id: string, value: Uint8Array) => der(0x30, oid(id), der(0x04, value))
  const good = () => Buffer.from(makeCsr({ names }).csr)
  const flipped = (at: number) => {
    const csr = good()
    return csr.with(at, (csr[at] ?? 0) ^ 0xff)
  }

  const rows: ReadonlyArray<{ readonly name: string; readonly csr: () => Uint8Array | Promise<Uint8Array> }> = [
    { name: "nothing", csr: () => Buffer.alloc(0) },
    { name: "garbage", csr: () => Buffer.alloc(500, 0xa5) },
    { name: "an empty sequence", csr: () => der(0x30) },
    { name: "cut short", csr: () => good().subarray(0, -1) },
    { name: "an additional octet at the end", csr: () => Buffer.concat([good(), Buffer.alloc(1)]) },
    { name: "an indefinite length", csr: () => Buffer.concat([Buffer.from([0x30, 0x80]), good().subarray(4)]) },
    { name: "PEM", csr: () => Buffer.from(`-----BEGIN CERTIFICATE REQUEST-----\n${good().toString("base64")}\n`) },
    { name: "a signature that does not verify", csr: () => flipped(good().length - 10) },
    { name: "another name", csr: () => makeCsr({ names: ["other.example"] }).csr },
    { name: "an additional name", csr: () => makeCsr({ names: [...names, "more.example"] }).csr },
    { name: "an additional wildcard", csr: () => makeCsr({ names: [...names, "*.csr.example"] }).csr },
    { name: "neither SAN nor CN", csr: () => makeCsr({ names, withoutSan: true }).csr },
    { name: "only free text", csr: () => makeCsr({ names, commonNames: ["csr"], withoutSan: true }).csr },
    { name: "an empty SAN", csr: () => makeCsr({ names: [] }).csr },
    { name: "an address in the SAN", csr: () => makeCsr({ names, otherNames: [der(0x87, Buffer.alloc(4, 1))] }).csr },
    {
      name: "an e-mail address in the SAN",
      csr: () => makeCsr({ names, otherNames: [der(0x81, Buffer.from("a@b.example"))] }).csr
    },
    { name: "a name with U+0000", csr: () => makeCsr({ names: ["csr.example\u0000.evil"] }).csr },
    {
      name: "a second SAN",
      csr: () => {
        const san = der(0x30, der(0x82, Buffer.from("csr.example")))
        return makeCsr({ names, extensions: [extension("2.5.29.17", san)] }).csr
      }
    },
    { name: "a CN that is not in the order", csr: () => makeCsr({ names, commonNames: ["evil.example"] }).csr },
    {
      name: "two CNs, one of them not in the order",
      csr: () => makeCsr({ names, commonNames: ["csr.example", "evil.example"] }).csr
    },
    { name: "the account's own key", csr: () => makeCsr({ names, key: session.key.privateKey }).csr },
    {
      name: "RSA of 1024 bits",
      csr: () => makeCsr({ names, key: generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey }).csr
    },
    {
      name: "RSA with exponent 3",
      csr: () =>
        makeCsr({ names, key: generateKeyPairSync("rsa", { modulusLength: 2048, publicExponent: 3 }).privateKey }).csr
    },
    {
      name: "P-224",
      csr: () => makeCsr({ names, key: generateKeyPairSync("ec", { namedCurve: "P-224" }).privateKey }).csr
    },
    {
      name: "secp256k1",
      csr: () => makeCsr({ names, key: generateKeyPairSync("ec", { namedCurve: "secp256k1" }).privateKey }).csr
    },
    { name: "ML-DSA-65", csr: () => makeCsr({ names, key: generateKeyPairSync("ml-dsa-65").privateKey }).csr },
    { name: "SHA-1", csr: () => makeCsr({ names, digest: "sha1" }).csr }
  ]

  it("is refused and leaves the order ready for a correct CSR", async () => {
    const placed = await session.newOrder(names)
    const early = await session.finalize(placed.body, good())
    assertProblem(early, 403, "orderNotReady")
    await session.authorize(placed.body, ground.responder.tokens)
    for (const { csr, name } of rows) {
      const answer = await session.finalize(placed.body, await csr())
      assert.strictEqual(problemType(answer), "badCSR", `${name}: ${answer.status} ${answer.text}`)
      assert.strictEqual(answer.status, 400, name)
    }
    for (const csr of ["%%%", "YWJj ZGVm", base64url.encode(good()).replace(/.$/, "+")]) {
      assertProblem(await session.postOnce(placed.body.finalize, { csr }), 400, "badCSR")
    }
    for (const payload of [{}, { csr: null }, { csr: 7 }, { csr: [] }]) {
      assertProblem(await session.postOnce(placed.body.finalize, payload), 400, ["malformed", "badCSR"])
    }
    const large = await session.postOnce(placed.body.finalize, { csr: "A".repeat(1024 * 1024) })
    assertProblem(large, 413, "malformed")
    assert.strictEqual((await session.order(placed.url)).status, "ready")

    const harmless = makeCsr({
      names: ["CSR.example."],
      commonNames: ["Some Team"],
      extensions: [extension("2.5.29.19", der(0x30, der(0x01, Buffer.from([0xff]))))]
    })
    const finalized = await session.finalize(placed.body, harmless.csr)
    assert.strictEqual(finalized.status, 200, finalized.text)
    const done = await session.awaitOrder(placed.url, ["valid", "invalid"])
    assert.strictEqual(done.status, "valid", JSON.stringify(done))
    assertProblem(await session.finalize(placed.body, harmless.csr), 403, "orderNotReady")
  })
})

describe("the server", () => {
  const identifiers = (...values: ReadonlyArray<unknown>) => ({ identifiers: values })
  const dns = (value: unknown) => ({ type: "dns", value })

  const orders: ReadonlyArray<{
    readonly name: string
    readonly payload: object
    readonly status: number
    readonly type: string
  }> = [
    { name: "no identifiers", payload: {}, status: 400, type: "malformed" },
    { name: "an empty list", payload: identifiers(), status: 400, type: "malformed" },
    { name: "identifiers of another type", payload: { identifiers: "a.example" }, status: 400, type: "malformed" },
    { name: "a null identifier", payload: identifiers(null), status: 400, type: "malformed" },
    { name: "a value that is not a text", payload: identifiers(dns(7)), status: 400, type: "malformed" },
    {
      name: "an object for a value",
      payload: identifiers(dns({ value: "a.example" })),
      status: 400,
      type: "malformed"
    },
    { name: "a value that is null", payload: identifiers(dns(null)), status: 400, type: "malformed" },
    {
      name: "a type that is not a text",
      payload: identifiers({ type: 7, value: "a.x" }),
      status: 400,
      type: "malformed"
    },
    {
      name: "101 identifiers",
      payload: identifiers(...Array.from({ length: 101 }, (_, index) => dns(`n${index}.example`))),
      status: 400,
      type: "malformed"
    },
    ...[
      "",
      ".",
      ".a.example",
      "a..example",
      `${"a".repeat(64)}.example`,
      "-a.example",
      "a-.example",
      "ab--cd.example",
      "xn--.example",
      "ü.example",
      "a b.example",
      "a\u0000.example",
      "a.example:80",
      "a@b.example",
      "*",
      "*.",
      "a*.example",
      "*.*.example",
      "foo.*.example",
      `${"abcdefgh.".repeat(32)}example`
    ].map((value) => ({
      name: `the name ${JSON.stringify(value).slice(0, 40)}`,
      payload: identifiers(dns(value)),
      status: 400,
      type: "malformed"
    })),
    ...["10.0.0.5", "2130706433", "127.1", "0x7f.1"].map((value) => ({
      name: `the address ${value}`,
      payload: identifiers(dns(value)),
      status: 403,
      type: "rejectedIdentifier"
    })),
    { name: "a wildcard", payload: identifiers(dns("*.a.example")), status: 403, type: "rejectedIdentifier" },
    ...["ip", "IP", "DNS", " dns", "permanent-identifier"].map((type) => ({
      name: `the type ${JSON.stringify(type)}`,
      payload: identifiers({ type, value: "a.example" }),
      status: 400,
      type: "unsupportedIdentifier"
    })),
    ...[
      { notAfter: "tomorrow" },
      { notAfter: 7 },
      { notAfter: "2001-01-01T00:00:00Z" },
      { notBefore: "2099-01-02T00:00:00Z", notAfter: "2099-01-01T00:00:00Z" },
      { notAfter: "2099-01-01T00:00:60Z" }
    ].map((dates) => ({
      name: `dates ${JSON.stringify(dates)}`,
      payload: { ...identifiers(dns("a.example")), ...dates },
      status: 400,
      type: "malformed"
    }))
  ]

  it.each(orders)("refuses newOrder with $name", async ({ payload, status, type }) => {
    assertProblem(await session.postOnce(session.directory.newOrder, payload), status, type)
  })

  it("accepts a notAfter in the year 9999 and shortens it to what the profile allows", async () => {
    const names = ["far.example"]
    const placed = await session.newOrder(names, { notAfter: "9999-12-31T23:59:59Z" })
    await session.authorize(placed.body, ground.responder.tokens)
    assert.strictEqual((await session.finalize(placed.body, makeCsr({ names }).csr)).status, 200)
    const done = await session.awaitOrder(placed.url, ["valid", "invalid"])
    const leaf = leafOf(await session.download(done.certificate ?? ""))
    const day = 86_400_000
    assert.approximately((Date.parse(leaf.validTo) - Date.now()) / day, 90, 1)
    assert.strictEqual(Date.parse(placed.body.notAfter ?? ""), Date.parse(leaf.validTo))
    assert.strictEqual(Date.parse(done.notAfter ?? ""), Date.parse(leaf.validTo))
  })

  it("answers newOrder with several bad names with a subproblem for each of them", async () => {
    const payload = identifiers(dns("*.a.example"), { type: "ip", value: "10.0.0.1" }, dns("b.example"))
    const answer = await session.postOnce(session.directory.newOrder, payload)
    assertProblem(answer, 403, "compound")
    const types = ((answer.json as ProblemBody).subproblems ?? []).map(({ identifier, type }) => [
      type?.split(":").at(-1),
      identifier?.value
    ])
    assert.deepStrictEqual(types, [["rejectedIdentifier", "*.a.example"], ["unsupportedIdentifier", "10.0.0.1"]])
  })

  const accounts: ReadonlyArray<readonly [name: string, contact: unknown, type: string]> = [
    ["a telephone number", ["tel:+15551234"], "unsupportedContact"],
    ["header fields", ["mailto:a@b.example?cc=c@d.example"], "invalidContact"],
    ["two addresses in one", ["mailto:a@b.example,c@d.example"], "invalidContact"],
    ["a line break", ["mailto:a@b.example\r\nBcc: c@d.example"], "invalidContact"],
    ["no domain", ["mailto:a"], "invalidContact"],
    ["33 entries", Array.from({ length: 33 }, (_, index) => `mailto:a${index}@b.example`), "invalidContact"],
    ["a text in place of the list", "mailto:a@b.example", "malformed"]
  ]

  it.each(accounts)("refuses newAccount with a contact of %s", async (_name, contact, type) => {
    const fresh = await session.another()
    assertProblem(await fresh.postOnce(fresh.directory.newAccount, { contact }), 400, type)
    const lookup = await fresh.postOnce(fresh.directory.newAccount, { onlyReturnExisting: true })
    assertProblem(lookup, 400, "accountDoesNotExist")
  })

  it.each(["pending", "revoked", "nonsense", 7, " "])(
    "refuses a request that sets the account status to %s",
    async (status) => {
      assertProblem(await session.postOnce(session.kid ?? "", { status }), 400, "malformed")
    }
  )

  it("gives the same answer about resources of other accounts as about resources that do not exist", async () => {
    const placed = await session.newOrder(["mine.example"])
    const other = await session.another()
    await other.register()
    const [authorization = ""] = placed.body.authorizations
    const { challenges: [challenge] } = await session.authorization(authorization)
    const theirs = [placed.url, authorization, challenge?.url ?? "", placed.url.replace("/order/", "/certificate/")]
    for (const url of theirs) {
      const foreign = await other.postOnce(url)
      const absent = await other.postOnce(url.replace(/[^/]*$/, randomUUID()))
      const nonsense = await other.postOnce(url.replace(/[^/]*$/, "nonsense"))
      for (const answer of [foreign, absent, nonsense]) assertProblem(answer, 404, "malformed")
      assert.strictEqual(foreign.text, absent.text)
      assert.strictEqual(foreign.text, nonsense.text)
    }
    for (const url of [session.kid ?? "", `${session.kid}`.replace(/[^/]*$/, randomUUID())]) {
      assertProblem(await other.postOnce(url), 401, "unauthorized")
    }
  })

  it("answers 404 to paths that are not exactly a route, and 405 to methods that the route does not accept", async () => {
    const http = makeHttpClient()
    try {
      const base = `${ground.server.baseUrl}/profile/default`
      const strays = [
        "/nothing",
        "/profile/default",
        "/profile/default/nothing",
        "/profile/default/directory/",
        "/profile/default//directory",
        "/profile/default/%64irectory",
        "/profile/default/x/../directory",
        "/profile/default/x/%2e%2e/directory",
        "/profile/default/directory;x",
        "/profile//default/directory",
        "/profile/Default/directory",
        "/profile/absent/directory",
        "/directory"
      ]
      for (const path of strays) assert.strictEqual((await http.send(base, { path })).status, 404, path)
      const wrongMethod = await http.send(`${base}/newOrder`)
      assert.strictEqual(wrongMethod.status, 405)
      assert.include(wrongMethod.headers.allow, "POST")
      assert.strictEqual(problemType(wrongMethod), "malformed")
      assert.strictEqual((await http.send(`${base}/directory`, { method: "DELETE" })).status, 405)
    } finally {
      http.close()
    }
  })
})

it("the server still issues after all these requests", async () => {
  const issued = await session.issue(["after.example"], ground.responder.tokens)
  assert.include(issued.chain, "BEGIN CERTIFICATE")
  const health = await session.get(`${ground.server.baseUrl}/health`)
  assert.deepInclude(health.json as object, { healthy: true })
  const failures = ground.server.records().filter(({ fields, level }) =>
    level.toLowerCase() === "error" || (fields["event"] === "request_completed" && Number(fields["status"]) >= 500)
  )
  assert.deepStrictEqual(failures, [])
})
