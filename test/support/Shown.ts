import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { Entropy } from "../../src/crypto/Entropy.ts"
import { generateTlsPair } from "../../src/crypto/x509/TlsPair.ts"
import { freshDirectory } from "./Databases.ts"
import { makeCa } from "./Openssl.ts"

/* Certificates that servers in tests show. */

/** A certificate with its key, in PEM. */
export interface Pair {
  readonly cert: string
  readonly key: string
}

/**
 * Returns a self-signed certificate for a host. It is valid for ten years, beginning an hour before the epoch second
 * `at`.
 */
export const selfSigned = (host: string, at = Math.floor(Date.now() / 1000)): Effect.Effect<Pair> =>
  Effect.map(
    Effect.orDie(
      Effect.provide(generateTlsPair({ host, serial: Uint8Array.of(1), now: at }), Entropy.layer)
    ),
    ({ certificatePem, privateKeyPem }) => ({ cert: certificatePem, key: privateKeyPem })
  )

/** Returns a certificate for some hosts from a CA that is made for it. */
export const ofOwnCa = (...hosts: ReadonlyArray<string>): Pair & { readonly ca: string } => {
  const directory = freshDirectory()
  const at = (name: string) => join(directory, name)
  makeCa(at("ca.pem"), at("ca.key"), `Of a test, in ${basename(directory)}`)
  const issuer = ["-CA", at("ca.pem"), "-CAkey", at("ca.key")]
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", at("key.pem")]
  const names = hosts.map((host) => `DNS:${host}`).join()
  const named = ["-config", "/dev/null", "-subj", "/CN=Shown by a test", "-addext", `subjectAltName=${names}`]
  const words = ["req", "-x509", "-days", "2", ...issuer, ...key, ...named, "-out", at("cert.pem")]
  execFileSync("openssl", [...words, "-addext", "basicConstraints=critical,CA:FALSE"], { stdio: "pipe" })
  const [ca, cert, keyPem] = ["ca.pem", "cert.pem", "key.pem"].map((name) => readFileSync(at(name), "utf8"))
  return { ca: ca ?? "", cert: cert ?? "", key: keyPem ?? "" }
}
