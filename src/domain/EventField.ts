/** The dictionary of the log: every field a record may have ("Conventions" of `telemetry.md`). */

/** Types of fields. */
export interface FieldTypes {
  readonly text: string
  /** A machine word of a closed set. */
  readonly word: string
  readonly int: number
  readonly bool: boolean
  /** Names; the record keeps the first ten and, beyond that, adds `<field>_total`. */
  readonly names: ReadonlyArray<string>
}

/** One meaning and one type per field name, everywhere. */
export const fields = {
  account_id: "text",
  address: "text",
  answers: "int",
  attempts: "int",
  audit_event: "word",
  authz_id: "text",
  backend: "word",
  body_bytes: "int",
  body_preview: "text",
  challenge_id: "text",
  client_ip: "text",
  cert_serial: "text",
  check: "word",
  code: "int",
  count: "int",
  crl_number: "text",
  database_url: "text",
  elapsed_ms: "int",
  entries: "int",
  error: "text",
  exit_code: "int",
  file_present: "bool",
  generation: "int",
  hook: "word",
  hop: "int",
  http: "text",
  https: "text",
  identifier: "text",
  identifiers: "names",
  in_flight: "int",
  issuer: "text",
  job_id: "text",
  jobs_released: "int",
  key: "text",
  key_fp: "text",
  key_type: "word",
  previous_key_fp: "text",
  keys_from_env: "int",
  keys_from_file: "int",
  kid: "text",
  kind: "word",
  latency_ms: "int",
  lease_seconds: "int",
  limit: "word",
  listener: "word",
  listeners_rebound: "int",
  max_concurrent: "int",
  name: "text",
  next_update: "text",
  no_proxy_entries: "int",
  nonce_fp: "text",
  not_after: "text",
  open: "int",
  order_id: "text",
  owner: "text",
  path: "text",
  pending: "int",
  poll_interval_ms: "int",
  pool_max: "int",
  profile: "text",
  reason: "word",
  requests_cut: "int",
  retry_base_seconds: "int",
  retry_max_seconds: "int",
  roles: "text",
  rows_imported: "int",
  rows_removed: "int",
  rows_updated: "int",
  rule: "text",
  scope: "word",
  self_signed: "bool",
  series: "word",
  set_aside: "text",
  sha256: "text",
  signal: "word",
  source: "word",
  stage: "word",
  statement: "word",
  status: "int",
  base_url: "text",
  target_host: "text",
  tls: "bool",
  type: "word",
  version: "text",
  waited_ms: "int"
} as const satisfies Record<string, keyof FieldTypes>

/** The name of a field. */
export type FieldName = keyof typeof fields
