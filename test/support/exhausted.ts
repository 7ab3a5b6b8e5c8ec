import { Effect, Layer } from "effect"
import { openSync } from "node:fs"
import { devNull } from "node:os"
import { normalizeIdentifier } from "../../src/domain/Identifier.ts"
import { Scripts } from "../../src/engine/host/Scripts.ts"
import { AlpnPeer } from "../../src/engine/net/AlpnPeer.ts"
import { HttpGet } from "../../src/engine/net/HttpGet.ts"
import { reach } from "../../src/engine/net/Reach.ts"
import { Resolver } from "../../src/engine/net/Resolver.ts"
import { Validator } from "../../src/services/validation/Validator.ts"

/*
 * A program that uses up its descriptors and prints, as one line of JSON, the effect on validations and on other code
 * that opens descriptors. A test starts this program with a low `ulimit -n`.
 */

const identifier = Effect.runSync(Effect.fromResult(normalizeIdentifier("a.example", { dns01Enabled: true })))
const resolver = Resolver.layer("127.0.0.1:9")
/** A resolver that needs no query, so that only the connection can fail. */
const known = Resolver.layerStatic({ "a.example": ["127.0.0.1", "127.0.0.2"] })

const validated = (type: "http-01" | "dns-01" | "tls-alpn-01", names: Layer.Layer<Resolver>) =>
  Effect.flatMap(Validator, ({ validate }) =>
    validate({
      type,
      identifier,
      keyAuthorization: "token.thumbprint",
      challenge: {
        timeout_ms: 5000,
        allow_loopback: true,
        denied_addresses: [],
        allowed_addresses: [],
        http_01: { port: 9, https_port: 9, follow_redirects: true, max_redirects: 5, max_response_bytes: 4096 },
        tls_alpn_01: { port: 9 }
      }
    })).pipe(
      Effect.provide(Layer.provide(Validator.layer(), Layer.mergeAll(names, HttpGet.layer("0"), AlpnPeer.layer()))),
      Effect.match({ onFailure: ({ _tag, detail }) => `${_tag}: ${detail}`, onSuccess: () => "valid" })
    )

const outcomes = Effect.all({
  http01Connect: validated("http-01", known),
  http01Resolve: validated("http-01", resolver),
  dns01: validated("dns-01", resolver),
  tlsAlpn01: validated("tls-alpn-01", known),
  reached: Effect.match(Effect.scoped(reach("a.example", 9)).pipe(Effect.provide(resolver)), {
    onFailure: ({ detail }) => detail,
    onSuccess: () => "connected"
  }),
  script: Effect.flatMap(Scripts, ({ run }) =>
    run({
      path: "/bin/true",
      args: [],
      env: {},
      stdin: undefined,
      timeoutMillis: 5000,
      maxOutputBytes: 1,
      turns: undefined
    })).pipe(
      Effect.provide(Scripts.layer),
      Effect.match({ onFailure: ({ detail }) => detail, onSuccess: ({ exit }) => `ended with ${exit}` })
    )
})

const exhaust = () => {
  try {
    for (;;) openSync(devNull, "r")
  } catch {
    // No descriptors are left.
  }
}

exhaust()
process.stdout.write(`${JSON.stringify(await Effect.runPromise(outcomes))}\n`)
