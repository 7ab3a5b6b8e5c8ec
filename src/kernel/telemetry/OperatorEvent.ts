import type { Declaration } from "./Declaration.ts"
import { advisory, error, info, warn } from "./Declaration.ts"

/** The records of operators and of their listener. */
export const operatorEvents = {
  admin_listening: info("address", "tls"),
  admin_origin_resolved: info("origin"),
  admin_config_invalid: error("key", "error"),
  admin_socket_bind_failed: error("address", "error"),
  admin_request_refused: warn("reason", "username"),
  admin_export_completed: info("username", "list", "format", "body_bytes"),
  admin_login_succeeded: info("username", "client_ip", "surface", "step"),
  admin_login_mfa_pending: info("username", "client_ip", "surface", "step"),
  admin_login_failed: warn("username", "client_ip", "surface", "reason"),
  admin_mfa_failed: warn("username", "client_ip", "reason"),
  admin_mfa_verified: info("username", "method"),
  admin_mfa_enrolled: info("username", "method"),
  admin_mfa_disabled: info("username", "method"),
  admin_mfa_recovery_code_used: advisory("username", "remaining"),
  admin_mfa_recovery_codes_reissued: info("username", "surface", "target_username"),
  admin_step_up_failed: warn("username", "client_ip", "surface"),
  admin_logout: info("username", "scope"),
  admin_password_hash_unreadable: warn("username"),
  admin_role_unknown: warn("username"),
  admin_session_revoked: info("username", "surface", "sessions"),
  admin_operator_created: info("username", "surface", "target_username", "role"),
  admin_operator_deleted: info("username", "surface", "target_username"),
  admin_operator_disabled: info("username", "surface", "target_username", "sessions"),
  admin_operator_enabled: info("username", "surface", "target_username"),
  admin_operator_role_changed: info("username", "surface", "target_username", "role", "sessions"),
  admin_operator_contact_changed: info("username", "surface", "target_username"),
  admin_operator_password_changed: info("username", "surface", "target_username", "sessions"),
  admin_operator_totp_reset: info("username", "surface", "target_username", "sessions"),
  admin_operator_session_revoked: info("username", "surface", "target_username", "sessions"),
  admin_token_created: info("username", "surface", "target_username", "name", "role"),
  admin_token_revoked: info("username", "surface", "target_username", "name"),
  admin_token_refused: warn("username", "name", "client_ip", "reason")
} as const satisfies Record<string, Declaration>
