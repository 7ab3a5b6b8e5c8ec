import * as Schema from "effect/Schema"
import { choice, count, flag, integer, milliseconds, secret, secrets, text, texts, word } from "../engine/config/Key.ts"
import {
  anyText,
  base64Secret,
  commonName,
  country,
  hostPort,
  httpUrl,
  keyName,
  normalUrl,
  orEmpty,
  path,
  zoneName
} from "../engine/config/ValueForm.ts"
import { aliasName, contactUri, hmacKey } from "./AcmeForms.ts"

/* The keys of signers. docs/signers.md explains how these keys work together. */

const subject = Schema.Struct({
  common_name: text(
    "ACME Service Local CA",
    orEmpty(commonName),
    "Common name of a generated CA. Here and below, an empty value is left out, but not all of them are."
  ),
  organization: text("", anyText, "Organization of a generated CA."),
  organizational_unit: text("", anyText, "Organizational unit of a generated CA."),
  country: text("", orEmpty(country), "Country code of a generated CA."),
  state: text("", anyText, "State or province of a generated CA."),
  locality: text("", anyText, "Locality of a generated CA.")
})

/** The `signer` section, both process-wide and of a profile. */
export const signer = Schema.Struct({
  backend: word("local_ca", { offered: ["local_ca", "relay", "custom"] }, "What signs certificates."),
  local_ca: Schema.Struct({
    cert_path: text(
      "ca.pem",
      path,
      "CA certificate, PEM, followed by its chain. It and the key must both exist, or neither."
    ),
    key_path: text("ca.key", path, "CA key, PEM. Both are generated when neither exists."),
    key_type: word(
      "ecdsa-p256",
      { offered: ["ecdsa-p256", "ecdsa-p384", "rsa-2048", "rsa-3072", "rsa-4096"] },
      "Kind of a generated key; no effect on an existing key."
    ),
    leaf_validity_days: integer(90, { min: 1, max: 3653 }, "Lifetime of issued certificates."),
    crl_path: text(
      "ca.crl",
      path,
      "File to which the revocation list is exported, PEM. The record of the last list is beside it, with .issued at its end."
    ),
    crl_der_path: text(
      "",
      orEmpty(path),
      "File to which the revocation list is exported in DER too, for web servers. Empty: none."
    ),
    crl_distribution_points: texts(
      [],
      normalUrl,
      "URLs of the revocation list, included in certificates that are issued from then on."
    ),
    ca_issuer_urls: texts(
      [],
      normalUrl,
      "URLs of the CA certificate in DER, included in certificates that are issued from then on."
    ),
    key_source: word("file", { offered: ["file"], unoffered: ["pkcs11"] }, "Where the key of the CA is stored."),
    subject
  }),
  custom: Schema.Struct({
    script_path: text("", orEmpty(path), "Program that signs and revokes. Required with backend custom."),
    args: secrets([], anyText, "Its arguments."),
    timeout_ms: milliseconds(5000, "Time limit of one run of the program."),
    supports_crl: flag(false, "The program answers the hook crl: GET /crl serves its output."),
    supports_renewal_info: flag(false, "The program answers the hook renewal_info, which says when to renew.")
  }),
  relay: Schema.Struct({
    directory_url: text("", orEmpty(httpUrl), "Directory URL of the upstream ACME CA. Required with backend relay."),
    account_key_path: text(
      "upstream_account.key",
      path,
      "Key of the account at the upstream, PEM; created when it is absent. The account's URL is stored beside it."
    ),
    contact: texts([], contactUri, "Contacts that are sent when the account is created."),
    challenge_strategy: word(
      "bypass",
      { offered: ["bypass", "http01", "dns01"] },
      "How control of names is proved to the upstream; bypass when the upstream believes this service without proof."
    ),
    poll_interval_ms: milliseconds(2000, "How often the upstream is asked for the state of an order."),
    poll_timeout_secs: count(300, "Time limit of one issuance at the upstream, including retries."),
    revocation_reasons: flag(
      true,
      "The upstream is told the reason of a revocation; false for one that takes none, such as OpenBao. Here it is kept in any case."
    ),
    eab: Schema.Struct({
      kid: text("", anyText, "Key identifier of a credential from the upstream; used at the first start only."),
      hmac_key: secret(
        "",
        orEmpty(hmacKey),
        "Key of that credential, base64url or base64; better given to `upstream register`."
      )
    }),
    dns01: Schema.Struct({
      provider: word("rfc2136", { offered: ["rfc2136"] }, "How records are created."),
      challenge_alias: text(
        "",
        orEmpty(aliasName),
        "Name at which every challenge is published instead of the ordered name."
      ),
      propagation: Schema.Struct({
        mode: word("none", { offered: ["none", "delay"] }, "Whether to wait before the upstream is asked to validate."),
        delay_secs: integer(30, { min: 0 }, "How long to wait, with mode delay.")
      }),
      rfc2136: Schema.Struct({
        server: text("", orEmpty(hostPort), "DNS server that accepts updates. Required with dns01."),
        zone: text("", orEmpty(zoneName), "Zone in which the records are created. Required with dns01."),
        tsig_key_name: text("", orEmpty(keyName), "Name of the key that signs the updates. Required with dns01."),
        tsig_key_secret: secret("", orEmpty(base64Secret), "The key, standard base64. Required with dns01."),
        tsig_algorithm: choice(
          ["hmac-sha256", "hmac-sha384", "hmac-sha512"],
          "Algorithm of the key; empty means hmac-sha256."
        )
      })
    })
  })
})
