import { execFile, execFileSync } from "node:child_process"
import { createHash, X509Certificate } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"

const certificatePattern = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** Returns the certificates of a PEM chain, in its order. */
export const certificatesOf = (pem: string): ReadonlyArray<X509Certificate> =>
  (pem.match(certificatePattern) ?? []).map((text) => new X509Certificate(text))

/** Returns the first certificate of a PEM chain. */
export const leafOf = (pem: string): X509Certificate => {
  const [leaf] = certificatesOf(pem)
  if (leaf === undefined) throw new Error("the chain holds no certificate")
  return leaf
}

/**
 * Runs `openssl verify -x509_strict` for a chain, leaf first. The chain must be that of a TLS server `host`, with the
 * only trust anchor in `caFile` and with the revocation list in `crlFile`, if there is one. Fails with the output of
 * OpenSSL.
 */
export const verifyChain = async (pem: string, caFile: string, host: string, crlFile?: string): Promise<void> => {
  const directory = mkdtempSync(join(tmpdir(), "acme-verify-"))
  try {
    const [leaf, ...rest] = certificatesOf(pem).map((certificate) => certificate.toString())
    const leafFile = join(directory, "leaf.pem")
    const chainFile = join(directory, "chain.pem")
    writeFileSync(leafFile, leaf ?? "")
    writeFileSync(chainFile, rest.join(""))
    const untrusted = rest.length === 0 ? [] : ["-untrusted", chainFile]
    const checked = ["-x509_strict", "-purpose", "sslserver", "-verify_hostname", host]
    const listed = crlFile === undefined ? [] : ["-crl_check", "-CRLfile", crlFile]
    await promisify(execFile)("openssl", [
      "verify",
      "-no-CApath",
      "-CAfile",
      caFile,
      ...checked,
      ...listed,
      ...untrusted,
      leafFile
    ])
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Returns the name of a certificate in renewal information (RFC 9773 section 4.1), read by OpenSSL. */
export const renewalIdOf = (pem: string): string => {
  const said = execFileSync("openssl", ["x509", "-noout", "-serial", "-ext", "authorityKeyIdentifier"], { input: pem })
    .toString()
  const [, keyId = ""] = /^ *(?:keyid:)?((?:[0-9A-F]{2}:){19}[0-9A-F]{2})$/m.exec(said) ?? []
  const [, serial = ""] = /^serial=([0-9A-F]+)$/m.exec(said) ?? []
  // In DER, a zero octet precedes a number whose first bit is set.
  const octets = Buffer.from(/^[89A-F]/.test(serial) ? `00${serial}` : serial, "hex")
  return `${Buffer.from(keyId.replaceAll(":", ""), "hex").toString("base64url")}.${octets.toString("base64url")}`
}

/** Writes the key and the certificate of a self-signed CA that OpenSSL makes instead of the service. */
export const makeCa = (certPath: string, keyPath: string, commonName: string, days = 3650): void => {
  const extensions = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"]
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", keyPath]
  const subject = ["-config", "/dev/null", "-subj", `/CN=${commonName}`, "-addext", "subjectKeyIdentifier=hash"]
  const flags = extensions.flatMap((extension) => ["-addext", extension])
  execFileSync("openssl", ["req", "-x509", "-days", String(days), ...key, ...subject, ...flags, "-out", certPath], {
    stdio: "pipe"
  })
}

/** Returns the id of the CA in a certificate file: the SHA-256 of its SubjectPublicKeyInfo, in hexadecimal. */
export const issuerIdOf = (file: string): string =>
  createHash("sha256").update(
    new X509Certificate(readFileSync(file)).publicKey.export({ type: "spki", format: "der" })
  ).digest("hex")
