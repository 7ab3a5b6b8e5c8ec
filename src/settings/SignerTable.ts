import { Schema } from "effect"
import {
  aliasName,
  anyText,
  base64Secret,
  commonName,
  contactUri,
  country,
  hmacKey,
  hostPort,
  httpUrl,
  keyName,
  normalUrl,
  orEmpty,
  path,
  zoneName
} from "../kernel/config/Form.ts"
import { choice, count, flag, integer, milliseconds, secret, text, texts, word } from "../kernel/config/Key.ts"

/* The keys of signers. What they mean together is in docs/signers.md. */

const subject = Schema.Struct({
  common_name: text("ACME Service Local CA", commonName, "Common name of a generated CA."),
  organization: text("", anyText, "Organization of a generated CA; empty is left out, here and below."),
  organizational_unit: text("", anyText, "Organizational unit of a generated CA."),
  country: text("", orEmpty(country), "Country code of a generated CA."),
  state: text("", anyText, "State or province of a generated CA."),
  locality: text("", anyText, "Locality of a generated CA.")
})

/** The `signer` section, process-wide and of a profile. */
export const signer = Schema.Struct({
  backend: word("local_ca", { offered: ["local_ca", "relay", "custom"] }, "What signs certificates."),
  local_ca: Schema.Struct({
    cert_path: text(
      "ca.pem",
      path,
      "CA certificate, PEM, followed by its chain. Either it and the key both exist or neither."
    ),
    key_path: text("ca.key", path, "CA key, PEM. Both are generated when neither exists."),
    key_type: word(
      "ecdsa-p256",
      { offered: ["ecdsa-p256", "ecdsa-p384", "rsa-2048", "rsa-3072", "rsa-4096"] },
      "Kind of a generated key; without effect on a key that exists."
    ),
    leaf_validity_days: integer(90, { min: 1, max: 3653 }, "Lifetime of issued certificates."),
    crl_path: text("ca.crl", path, "File the revocation list is exported to, PEM."),
    crl_distribution_points: texts(
      [],
      normalUrl,
      "URLs of the revocation list, put into certificates issued from then on."
    ),
    ca_issuer_urls: texts(
      [],
      normalUrl,
      "URLs of the CA certificate in DER, put into certificates issued from then on."
    ),
    key_source: word("file", { offered: ["file"], unoffered: ["pkcs11"] }, "Where the key of the CA is held."),
    subject
  }),
  custom: Schema.Struct({
    script_path: text("", orEmpty(path), "Program that signs and revokes; needed with that backend."),
    args: texts([], anyText, "Its arguments."),
    timeout_ms: milliseconds(5000, "Time for one run of it."),
    supports_crl: flag(false, "It answers the hook crl: GET /crl serves what it prints."),
    supports_renewal_info: flag(false, "It answers the hook renewal_info, which then says when to renew.")
  }),
  relay: Schema.Struct({
    directory_url: text("", orEmpty(httpUrl), "Directory of the upstream ACME CA; needed with that backend."),
    account_key_path: text(
      "upstream_account.key",
      path,
      "Key of the account there, PEM, made when it is absent; the account's URL is kept beside it."
    ),
    contact: texts([], contactUri, "Contacts given when the account is made."),
    challenge_strategy: word(
      "bypass",
      { offered: ["bypass", "http01", "dns01"] },
      "How names are proved to the upstream; bypass when it takes this service's word."
    ),
    poll_interval_ms: milliseconds(2000, "How often the upstream is asked how far it is."),
    poll_timeout_secs: count(300, "Time for one issuance at the upstream, retries included."),
    eab: Schema.Struct({
      kid: text("", anyText, "Credential of the upstream's, for the first start alone."),
      hmac_key: secret("", orEmpty(hmacKey), "Its key, base64url or base64; better given to `upstream register`.")
    }),
    dns01: Schema.Struct({
      provider: word("rfc2136", { offered: ["rfc2136"] }, "How records are made."),
      challenge_alias: text("", orEmpty(aliasName), "Name in whose place every challenge is published."),
      propagation: Schema.Struct({
        mode: word("none", { offered: ["none", "delay"] }, "Whether to wait before the upstream is asked to look."),
        delay_secs: integer(30, { min: 0 }, "How long, under delay.")
      }),
      rfc2136: Schema.Struct({
        server: text("", orEmpty(hostPort), "Server that takes updates; needed with dns01."),
        zone: text("", orEmpty(zoneName), "Zone the records are made in; needed with dns01."),
        tsig_key_name: text("", orEmpty(keyName), "Name of the key updates are signed with; needed with dns01."),
        tsig_key_secret: secret("", orEmpty(base64Secret), "The key, standard base64; needed with dns01."),
        tsig_algorithm: choice(
          ["hmac-sha256", "hmac-sha384", "hmac-sha512"],
          "Its algorithm; empty is hmac-sha256."
        )
      })
    })
  })
})
