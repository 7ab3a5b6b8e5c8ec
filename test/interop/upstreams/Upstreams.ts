import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { caddyCa } from "./CaddyCa.ts"
import { openBao } from "./OpenBao.ts"
import { pebble } from "./PebbleCa.ts"
import { stepCa } from "./StepCa.ts"
import type { Upstream } from "./Upstream.ts"

/** Every upstream that can be tried. */
export const upstreams: ReadonlyArray<Upstream> = [pebble, caddyCa, stepCa, openBao]

/** Makes a key pair for proxies on loopback, which relays are told to trust. */
export const makePair = (directory: string) => {
  const [certificate, key] = [join(directory, "proxy.pem"), join(directory, "proxy.key")]
  const request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost".split(" ")
  const names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
  execFileSync("openssl", [...request, ...names, "-keyout", key, "-out", certificate], { stdio: "ignore" })
  return { cert: readFileSync(certificate), key: readFileSync(key), certificate }
}
