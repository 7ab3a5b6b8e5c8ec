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
    "Address to serve operators on. An address that is not loopback needs admin.tls.enabled."
  ),
  base_url: text(
    "http://localhost:3001",
    baseUrl,
    "URL that the browsers of operators use. A request from another origin is refused."
  ),
  require_mfa: flag(false, "Operators without a second factor must enrol one at their next sign-in."),
  session_ttl_seconds: count(43200, "Lifetime of a session, even if it is in use."),
  session_idle_timeout_seconds: count(3600, "A session that is not used for this long ends."),
  login_max_attempts: count(5, "Failed sign-ins of one address within the window. Further ones are refused."),
  login_window_seconds: count(300, "Length of that window."),
  max_body_bytes: count(65536, "Largest body of a request."),
  page_size_max: count(200, "Most rows of one page. A larger limit is lowered to it."),
  template_dir: text("", orEmpty(path), "Folder of page templates that replace built-in ones of the same name."),
  tls: Schema.Struct({
    enabled: flag(false, "Speak HTTPS instead of HTTP."),
    cert_path: text("admin.pem", path, "Certificate chain, PEM. A self-signed pair is made when a file is missing."),
    key_path: text("admin.key", path, "Key of that certificate, PEM."),
    handshake_timeout_ms: milliseconds(10000, "Time for one TLS handshake.")
  }),
  filter,
  notify: adminNotify
})
