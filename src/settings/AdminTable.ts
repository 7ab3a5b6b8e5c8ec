import * as Schema from "effect/Schema"
import { count, flag, milliseconds, text } from "../engine/config/Key.ts"
import { baseUrl, bindAddress, orEmpty, path } from "../engine/config/ValueForm.ts"
import { adminNotify } from "./NotifyTable.ts"
import { filter } from "./PolicyTable.ts"

/* The keys of the operators' listener and of their sign-in. */

/** The keys of `[admin]`. */
export const admin = Schema.Struct({
  enabled: flag(false, "Serve the API for operators, in processes with the role admin."),
  bind_address: text(
    "127.0.0.1:3001",
    bindAddress,
    "Address on which operators are served. If it is not a loopback address, admin.tls.enabled must be on."
  ),
  base_url: text(
    "http://localhost:3001",
    baseUrl,
    "URL that the browsers of operators use. The service refuses requests from another origin."
  ),
  require_mfa: flag(false, "Operators without a second factor must enrol one at their next sign-in."),
  session_ttl_seconds: count(43200, "Lifetime of a session, even if the session is in use."),
  session_idle_timeout_seconds: count(3600, "A session that is not used for this long ends."),
  login_max_attempts: count(
    5,
    "How many sign-ins of one address may fail within the window. Further attempts are refused."
  ),
  login_window_seconds: count(300, "Length of that window."),
  max_body_bytes: count(65536, "Largest body of a request."),
  page_size_max: count(
    200,
    "Highest number of rows on one page. A larger limit in a request is lowered to this number."
  ),
  template_dir: text("", orEmpty(path), "Folder of page templates that replace built-in ones of the same name."),
  tls: Schema.Struct({
    enabled: flag(false, "Speak HTTPS instead of HTTP."),
    cert_path: text(
      "admin.pem",
      path,
      "Certificate chain, PEM. If a file is missing, the service makes a key and a self-signed certificate."
    ),
    key_path: text("admin.key", path, "Key of that certificate, PEM."),
    handshake_timeout_ms: milliseconds(10000, "Time limit of one TLS handshake.")
  }),
  filter,
  notify: adminNotify
})
