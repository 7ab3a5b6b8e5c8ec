import type { Kind, Table } from "./CopiedTable.ts"

const table = (
  name: string,
  key: string,
  columns: { readonly [column: string]: Kind },
  more: { readonly isNumbered: boolean } = { isNumbered: false }
): Table => ({ name, key: key.split(" "), columns: Object.entries(columns), ...more })

/**
 * Every table of the schema. A table comes before the tables that refer to it. `schema_migrations` is not in this list,
 * because it is different in each database.
 */
export const tables: ReadonlyArray<Table> = [
  table("eab_keys", "kid", {
    kid: "bytes",
    secret: "bytes",
    label: "text",
    profile: "text",
    status: "text",
    created_at: "int"
  }),
  table("accounts", "id", {
    id: "uuid",
    profile: "text",
    pubkey: "bytes",
    status: "text",
    contact: "text",
    terms_of_service_agreed: "bool",
    eab_kid: "bytes",
    created_at: "int",
    created_ip: "text",
    created_ptr: "text",
    last_seen_at: "int",
    last_seen_ip: "text",
    last_seen_ptr: "text",
    created_network: "text"
  }),
  table("orders", "id", {
    id: "uuid",
    profile: "text",
    account_id: "uuid",
    status: "text",
    identifiers: "text",
    not_before: "int",
    not_after: "int",
    replaces: "text",
    error: "text",
    certificate: "text",
    cert_serial: "text",
    cert_pubkey: "bytes",
    cert_not_after: "int",
    revoked_at: "int",
    revocation_reason: "int",
    created_at: "int",
    created_ip: "text",
    created_ptr: "text",
    not_granted: "text",
    expires_at: "int"
  }),
  table("order_identifiers", "order_id name", { order_id: "uuid", profile: "text", name: "text", name_rev: "text" }),
  table("authorizations", "id", {
    id: "uuid",
    order_id: "uuid",
    identifier: "text",
    status: "text",
    created_at: "int"
  }),
  table("challenges", "id", {
    id: "uuid",
    authz_id: "uuid",
    type: "text",
    position: "int",
    token: "text",
    status: "text",
    validated_at: "int",
    error: "text",
    created_at: "int",
    cause: "text"
  }),
  table("nonces", "value", { value: "text", created_at: "int", created_millisecond: "int" }),
  table("upstream_orders", "order_id", {
    order_id: "uuid",
    status: "text",
    upstream_order_url: "text",
    upstream_finalize_url: "text",
    upstream_certificate_url: "text",
    csr_der: "bytes",
    error: "text",
    client_ip: "text",
    client_ptr: "text",
    user_agent: "text",
    request_id: "text",
    started_at: "int",
    created_at: "int",
    updated_at: "int",
    asks: "int",
    asked_at: "int",
    renewal_start: "int",
    renewal_end: "int",
    renewal_url: "text",
    renewal_due: "int"
  }),
  table("revocations", "issuer serial", {
    issuer: "text",
    serial: "text",
    revoked_at: "int",
    reason: "int",
    not_after: "int"
  }),
  table("orphaned_certificates", "order_id fingerprint", {
    order_id: "uuid",
    fingerprint: "text",
    profile: "text",
    serial: "text",
    leaf: "bytes",
    not_after: "int",
    cause: "text",
    status: "text",
    error: "text",
    found_at: "int",
    updated_at: "int"
  }),
  table("burnt_keys", "pubkey account_id", { pubkey: "bytes", account_id: "uuid", burnt_at: "int" }),
  table("expiry_digests", "profile", { profile: "text", sent_at: "int", doubted_at: "int" }),
  table("authority_notices", "profile issuer", { profile: "text", issuer: "text", not_after: "int", days: "int" }),
  table("expiry_reminders", "order_id", { order_id: "uuid", sent_at: "int" }),
  table("reminded_addresses", "key", { key: "text", window_started_at: "int", mails: "int" }),
  table("crls", "issuer", {
    issuer: "text",
    crl_number: "int",
    der: "bytes",
    this_update: "int",
    next_update: "int"
  }),
  table("http01_tokens", "token", {
    token: "text",
    key_authorization: "text",
    created_at: "int",
    expires_at: "int"
  }),
  table("jobs", "id", {
    id: "uuid",
    kind: "text",
    dedup_key: "text",
    payload: "text",
    status: "text",
    run_at: "int",
    attempts: "int",
    max_attempts: "int",
    deadline: "int",
    lease_until: "int",
    lease_owner: "text",
    last_error: "text",
    created_at: "int",
    updated_at: "int",
    share: "text",
    spent_seconds: "int",
    joined: "int"
  }),
  table("workers", "owner", {
    owner: "text",
    roles: "text",
    version: "text",
    started_at: "int",
    last_seen_at: "int",
    shares_syncs: "int"
  }),
  table("profile_states", "profile owner", {
    profile: "text",
    owner: "text",
    trouble: "text",
    since: "int",
    stopped_issuer: "text"
  }),
  table("admin_users", "id", {
    id: "uuid",
    username: "text",
    password_hash: "text",
    status: "text",
    role: "text",
    contact_email: "text",
    totp_secret: "bytes",
    totp_pending_secret: "bytes",
    totp_last_step: "int",
    known_login_ips: "text",
    created_at: "int",
    updated_at: "int",
    last_login_at: "int"
  }),
  table("admin_sessions", "token_hash", {
    token_hash: "text",
    user_id: "uuid",
    csrf_token: "text",
    state: "text",
    mfa_attempts: "int",
    created_at: "int",
    expires_at: "int",
    last_seen_at: "int",
    created_ip: "text",
    user_agent: "text"
  }),
  table("admin_recovery_codes", "id", {
    id: "uuid",
    user_id: "uuid",
    code_hash: "text",
    created_at: "int",
    used_at: "int"
  }),
  table("api_tokens", "id", {
    id: "uuid",
    user_id: "uuid",
    name: "text",
    role: "text",
    token_hash: "text",
    allowed_addresses: "text",
    created_at: "int",
    expires_at: "int",
    last_used_at: "int",
    last_used_ip: "text",
    revoked_at: "int"
  }),
  table("login_attempts", "key", { key: "text", window_started_at: "int", attempts: "int" }),
  table("login_failures", "key", { key: "text", failures: "int", last_failed_at: "int" }),
  table("audit_log", "id", {
    id: "int",
    created_at: "int",
    event: "text",
    outcome: "text",
    actor_kind: "text",
    actor_id: "text",
    profile: "text",
    account_id: "text",
    order_id: "text",
    cert_serial: "text",
    identifiers: "text",
    client_ip: "text",
    client_ptr: "text",
    user_agent: "text",
    request_id: "text",
    reason: "text",
    detail: "text"
  }, { isNumbered: true })
]
