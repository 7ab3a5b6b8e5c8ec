import { describe, it } from "@effect/vitest"
import { Array, Effect, Fiber, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import { generateKeyPairSync } from "node:crypto"
import { assert } from "vitest"
import type { DnsName } from "../../../src/domain/Identifier.ts"
import { normalizeIdentifier } from "../../../src/domain/Identifier.ts"
import type { AlpnPeerAnswer, AlpnPeerRequest } from "../../../src/engine/net/AlpnPeer.ts"
import { AlpnPeer } from "../../../src/engine/net/AlpnPeer.ts"
import { ConnectFailed, TlsFailed } from "../../../src/engine/net/Connect.ts"
import { HttpGet } from "../../../src/engine/net/HttpGet.ts"
import { ResolveFailed, Resolver } from "../../../src/engine/net/Resolver.ts"
import type { Record as LogRecord } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import type { ChallengePolicy } from "../../../src/services/validation/Attempt.ts"
import { Validator } from "../../../src/services/validation/Validator.ts"
import { cn, der, dns, ecKey, ext, hexed, rsaKey, sanOf, seq, utf8 } from "../../crypto/Pki.ts"
import type { ResponderOptions, ValidationCertificateParts } from "../../support/AlpnResponder.ts"
import {
  ACME_IDENTIFIER,
  acmeIdentifier,
  alpnResponder,
  digestOf,
  validationCertificate,
  wideRsaKey
} from "../../support/AlpnResponder.ts"
import { rawServer } from "../../support/RawServer.ts"

const token = "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJyPCt92wr-oA"
const keyAuthorization = `${token}.9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI`
const name = "a.example"

const identifier: DnsName = Result.getOrThrow(normalizeIdentifier(name, { dns01Enabled: false }))
const certificate = (parts: Partial<ValidationCertificateParts> = {}) =>
  validationCertificate({ name, keyAuthorization, ...parts })
const right: AlpnPeerAnswer = { protocol: "acme-tls/1", certificate: certificate() }

type Policy = Partial<Omit<ChallengePolicy, "http_01">>

/** Makes one attempt. Returns its verdict and every log record. */
const validate = (outside: Layer.Layer<Resolver | AlpnPeer>, challenge: Policy = {}) =>
  Effect.gen(function*() {
    const records: Array<LogRecord> = []
    const verdict = yield* Effect.flatMap(Validator, (validator) =>
      validator.validate({
        type: "tls-alpn-01",
        identifier,
        keyAuthorization,
        challenge: {
          timeout_ms: 5000,
          allow_loopback: true,
          denied_addresses: ["169.254.0.0/16", "fe80::/10"],
          allowed_addresses: [],
          http_01: { port: 80, https_port: 443, follow_redirects: true, max_redirects: 5, max_response_bytes: 4096 },
          tls_alpn_01: { port: 443 },
          ...challenge
        }
      })).pipe(
        Effect.match({
          onFailure: (failure) =>
            failure._tag === "ChallengeRefused" ? `${failure.error} ${failure.reason}` : failure._tag,
          onSuccess: () => "valid"
        }),
        Effect.provide(
          Validator.layer().pipe(
            Layer.provide(outside),
            Layer.provide(HttpGet.layerScripted(() => Effect.die("tls-alpn-01 sends no request")))
          )
        ),
        Effect.provide(layerMemory(records))
      )
    return { verdict, records, events: records.map(({ event }) => event) }
  })

type Script = (request: AlpnPeerRequest) => ReturnType<AlpnPeer["Service"]["meet"]>

interface World {
  readonly zone?: Record<string, ReadonlyArray<string> | ResolveFailed>
  readonly script?: Script
  readonly challenge?: Policy
}

/** Makes the same attempt in a simulated world that records every handshake. */
const attempt = (world: World = {}) =>
  Effect.gen(function*() {
    const requests: Array<AlpnPeerRequest> = []
    const outside = Layer.merge(
      Resolver.layerStatic(world.zone ?? { [name]: ["192.0.2.1"] }),
      AlpnPeer.layerScripted((request) =>
        Effect.suspend(() => {
          requests.push(request)
          return world.script?.(request) ?? Effect.succeed(right)
        })
      )
    )
    const outcome = yield* validate(outside, world.challenge)
    return { ...outcome, requests, dialled: requests.map(({ address }): string => address) }
  })

describe("the handshake", () => {
  it.effect("requests only the identifier and acme-tls/1, on the configured port", () =>
    Effect.gen(function*() {
      const { records, requests, verdict } = yield* attempt({ challenge: { tls_alpn_01: { port: 5001 } } })
      assert.strictEqual(verdict, "valid")
      assert.deepStrictEqual<ReadonlyArray<unknown>>(requests, [
        { address: "192.0.2.1", port: 5001, connectMillis: undefined, name, protocol: "acme-tls/1" }
      ])
      assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields]), [
        ["challenge_tls_alpn_01_matched", { identifier: name }]
      ])
    }))

  const answers: Record<string, readonly [string, ReturnType<Script>]> = {
    "http/1.1 chosen": ["tls alpn_refused", Effect.succeed({ ...right, protocol: "http/1.1" })],
    "acme-tls/1 in upper case": ["tls alpn_refused", Effect.succeed({ ...right, protocol: "ACME-TLS/1" })],
    "no ALPN": ["tls alpn_refused", Effect.succeed({ ...right, protocol: undefined })],
    "no ALPN and no certificate": ["tls alpn_refused", Effect.succeed({ protocol: undefined, certificate: undefined })],
    "no certificate": ["incorrectResponse certificate_absent", Effect.succeed({ ...right, certificate: undefined })],
    "a certificate that cannot be read": [
      "incorrectResponse certificate_undecodable",
      Effect.succeed({ ...right, certificate: Buffer.from(keyAuthorization) })
    ],
    "a handshake that fails": ["tls handshake_failed", new TlsFailed({ detail: "alert" })]
  }
  for (const [row, [expected, answer]] of Object.entries(answers)) {
    it.effect(`gives the error ${expected.split(" ")[0]} in the case "${row}", and the log does not contain the key authorization`, () =>
      Effect.gen(function*() {
        const { records, verdict } = yield* attempt({ script: () => answer })
        assert.strictEqual(verdict, expected)
        const reason = expected.split(" ")[1]
        assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields["reason"]]), [
          ["challenge_tls_alpn_01_mismatch", reason],
          ["challenge_validation_failed", reason]
        ])
        assert.notInclude(JSON.stringify(records), token)
      }))
  }

  it.effect("is logged with a shortened error text", () =>
    Effect.gen(function*() {
      const { records } = yield* attempt({ script: () => new TlsFailed({ detail: "x".repeat(10_000) }) })
      assert.lengthOf(String(records.at(-1)?.fields["error"]), 500)
    }))
})

describe("the choice of an address", () => {
  it.effect("gives the error connection and opens no connection if the name resolves to a denied address, or to its mapped, NAT64 or 6to4 form", () =>
    Effect.gen(function*() {
      for (const address of ["169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"]) {
        const { dialled, events, verdict } = yield* attempt({ zone: { [name]: [address] } })
        assert.deepStrictEqual([verdict, dialled], ["connection address_denied", []])
        assert.deepStrictEqual(events, ["challenge_address_denied", "challenge_validation_failed"])
      }
    }))

  it.effect("skips the denied addresses of a name with several addresses", () =>
    Effect.gen(function*() {
      const zone = { [name]: ["fe80::1", "169.254.169.254", "192.0.2.1"] }
      const { dialled, verdict } = yield* attempt({ zone })
      assert.deepStrictEqual([verdict, dialled], ["valid", ["192.0.2.1"]])
      const elsewhere = yield* attempt({ zone, challenge: { allowed_addresses: ["198.51.100.0/24"] } })
      assert.deepStrictEqual([elsewhere.verdict, elsewhere.dialled], ["connection address_denied", []])
    }))

  it.effect("gives the error connection if there is no address or the name server fails", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* attempt({ zone: {} })).verdict, "connection no_address")
      const failing = { [name]: new ResolveFailed({ name, code: "ESERVFAIL" }) }
      assert.strictEqual((yield* attempt({ zone: failing })).verdict, "connection resolve_failed")
    }))

  const ten = [...Array.makeBy(5, (n) => `192.0.2.${n}`), ...Array.makeBy(5, (n) => `2001:db8::${n + 1}`)]
  const four = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "192.0.2.0"]

  it.effect("tries four of ten addresses that accept no connections, IPv6 first", () =>
    Effect.gen(function*() {
      const refusing = yield* attempt({
        zone: { [name]: ten },
        script: () => new ConnectFailed({ detail: "refused" })
      })
      assert.deepStrictEqual([refusing.verdict, refusing.dialled], ["connection connect_failed", four])
      const deaf: Script = ({ connectMillis }) =>
        connectMillis === undefined
          ? Effect.never
          : Effect.andThen(Effect.sleep(connectMillis), new ConnectFailed({ detail: "no connection" }))
      const fiber = yield* Effect.forkChild(attempt({ zone: { [name]: ten }, script: deaf }))
      yield* TestClock.adjust(5000)
      const { dialled, requests, verdict } = yield* Fiber.join(fiber)
      assert.deepStrictEqual([verdict, dialled], ["connection timeout", four])
      assert.deepStrictEqual(requests.map(({ connectMillis }) => connectMillis), [1250, 1250, 1250, undefined])
    }))

  it.effect("tries the second address if the first is unreachable", () =>
    Effect.gen(function*() {
      const { dialled, verdict } = yield* attempt({
        zone: { [name]: ten },
        script: ({ address }) =>
          address === "2001:db8::1" ? new ConnectFailed({ detail: "refused" }) : Effect.succeed(right)
      })
      assert.deepStrictEqual([verdict, dialled], ["valid", four.slice(0, 2)])
    }))

  it.effect("ends with the first established connection, whatever happens on that connection", () =>
    Effect.gen(function*() {
      const rows: ReadonlyArray<readonly [string, ReturnType<Script>]> = [
        ["tls handshake_failed", new TlsFailed({ detail: "reset" })],
        ["tls alpn_refused", Effect.succeed({ ...right, protocol: undefined })],
        [
          "incorrectResponse san_mismatch",
          Effect.succeed({ ...right, certificate: certificate({ name: "b.example" }) })
        ]
      ]
      for (const [expected, answer] of rows) {
        const { dialled, verdict } = yield* attempt({ zone: { [name]: ten }, script: () => answer })
        assert.deepStrictEqual([verdict, dialled], [expected, ["2001:db8::1"]])
      }
    }))
})

it.effect("the validation by tls-alpn-01 fails within challenge.timeout_ms if the handshake makes no progress, and ends the handshake", () =>
  Effect.gen(function*() {
    let ended = false
    const script = () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => ended = true))
    const fiber = yield* Effect.forkChild(attempt({ script }))
    yield* TestClock.adjust(4999)
    assert.isFalse(ended)
    yield* TestClock.adjust(1)
    const { events, records, verdict } = yield* Fiber.join(fiber)
    assert.deepStrictEqual([verdict, ended, events], ["connection timeout", true, ["challenge_validation_timeout"]])
    assert.strictEqual(records[0]?.fields["error"], "192.0.2.1 port 443 did not answer")
  }))

describe("a validation over the network", () => {
  const asking = (port: number, challenge: Policy = {}) =>
    Effect.map(
      validate(Layer.merge(Resolver.layerStatic({ [name]: ["127.0.0.1"] }), AlpnPeer.layer()), {
        timeout_ms: 20_000,
        tls_alpn_01: { port },
        ...challenge
      }),
      ({ verdict }) => verdict
    )

  /** Returns the verdict on a server that shows this certificate. */
  const shown = (
    parts: Partial<ValidationCertificateParts> = {},
    options: ResponderOptions & { readonly minVersion?: "TLSv1.3"; readonly maxVersion?: "TLSv1.2" } = {}
  ) =>
    Effect.flatMap(
      alpnResponder({ [name]: { key: parts.key ?? ecKey, der: certificate(parts) } }, options),
      ({ port }) => asking(port)
    )

  const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey
  const acme = acmeIdentifier(keyAuthorization)
  const digest = digestOf(keyAuthorization)
  const proof = (...extensions: ReadonlyArray<Uint8Array>) => ({ extensions: [sanOf(dns(name)), ...extensions] })
  const names = (...list: ReadonlyArray<Uint8Array>) => ({ extensions: [sanOf(...list), acme] })

  const rows: Record<string, readonly [string, () => Partial<ValidationCertificateParts>]> = {
    "RSA": ["valid", () => ({ key: rsaKey })],
    "ECDSA P-256": ["valid", () => ({})],
    "ECDSA P-384": ["valid", () => ({ key: generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey })],
    "Ed25519": ["valid", () => ({ key: generateKeyPairSync("ed25519").privateKey })],
    "RSA 16384 key": ["valid", () => ({ key: wideRsaKey(16384) })],
    "RSA key beyond 16384 bits": ["tls handshake_failed", () => ({ key: wideRsaKey(18432) })],
    "SAN in other case": ["valid", () => names(dns("A.EXAMPLE"))],
    "not self-signed": ["incorrectResponse not_self_signed", () => ({ signer: other })],
    "issuer differs": ["incorrectResponse not_self_signed", () => ({ issuer: seq(cn(utf8("b"))) })],
    "two SANs": ["incorrectResponse san_mismatch", () => names(dns(name), dns("b.example"))],
    "extra IP": ["incorrectResponse san_mismatch", () => names(dns(name), der(0x87, Buffer.from([127, 0, 0, 1])))],
    "extra mail": ["incorrectResponse san_mismatch", () => names(dns(name), der(0x81, Buffer.from("a@a.example")))],
    "wildcard": ["incorrectResponse san_mismatch", () => names(dns("*.example"))],
    "CN only": ["incorrectResponse san_absent", () => ({ subject: seq(cn(utf8(name))), extensions: [acme] })],
    "obsolete OID": ["incorrectResponse extension_absent", () => proof(ext("1.3.6.1.5.5.7.1.30.1", digest, true))],
    "extension absent": ["incorrectResponse extension_absent", () => proof()],
    "extension non-critical": ["incorrectResponse extension_not_critical", () => proof(ext(ACME_IDENTIFIER, digest))],
    "extension doubled": ["incorrectResponse extension_repeated", () => proof(acme, acme)],
    "trailing DER": [
      "incorrectResponse extension_undecodable",
      () => proof(ext(ACME_IDENTIFIER, Buffer.concat([digest, hexed("0500")]), true))
    ],
    "wrong length": [
      "incorrectResponse extension_length",
      () => proof(ext(ACME_IDENTIFIER, der(0x04, digest.subarray(3)), true))
    ],
    "other account's digest": [
      "incorrectResponse extension_mismatch",
      () => proof(acmeIdentifier(`${token}.${"A".repeat(43)}`))
    ],
    "certificate of 1 MB": [
      "tls handshake_failed",
      () => proof(acme, ext("1.3.6.1.4.1.99999.1", Buffer.alloc(1_000_000)))
    ]
  }
  for (const [row, [expected, parts]] of Object.entries(rows)) {
    it.live(`gives ${expected.split(" ")[0]} in the case "${row}"`, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* shown(parts()), expected)
      }))
  }

  it.live("succeeds over TLS 1.2 and TLS 1.3", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* shown({}, { maxVersion: "TLSv1.2" }), "valid")
      assert.strictEqual(yield* shown({}, { minVersion: "TLSv1.3" }), "valid")
    }))

  it.live("gives the error tls if the server accepts only http/1.1 or has no ALPN", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* shown({}, { protocols: ["http/1.1"] }), "tls handshake_failed")
      assert.strictEqual(yield* shown({}, { protocols: [] }), "tls alpn_refused")
      assert.strictEqual(yield* shown({}, { protocols: ["http/1.1", "acme-tls/1"] }), "valid")
    }))

  it.live("gives the error tls if the server has only TLS 1.1", () =>
    Effect.gen(function*() {
      const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const
      const { port } = yield* alpnResponder({ [name]: { key: ecKey, der: certificate() } }, old)
      assert.strictEqual(yield* asking(port), "tls handshake_failed")
    }))

  it.live("gives the error tls if the server does not use TLS", () =>
    Effect.gen(function*() {
      const { port } = yield* rawServer(() => {}, { greeting: "HTTP/1.1 400 Bad Request\r\n\r\n" })
      assert.strictEqual(yield* asking(port), "tls handshake_failed")
    }))

  it.live("never resumes a TLS session, even if the server offers to resume one", () =>
    Effect.gen(function*() {
      const { handshakes, port, shown } = yield* alpnResponder({ [name]: { key: ecKey, der: certificate() } })
      assert.strictEqual(yield* asking(port), "valid")
      shown.set(name, { key: ecKey, der: certificate({ keyAuthorization: "token.other" }) })
      assert.strictEqual(yield* asking(port), "incorrectResponse extension_mismatch")
      assert.notInclude(handshakes.map(({ resumed }) => resumed), true)
    }))

  it.live("gives the error connection if the handshake makes no progress, and closes the connection", () =>
    Effect.gen(function*() {
      const responder = yield* alpnResponder({}, { hold: new Promise(() => {}) })
      assert.strictEqual(yield* asking(responder.port, { timeout_ms: 300 }), "connection timeout")
      yield* Effect.promise(() => responder.closed)
    }))

  it.live("opens no connection to a denied address", () =>
    Effect.gen(function*() {
      const { offers, port } = yield* alpnResponder({ [name]: { key: ecKey, der: certificate() } })
      assert.strictEqual(yield* asking(port, { denied_addresses: ["127.0.0.0/8"] }), "connection address_denied")
      assert.deepStrictEqual(offers, [])
    }))

  it.live("closes its connection if the job is interrupted", () =>
    Effect.gen(function*() {
      const responder = yield* alpnResponder({}, { hold: new Promise(() => {}) })
      const fiber = yield* Effect.forkChild(asking(responder.port))
      yield* Effect.promise(() => responder.asked)
      yield* Fiber.interrupt(fiber)
      yield* Effect.promise(() => responder.closed)
    }))
})
