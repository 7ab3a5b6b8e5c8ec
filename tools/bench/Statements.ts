/*
 * The statements that every issuance needs, in the necessary transactions. A service would run only these statements if
 * it combined as many as possible. The issuance has one name and one challenge, and validation is bypassed.
 */

export type Dialect = "sqlite" | "postgres"

interface Step {
  /** `:name` stands for a value of the issuance. `[[…]]` encloses text that only PostgreSQL needs. */
  readonly sql: string
  /** The name under which the column `id` of the first row is stored, for later statements. */
  readonly keep?: string
}

/** Statements that commit together. A single statement commits by itself. */
interface Group {
  readonly label: string
  readonly steps: ReadonlyArray<Step>
}

const nonce = (index: number): Step => ({
  sql: `DELETE FROM nonces WHERE value = :nonce${index} RETURNING created_at`
})

const accountColumns = "id, profile, pubkey, status, contact, terms_of_service_agreed, last_seen_at"
const account: Step = { sql: `SELECT ${accountColumns} FROM accounts WHERE id = :account AND profile = :profile` }
const orderColumns =
  "o.id, o.profile, o.account_id, o.status, o.identifiers, o.not_before, o.not_after, o.replaces, o.error, o.created_at"
const order: Step = {
  sql: `SELECT ${orderColumns}, a.id AS authz_id FROM orders o JOIN authorizations a ON a.order_id = o.id
    WHERE o.id = :order AND o.profile = :profile AND o.account_id = :account`
}
const challengeColumns = `c.id, c.type, c.token, c.status, c.validated_at, c.error, a.id AS authz_id,
  a.status AS authz_status, a.identifier, a.created_at, o.id AS order_id, o.status AS order_status`
const challengeTables = "challenges c JOIN authorizations a ON a.id = c.authz_id JOIN orders o ON o.id = a.order_id"
const lockOrder: Step = { sql: "[[SELECT 1 FROM orders WHERE id = :order FOR UPDATE]]" }

/** The number of nonces that one statement makes in advance. */
export const noncesPerBatch = 252
export const noncesPerIssuance = 7

/** The groups in the order of the requests. The signing job is between finalize and the poll. */
const groups: ReadonlyArray<Group> = [
  {
    label: "newAccount: look up the key",
    steps: [{ sql: `SELECT ${accountColumns} FROM accounts WHERE profile = :profile AND pubkey = :pubkey` }]
  },
  {
    label: "newAccount: spend the nonce, insert",
    steps: [nonce(0), {
      sql: `INSERT INTO accounts (id, profile, pubkey, status, contact, terms_of_service_agreed, created_at, created_ip,
          last_seen_at, last_seen_ip)
        VALUES (:account, :profile, :pubkey, 'valid', '[]', :true, :now, :ip, :now, :ip)
        ON CONFLICT (profile, pubkey) DO NOTHING RETURNING id`
    }]
  },
  { label: "newOrder: read the account", steps: [account] },
  {
    label: "newOrder: spend the nonce, insert order, name, authorization, challenge",
    steps: [
      nonce(1),
      {
        sql: `INSERT INTO orders (id, profile, account_id, status, identifiers, created_at, created_ip)
          VALUES (:order, :profile, :account, 'pending', :identifiers, :now, :ip)`
      },
      {
        sql: "INSERT INTO order_identifiers (order_id, profile, name, name_rev) VALUES (:order, :profile, :name, :rev)"
      },
      {
        sql: `INSERT INTO authorizations (id, order_id, identifier, status, created_at)
          VALUES (:authz, :order, :identifier, 'pending', :now)`
      },
      {
        sql: `INSERT INTO challenges (id, authz_id, type, position, token, status, created_at)
          VALUES (:challenge, :authz, 'http-01', 0, :token, 'pending', :now)`
      }
    ]
  },
  { label: "authz: read the account", steps: [account] },
  { label: "authz: spend the nonce", steps: [nonce(2)] },
  {
    label: "authz: read",
    steps: [{
      sql: `SELECT ${challengeColumns} FROM ${challengeTables}
        WHERE a.id = :authz AND o.profile = :profile AND o.account_id = :account ORDER BY c.position`
    }]
  },
  { label: "challenge: read the account", steps: [account] },
  {
    label: "challenge: spend the nonce, read, accept, promote the order",
    steps: [
      nonce(3),
      {
        sql: `SELECT ${challengeColumns} FROM ${challengeTables}
          WHERE c.id = :challenge AND o.profile = :profile AND o.account_id = :account`
      },
      lockOrder,
      {
        sql: `UPDATE challenges SET status = 'valid', validated_at = :now WHERE id = :challenge AND status = 'pending'
          RETURNING id`
      },
      { sql: "UPDATE authorizations SET status = 'valid' WHERE id = :authz AND status = 'pending' RETURNING id" },
      {
        sql: `UPDATE orders SET status = 'ready' WHERE id = :order AND status = 'pending'
          AND NOT EXISTS (SELECT 1 FROM authorizations a WHERE a.order_id = orders.id AND a.status <> 'valid')
          RETURNING id`
      }
    ]
  },
  { label: "finalize: read the account", steps: [account] },
  {
    label: "finalize: spend the nonce, read the order, look for a burnt key, claim, enqueue",
    steps: [
      nonce(4),
      order,
      {
        sql: "SELECT burnt_at FROM burnt_keys WHERE pubkey = :certPubkey AND account_id = :account LIMIT 1"
      },
      lockOrder,
      {
        sql: `UPDATE orders SET status = 'processing'
          WHERE id = :order AND profile = :profile AND account_id = :account AND created_at > :past AND status = 'ready'
          AND NOT EXISTS (SELECT 1 FROM authorizations a WHERE a.order_id = orders.id AND a.status <> 'valid')
          RETURNING id`
      },
      {
        sql: `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, deadline,
            created_at, updated_at)
          VALUES (:job, 'signer_issue', :dedupKey, :payload, 'ready', :now, 0, 5, :later, :now, :now)
          ON CONFLICT (kind, dedup_key) WHERE status IN ('ready', 'running') DO NOTHING RETURNING id`
      }
    ]
  },
  {
    label: "job: claim",
    steps: [{
      sql: `UPDATE jobs SET status = 'running', lease_owner = :owner, updated_at = :now, lease_until = :later,
          attempts = attempts + 1
        WHERE id IN (SELECT id FROM jobs WHERE status = 'ready' AND run_at <= :now AND kind = 'signer_issue'
          ORDER BY run_at, id LIMIT 1 [[FOR UPDATE SKIP LOCKED]])
        RETURNING id, kind, dedup_key, payload, attempts, max_attempts, deadline, created_at`,
      keep: "claimed"
    }]
  },
  {
    label: "job: read the order",
    steps: [{
      sql: `SELECT ${orderColumns}, c.status AS account_status,
          (SELECT count(*) FROM authorizations a WHERE a.order_id = o.id AND a.status <> 'valid') AS unvalidated
        FROM orders o JOIN accounts c ON c.id = o.account_id WHERE o.id = :order AND o.profile = :profile`
    }]
  },
  {
    label: "job: store the certificate, settle, audit",
    steps: [
      lockOrder,
      {
        sql: `UPDATE orders SET status = 'valid', certificate = :certificate, cert_serial = :serial,
            cert_pubkey = :certPubkey, cert_not_after = :later
          WHERE id = :order AND status = 'processing'
            AND NOT EXISTS (SELECT 1 FROM authorizations a WHERE a.order_id = orders.id AND a.status <> 'valid')
            AND EXISTS (SELECT 1 FROM accounts c WHERE c.id = orders.account_id AND c.status = 'valid')
          RETURNING id`
      },
      {
        sql: `UPDATE jobs SET status = 'done', last_error = NULL, lease_until = NULL, lease_owner = NULL,
            updated_at = :now
          WHERE id = :claimed AND status = 'running' AND lease_owner = :owner RETURNING id`
      },
      {
        sql: `INSERT INTO audit_log (created_at, event, outcome, actor_kind, actor_id, profile, account_id, order_id,
            cert_serial, identifiers, client_ip, user_agent, request_id, detail)
          VALUES (:now, 'certificate_issued', 'success', 'acme', :dedupKey, :profile, :dedupKey, :dedupKey,
            :serial, :identifiers, :ip, 'acme-svc-bench', :dedupKey, :detail)`
      }
    ]
  },
  { label: "order: read the account", steps: [account] },
  { label: "order: spend the nonce", steps: [nonce(5)] },
  { label: "order: read", steps: [order] },
  { label: "certificate: read the account", steps: [account] },
  { label: "certificate: spend the nonce", steps: [nonce(6)] },
  {
    label: "certificate: read",
    steps: [{
      sql: `SELECT certificate FROM orders
        WHERE id = :order AND profile = :profile AND account_id = :account AND status = 'valid'`
    }]
  }
]

/** Inserts a batch of nonces, which are given as one JSON array. */
export const insertNonces: { readonly [D in Dialect]: string } = {
  sqlite: "INSERT INTO nonces (value, created_at) SELECT value, ? FROM json_each(?)",
  postgres: "INSERT INTO nonces (value, created_at) SELECT value, $1 FROM json_array_elements_text($2::json)"
}

/** A statement in the SQL of one engine, with the names of its values in order. */
export interface CompiledStep {
  readonly text: string
  readonly order: ReadonlyArray<string>
  readonly keep: string | undefined
}

export interface CompiledGroup {
  readonly label: string
  readonly isTransaction: boolean
  readonly steps: ReadonlyArray<CompiledStep>
}

const compileStep = ({ keep, sql }: Step, dialect: Dialect): ReadonlyArray<CompiledStep> => {
  const order: Array<string> = []
  const text = sql
    .replaceAll(/\[\[(.*?)\]\]/gs, dialect === "postgres" ? "$1" : "")
    .replaceAll(/(?<!:):([a-z]\w*)/gi, (_, name: string) => {
      if (dialect === "sqlite") {
        order.push(name)
        return "+?" // This follows docs/contribute/decisions/hot-path.md, "Statements of the embedded engine".
      }
      const known = order.indexOf(name)
      return `$${known >= 0 ? known + 1 : order.push(name)}`
    })
    .replaceAll(/\s+/g, " ").trim()
  return text === "" ? [] : [{ text, order, keep }]
}

/** Returns whether a group belongs to newAccount, which is also measured separately. */
export const isOfNewAccount = ({ label }: { readonly label: string }): boolean => label.startsWith("newAccount:")

/** Returns the groups in the SQL of an engine. */
export const compile = (dialect: Dialect): ReadonlyArray<CompiledGroup> =>
  groups.map(({ label, steps }) => {
    const compiled = steps.flatMap((step) => compileStep(step, dialect))
    return { label, isTransaction: compiled.length > 1, steps: compiled }
  })

/** How many transactions of one issuance write. A batch of nonces, which serves many issuances, does not count. */
export const writingTransactions = groups
  .filter(({ steps }) => steps.some(({ sql }) => /^(INSERT|UPDATE|DELETE)/.test(sql)))
  .length
