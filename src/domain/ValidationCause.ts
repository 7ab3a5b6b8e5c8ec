/** The words that say why a validation failed, in the log and in `challenges.cause`. */
export type ValidationReason =
  | "resolve_failed"
  | "no_address"
  | "address_denied"
  | "connect_failed"
  | "tls_failed"
  | "exchange_failed"
  | "redirect_refused"
  | "redirect_loop"
  | "redirect_limit"
  | "timeout"
  | "status"
  | "body_too_large"
  | "body_mismatch"
  | "txt_absent"
  | "txt_blanks"
  | "txt_mismatch"
  | "handshake_failed"
  | "alpn_refused"
  | "certificate_absent"
  | "certificate_undecodable"
  | "not_self_signed"
  | "san_absent"
  | "san_mismatch"
  | "extension_absent"
  | "extension_repeated"
  | "extension_not_critical"
  | "extension_undecodable"
  | "extension_length"
  | "extension_mismatch"
  | "given_up"

/**
 * What went wrong in a validation. This is only for operators: if a client received the addresses, it could use the
 * service to look up names (docs/contribute/decisions/clients.md, "A refusal names what is wrong"). `detail` names what
 * was queried or connected to. It never contains a token, a key authorization or a part of a body. `reason` is a {@link
 * ValidationReason}, or a word that a newer version has added.
 */
export interface ValidationCause {
  readonly reason: string
  readonly detail: string
}
