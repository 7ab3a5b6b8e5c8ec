import { Redacted, Result } from "effect"
import type { KeyObject } from "node:crypto"
import { createHash, sign } from "node:crypto"
import { join } from "node:path"
import { parseCsr } from "../../src/crypto/x509/Csr.ts"
import type { SigningProfile } from "../../src/services/signing/Backends.ts"
import type { LocalCaSettings } from "../../src/services/signing/ConfiguredCas.ts"
import type { IssueRequest } from "../../src/services/signing/Signer.ts"
import {
  algorithms,
  bitString,
  cn,
  csrOf,
  der,
  dns,
  ecKey,
  ext,
  hexed,
  int,
  pem,
  sanOf,
  seq,
  spkiOf,
  utf8
} from "../crypto/Pki.ts"
import { configOf, newPrivateKey } from "./Graph.ts"
import { usualKind } from "./Kinds.ts"

/** 2026-01-01, the date on which these CAs are made. */
export const madeAt = Date.UTC(2026, 0, 1) / 1000
export const daySeconds = 86_400

/** Returns a `signer` section for a local CA. */
export const signerOf = (local_ca: LocalCaSettings): SigningProfile["signer"] => ({
  backend: "local_ca",
  local_ca,
  custom: {
    script_path: "",
    args: Redacted.make([]),
    timeout_ms: 5000,
    supports_crl: false,
    supports_renewal_info: false
  },
  relay: configOf().signer.relay
})

/** `signer.local_ca` with its files in a directory. */
export const settingsIn = (directory: string, more: Partial<LocalCaSettings> = {}): LocalCaSettings => ({
  cert_path: join(directory, "ca.pem"),
  key_path: join(directory, "ca.key"),
  key_source: "file",
  key_passphrase_file: "",
  cross_cert_paths: [],
  key_type: "ecdsa-p256",
  subject: {
    common_name: "Test CA",
    organization: "",
    organizational_unit: "",
    country: "",
    state: "",
    locality: ""
  },
  pkcs11: { module_path: "", token_label: "", slot_id: -1, key_label: "", key_id: "", pin_file: "" },
  transit: { address: "", mount: "transit", namespace: "", key: "", key_version: 0, token_file: "", ca_path: "" },
  leaf_validity_days: 90,
  crl_distribution_points: [],
  crl_path: join(directory, "ca.crl"),
  crl_der_path: "",
  ca_issuer_urls: [],
  ...more
})

/** Returns a request to a backend for these names, with a key of the test. */
export const issueRequest = (names: ReadonlyArray<string>, more: Partial<IssueRequest> = {}): IssueRequest => ({
  orderId: "order",
  csr: Result.getOrThrow(parseCsr(csrOf({ extensions: [sanOf(...names.map((name) => dns(name)))] }))),
  names,
  kind: usualKind,
  validityBound: undefined,
  notBefore: undefined,
  notAfter: undefined,
  orderedAt: madeAt,
  ...more
})

/** The key in the CSR of {@link issueRequest}. */
export const requestedKey: KeyObject = ecKey

/** Returns a private key in PKCS#8 PEM. */
export const keyPem = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString()

const identifierOf = (key: KeyObject): Buffer => createHash("sha1").update(spkiOf(key)).digest()

const dateOf = (epochSeconds: number): Buffer =>
  der(0x17, Buffer.from(`${new Date(epochSeconds * 1000).toISOString().replaceAll(/[-:T]/g, "").slice(2, 14)}Z`))

/** A CA that the service did not create. */
export interface ForeignCa {
  readonly name: string
  readonly key: KeyObject
  readonly certificatePem: string
}

/**
 * Makes a CA. It is self-signed unless there is an issuer. `more` are further extensions, and `without` are those that
 * it lacks.
 */
export const foreignCa = (options: {
  readonly name: string
  readonly key?: KeyObject
  readonly issuer?: ForeignCa
  readonly notBefore?: number
  readonly notAfter?: number
  readonly more?: ReadonlyArray<Uint8Array>
  readonly without?: ReadonlyArray<"keyUsage" | "subjectKeyIdentifier" | "authorityKeyIdentifier">
  readonly hasCriticalConstraints?: boolean
  /** The serial number as DER. */
  readonly serial?: Uint8Array
}): ForeignCa => {
  const { issuer, name, notAfter = madeAt + 3650 * daySeconds, notBefore = madeAt - daySeconds } = options
  const key = options.key ?? newPrivateKey()
  const signedBy = issuer?.key ?? key
  const unless = (name: NonNullable<typeof options.without>[number], extension: Uint8Array) =>
    options.without?.includes(name) === true ? [] : [extension]
  const certificate = seq(
    der(0xa0, int(2n)),
    options.serial ?? int(0x40000000000000000000000000000000n + BigInt(name.length)),
    algorithms.ecdsa,
    seq(cn(utf8(issuer?.name ?? name))),
    seq(dateOf(notBefore), dateOf(notAfter)),
    seq(cn(utf8(name))),
    spkiOf(key),
    der(
      0xa3,
      seq(
        ext("2.5.29.19", seq(hexed("0101ff")), options.hasCriticalConstraints ?? true),
        ...unless("keyUsage", ext("2.5.29.15", hexed("03020106"), true)),
        ...unless("subjectKeyIdentifier", ext("2.5.29.14", der(0x04, identifierOf(key)))),
        ...unless("authorityKeyIdentifier", ext("2.5.29.35", seq(der(0x80, identifierOf(signedBy))))),
        ...options.more ?? []
      )
    )
  )
  const octets = seq(certificate, algorithms.ecdsa, bitString(sign("sha256", certificate, signedBy)))
  return { name, key, certificatePem: pem("CERTIFICATE", octets) }
}
