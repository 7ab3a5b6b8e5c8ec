import { assert, describe, it } from "vitest"
import { withRemedy } from "../../src/engine/sql/Remedies.ts"
import { tlsFault } from "../../src/engine/TlsFault.ts"

/* Messages of Node.js 24 end with advice about options of Node.js. */

const advice = "if the root CA is installed locally, try running Node.js with --use-system-ca"

describe("a failed handshake", () => {
  it.each([
    "self-signed certificate",
    "self-signed certificate in certificate chain",
    "unable to get issuer certificate",
    "unable to get local issuer certificate",
    "unable to verify the first certificate"
  ])("names the setting of this service and no option of Node.js if the reason is %s", (message) => {
    const said = tlsFault(`${message}; ${advice}`)
    assert.strictEqual(said, `${message}; NODE_EXTRA_CA_CERTS may name a file with its CA`)
    const ofDatabase = withRemedy("X", `${message}; ${advice}`)
    const remedy =
      "no CA that is trusted here has signed it: name a file with the server's CA in the URL, sslrootcert=/path"
    assert.strictEqual(ofDatabase, `X ${message}; ${remedy}`)
  })

  it("is described by the reason that OpenSSL gives, or by its message if that is already plain", () => {
    const noise = "40E7A1:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../record.c:354:\n"
    assert.strictEqual(tlsFault(noise), "the TLS handshake failed: wrong version number")
    assert.strictEqual(tlsFault("certificate has expired"), "certificate has expired")
  })
})
