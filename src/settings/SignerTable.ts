import * as Schema from "effect/Schema"
import { caKeyTypes } from "../crypto/x509/SelfSigned.ts"
import { mostAlternates } from "../domain/AlternateChain.ts"
import { issuerMark, otherStates } from "../domain/IssuerState.ts"
import { signerBackends } from "../domain/SignerBackend.ts"
import type { Names } from "../engine/config/Key.ts"
import {
  choice,
  count,
  entries,
  flag,
  integer,
  milliseconds,
  secret,
  secrets,
  text,
  texts,
  word
} from "../engine/config/Key.ts"
import type { Form } from "../engine/config/ValueForm.ts"
import {
  anyText,
  base64Secret,
  commonName,
  country,
  form,
  hexadecimal,
  hostPort,
  httpUrl,
  keyName,
  normalUrl,
  orEmpty,
  path,
  serviceUrl,
  time,
  zoneName
} from "../engine/config/ValueForm.ts"
import { isLoopbackHost } from "../engine/net/SocketAddress.ts"
import { aliasName, contactUri, hmacKey } from "./AcmeForms.ts"

/* The keys of signers. docs/configure/signers.md explains how these keys work together. */

/** A URL in which `{issuer}` stands for the id of a CA. */
const issuerUrl: Form = {
  says: `${normalUrl.says}, which may contain {issuer}`,
  fault: (text) => normalUrl.fault(text.replaceAll(issuerMark, "issuer"))
}

/** The URL of a server that gets a secret with each request, so that no network may carry the requests in clear. */
const privateUrl: Form = {
  says: `${serviceUrl.says}, where http is only for this machine`,
  fault: (text) =>
    serviceUrl.fault(text) ?? (text.startsWith("http:") && !isLoopbackHost(new URL(text).hostname)
      ? "must be an https URL, because the server is not on this machine"
      : undefined)
}

/** A path of OpenBao, which is a part of URLs. */
const enginePath: Form = form(
  "names with `/` between them",
  (text) => /^\w[\w.-]*(?:\/\w[\w.-]*)*$/.test(text),
  "must be names of letters, digits, _, - and ., with / between them but not around them"
)

/** The name of a key in the Transit engine. */
const engineKey: Form = form(
  "letters, digits, `_`, `-` and `.`",
  (text) => /^\w(?:[\w.-]*\w)?$/.test(text),
  "must have letters, digits, _, - and . only, and begin and end with a letter, a digit or _"
)

const subject = Schema.Struct({
  common_name: text(
    "ACME Service Local CA",
    orEmpty(commonName),
    "Common name of a generated CA. An empty part of the subject is left out, but at least one part must not be empty."
  ),
  organization: text("", anyText, "Organization of a generated CA."),
  organizational_unit: text("", anyText, "Organizational unit of a generated CA."),
  country: text("", orEmpty(country), "Country code of a generated CA."),
  state: text("", anyText, "State or province of a generated CA."),
  locality: text("", anyText, "Locality of a generated CA.")
})

const key_source = word(
  "file",
  { offered: ["file", "pkcs11", "transit"] },
  "Where the key of the CA is stored: in a file, in a PKCS#11 token such as an HSM, or in the Transit engine of OpenBao or Vault."
)

const pkcs11 = Schema.Struct({
  module_path: text(
    "",
    orEmpty(path),
    "PKCS#11 module of the token, a shared library. Required with key_source pkcs11."
  ),
  token_label: text("", anyText, "Label of the token. Either this or slot_id must be set with key_source pkcs11."),
  slot_id: integer(-1, { min: -1 }, "Slot of the token. -1: token_label names the token."),
  key_label: text("", anyText, "CKA_LABEL of the private key. This or key_id must be set with key_source pkcs11."),
  key_id: text("", orEmpty(hexadecimal), "CKA_ID of the private key, which tells keys with the same label apart."),
  pin_file: text("", orEmpty(path), "File with the PIN of the token. Required with key_source pkcs11.")
})

const cross_cert_paths = texts(
  [],
  path,
  `Files with cross-certificates of the CA, PEM: a certificate that another CA gave to the same key, followed by its chain. Clients may choose these chains. At most ${mostAlternates}.`
)

const transit = Schema.Struct({
  address: text(
    "",
    orEmpty(privateUrl),
    "URL of the server, such as https://bao.example.org:8200. Required with key_source transit."
  ),
  mount: text("transit", enginePath, "Path at which the Transit engine is mounted."),
  key: text("", orEmpty(engineKey), "Name of the key in the engine. Required with key_source transit."),
  key_version: integer(
    0,
    { min: 0 },
    "Version of the key that must sign. 0: the version that belongs to the CA certificate."
  ),
  namespace: text("", orEmpty(enginePath), "Namespace of the engine. Empty: the root namespace."),
  token_file: text("", orEmpty(path), "File with a token for the server. Required with key_source transit."),
  ca_path: text(
    "",
    orEmpty(path),
    "CA certificates, PEM, that are trusted for the server in addition to the public CAs."
  )
})

const nameRule = "1 to 32 lower-case letters, digits and hyphens"

/** Returns why a text cannot be the name of a CA of `others`, as a clause, or undefined if it can. */
export const caNameFault = (name: string): string | undefined =>
  /^[a-z0-9][a-z0-9-]{0,31}$/.test(name) ? undefined : `cannot name a CA: a name has ${nameRule}`

const caNames: Names = {
  fold: (segment) => segment.toLowerCase().replaceAll("_", "-"),
  fault: caNameFault
}

/** A CA in addition to the CA that issues (docs/contribute/decisions/rotation.md). */
const other = Schema.Struct({
  cert_path: text("", orEmpty(path), "Certificate of the CA, PEM, followed by its chain. Required."),
  key_source,
  key_path: text("", orEmpty(path), "Key of the CA, PEM. Required with key_source file. No key is made."),
  key_passphrase_file: text("", orEmpty(path), "File with the passphrase of the key. Empty: the key is not encrypted."),
  cross_cert_paths,
  pkcs11,
  transit,
  state: word(
    "retired",
    { offered: otherStates },
    "A retired CA signs only its revocation list, until its last certificate has expired. A waiting CA signs only its list at first, and issues certificates from the time in from."
  ),
  from: text(
    "",
    orEmpty(time),
    "When a waiting CA begins to issue. The CA that issued before is retired from then on."
  ),
  crl_path: text(
    "",
    orEmpty(path),
    "File to which the revocation list of the CA is exported, PEM. Empty: the crl_path of signer.local_ca, with the name of the CA before its extension."
  )
})

/** The `signer` section, both process-wide and of a profile. */
export const signer = Schema.Struct({
  backend: word("local_ca", { offered: signerBackends }, "What signs certificates."),
  local_ca: Schema.Struct({
    cert_path: text(
      "ca.pem",
      path,
      "CA certificate, PEM, followed by its chain. Either both the certificate and its key exist, or neither."
    ),
    key_path: text(
      "ca.key",
      path,
      "CA key, PEM. If neither the certificate nor the key exists, the service makes both."
    ),
    key_passphrase_file: text(
      "",
      orEmpty(path),
      "File with the passphrase of the CA key, which is then encrypted PKCS#8. If the service makes the key, it encrypts the key. Empty: the key is not encrypted."
    ),
    key_type: word(
      "ecdsa-p256",
      { offered: caKeyTypes },
      "Kind of a key that the service makes. It has no effect on an existing key. Few programs verify ML-DSA."
    ),
    leaf_validity_days: integer(90, { min: 1, max: 3653 }, "Lifetime of issued certificates."),
    crl_path: text(
      "ca.crl",
      path,
      "File to which the revocation list is exported, PEM. The record of the last list is the file of the same name with .issued at its end."
    ),
    crl_der_path: text(
      "",
      orEmpty(path),
      "File to which the revocation list is also exported in DER, for web servers. Empty: no such file."
    ),
    crl_distribution_points: texts(
      [],
      issuerUrl,
      "URLs of the revocation list that new certificates contain. {issuer} stands for the id of the CA that signs, as in https://acme.example/profile/default/crl/{issuer}."
    ),
    ca_issuer_urls: texts(
      [],
      issuerUrl,
      "URLs of the CA certificate in DER that new certificates contain. {issuer} stands for the id of the CA that signs."
    ),
    cross_cert_paths,
    key_source,
    pkcs11,
    transit,
    subject,
    others: entries(caNames, other)
  }),
  custom: Schema.Struct({
    script_path: text("", orEmpty(path), "Program that signs and revokes. Required with backend custom."),
    args: secrets([], anyText, "Arguments of the program."),
    timeout_ms: milliseconds(5000, "Time limit of one run of the program."),
    supports_crl: flag(false, "The program answers the hook crl: GET /crl serves its output."),
    supports_renewal_info: flag(false, "The program answers the hook renewal_info, which says when to renew.")
  }),
  relay: Schema.Struct({
    directory_url: text("", orEmpty(httpUrl), "Directory URL of the upstream ACME CA. Required with backend relay."),
    account_key_path: text(
      "upstream_account.key",
      path,
      "Key of the account at the upstream, PEM. If the file does not exist, the service makes the key. The account's URL is in a file beside it."
    ),
    contact: texts([], contactUri, "Contacts with which the account is made."),
    challenge_strategy: word(
      "bypass",
      { offered: ["bypass", "http01", "dns01"] },
      "How the service proves control of names to the upstream. bypass is for an upstream that requires no proof from this service."
    ),
    poll_interval_ms: milliseconds(2000, "How often the service asks the upstream for the state of an order."),
    poll_timeout_secs: count(300, "Time limit of one issuance at the upstream, including retries."),
    revocation_reasons: flag(
      true,
      "Whether the upstream gets the reason of a revocation. Set false for an upstream that accepts no reason, such as OpenBao. The service itself always stores the reason."
    ),
    eab: Schema.Struct({
      kid: text("", anyText, "Key identifier of a credential from the upstream. It is used only at the first start."),
      hmac_key: secret(
        "",
        orEmpty(hmacKey),
        "HMAC key of that credential, base64url or base64. It is better to give this key to `upstream register`."
      )
    }),
    dns01: Schema.Struct({
      provider: word("rfc2136", { offered: ["rfc2136"] }, "How the service creates DNS records."),
      challenge_alias: text(
        "",
        orEmpty(aliasName),
        "Name at which every challenge is published instead of the ordered name."
      ),
      propagation: Schema.Struct({
        mode: word(
          "none",
          { offered: ["none", "delay"] },
          "Whether to wait before the service asks the upstream to validate."
        ),
        delay_secs: integer(30, { min: 0 }, "How long to wait if mode is delay.")
      }),
      rfc2136: Schema.Struct({
        server: text("", orEmpty(hostPort), "DNS server that accepts updates. Required with dns01."),
        zone: text("", orEmpty(zoneName), "Zone in which the records are created. Required with dns01."),
        tsig_key_name: text("", orEmpty(keyName), "Name of the TSIG key that signs the updates. Required with dns01."),
        tsig_key_secret: secret(
          "",
          orEmpty(base64Secret),
          "Secret of the TSIG key, in standard base64. Required with dns01."
        ),
        tsig_algorithm: choice(
          ["hmac-sha256", "hmac-sha384", "hmac-sha512"],
          "Algorithm of the TSIG key. Empty: hmac-sha256."
        )
      })
    })
  })
})
