import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { ClientConfig } from "pg"
import { Client } from "pg"
import type { Limits, PostgresClient } from "./PostgresClient.ts"
import { codeOf, makeClient } from "./PostgresClient.ts"
import type { SessionAttributes } from "./PostgresUrl.ts"
import { sessionAttributesOf, urlsOfServers } from "./PostgresUrl.ts"
import { copied, shareLock } from "./ServedLock.ts"
import { askProcess, isSessionKept, notKept } from "./SessionKept.ts"
import { SqlError } from "./SqlError.ts"

/* Finds a PostgreSQL server among those of the URL, and connects to it. */

/** `database.*` of the configuration. */
export interface PostgresOptions {
  readonly url: Redacted.Redacted
  /** Which servers are accepted if the URL names several and does not say which. */
  readonly ofSeveral?: SessionAttributes
  readonly pool_max: number
  readonly acquire_timeout_ms: number
  /**
   * `transaction` means that a proxy gives each transaction a session of the server, so the service must leave no state
   * in a session.
   */
  readonly pooling?: "session" | "transaction"
  /** A URL of the same database, at which the connection that listens keeps its session. Empty means `url`. */
  readonly listen_url?: Redacted.Redacted
  /**
   * The URL of a standby, for reads that may lack the last changes. Empty means none. Only a process that serves uses
   * it.
   */
  readonly read_url?: Redacted.Redacted
  /** How far behind the standby may be. */
  readonly read_max_lag_seconds?: number
  /**
   * Whether this process serves. If it does and no proxy pools transactions, each of its sessions shares the lock of
   * `ServedLock.ts`.
   */
  readonly isServing?: boolean
  /** Whether a database with another encoding than UTF8 is refused. */
  readonly needsUtf8?: boolean
  /** The server's own limits apply where they are lower. */
  readonly statement_timeout_ms?: number
  readonly lock_timeout_ms?: number
  readonly idle_in_transaction_timeout_ms?: number
}

const limitsOf = (options: PostgresOptions): Limits => ({
  statement_timeout: options.statement_timeout_ms ?? 30_000,
  lock_timeout: options.lock_timeout_ms ?? 10_000,
  idle_in_transaction_session_timeout: options.idle_in_transaction_timeout_ms ?? 30_000
})

/** The servers of the URL, and which of them are accepted. */
export interface Servers {
  readonly servers: ReadonlyArray<ClientConfig>
  readonly attributes: SessionAttributes
  readonly keepsSession: boolean
  readonly sharesLock: boolean
  readonly needsUtf8: boolean
  readonly limits: Limits
}

const serverOf = (connectionString: string, connectionTimeoutMillis: number): ClientConfig => {
  const { database, host, password, port, ssl, user } = new Client({ connectionString })
  return {
    user,
    password,
    host,
    port,
    database,
    ssl,
    application_name: new URL(connectionString).searchParams.get("application_name") ?? undefined,
    connectionTimeoutMillis,
    keepAlive: true,
    // An idle connection that a firewall has forgotten is noticed within minutes instead of hours.
    keepAliveInitialDelayMillis: 30_000
  }
}

/**
 * Reads the URL and the files that it names. This happens once, so that a later connection does not fail because a file
 * was moved. The servers share the time for which a request waits, so that a server that does not answer leaves time
 * for the others.
 */
export const readUrl = (options: PostgresOptions): Effect.Effect<Servers, SqlError> =>
  Effect.try({
    try: () => {
      const url = Redacted.value(options.url)
      const urls = urlsOfServers(url)
      const patience = Math.ceil(options.acquire_timeout_ms / urls.length)
      return {
        servers: urls.map((one) => serverOf(one, patience)),
        attributes: sessionAttributesOf(url, options.ofSeveral) ?? "any",
        keepsSession: options.pooling !== "transaction",
        sharesLock: options.isServing === true && options.pooling !== "transaction",
        needsUtf8: options.needsUtf8 === true,
        limits: limitsOf(options)
      }
    },
    catch: (cause) => new SqlError({ cause, message: "the URL cannot be used" })
  })

/** The server answers, but is not one of those that the URL accepts. */
class Unfit extends Error {
  readonly code: string

  constructor(attributes: SessionAttributes, isReadOnly: boolean) {
    super(`the server is ${isReadOnly ? "read-only" : "no standby"}, and the URL takes ${attributes}`)
    this.code = isReadOnly ? "25006" : ""
  }
}

/**
 * Every server of the URL has refused the connection. If one of the refusals is temporary, the code is the code of that
 * refusal.
 */
class NoneFits extends Error {
  readonly code: string

  constructor(refusals: ReadonlyArray<readonly [server: ClientConfig, cause: unknown]>) {
    const causes = refusals.map(([, cause]) => cause)
    super(
      refusals.map(([{ host, port }, cause]) => `${host}:${port}: ${cause instanceof Error ? cause.message : cause}`)
        .join("; ")
    )
    this.code = codeOf(causes.find(isPassing) ?? causes[0])
  }
}

// PgBouncer uses one code for all its refusals, and other proxies have no code of their own for a lack of connections.
const ofProxies =
  /no more connections|max client connections|too many (clients|connections)|query_wait_timeout|cannot connect to server|server_login_retry/i

/** Returns whether another attempt may succeed, because the server answers but cannot accept a connection now. */
export const isPassing = (cause: unknown): boolean =>
  /^(53300|57P03|25006)$/.test(codeOf(cause)) ||
  cause instanceof Unfit ||
  cause instanceof Error && /^(08|XX000)/.test(codeOf(cause)) && ofProxies.test(cause.message)

const askState =
  `SELECT pg_is_in_recovery() AS "isStandby", current_setting('transaction_read_only') = 'on' AS "isReadOnly",
   current_setting('server_version_num')::integer AS "version", current_setting('server_encoding') AS "encoding",
   ${askProcess}`

/** The oldest version on which the statements were run, in the form of `server_version_num`. */
const oldest = 130_000

/** Returns the error for a server that is too old for the statements. No later attempt can succeed. */
const tooOld = (version: number): Error =>
  new Error(
    `the server is PostgreSQL ${Math.floor(version / 10_000)}, and the service needs ${
      oldest / 10_000
    } or newer (docs/operate/databases.md)`
  )

/** Returns the error for a database that lacks characters. No later attempt can succeed. */
const lacksCharacters = (encoding: string): Error =>
  new Error(
    `the database has the encoding ${encoding}, and the service needs UTF8: make another one with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0, and copy any rows there with acme-svc transfer (docs/operate/databases.md)`
  )

// The limits that are set for the server, the database and the role, whatever this session has set.
const askLimits = `SELECT json_object_agg(name, reset_val::bigint) AS "limits" FROM pg_settings
  WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout')`

/** Returns the lower of two limits. 0 means that the server has no limit. */
const lower = (ours: number, theirs = 0): number => theirs > 0 ? Math.min(ours, theirs) : ours

interface State {
  readonly isStandby: boolean
  readonly isReadOnly: boolean
  readonly version: number
  readonly pid: number
  readonly encoding: string
  /** Whether no command has taken the database for itself. */
  readonly isFree?: boolean
}

const fits: { readonly [A in SessionAttributes]: (state: State) => boolean } = {
  any: () => true,
  "read-write": ({ isReadOnly }) => !isReadOnly,
  primary: ({ isStandby }) => !isStandby,
  standby: ({ isStandby }) => isStandby
}

/**
 * A connection keeps the plans of its statements, and may make them while tables are small or empty. At that time,
 * reading a whole table seems to cost less than using its index. Compiling a statement costs more than it saves.
 * The locks of the service need READ COMMITTED, but an administrator may have set another level for the role or the
 * database.
 */
const settings = "SET enable_seqscan = off; SET jit = off; SET default_transaction_isolation = 'read committed'"

/**
 * Connects to the first server that fits. Unless the URL accepts any server, begins with the server that fitted last.
 */
export class Connector {
  readonly #from: Servers
  #last = 0
  #limits: Limits | undefined
  #isSessionKept = false
  /** How long the server lets a session be idle. */
  #idleMillis = Infinity

  constructor(servers: Servers) {
    this.#from = servers
  }

  /** The limits in force. Each is the configured limit, or the limit of the server if that limit is lower. */
  get limits(): Limits {
    return this.#limits ?? this.#from.limits
  }

  /** Opens a connection. Rejects with the reason if no server fits. */
  async connect(): Promise<PostgresClient> {
    const { attributes, servers } = this.#from
    const first = attributes === "any" ? 0 : this.#last
    const refusals: Array<readonly [ClientConfig, unknown]> = []
    for (const server of [...servers.slice(first), ...servers.slice(0, first)]) {
      try {
        const client = await this.#connectTo(server)
        this.#last = servers.indexOf(server)
        return client
      } catch (cause) {
        refusals.push([server, cause])
      }
    }
    throw refusals.length === 1 ? refusals[0]?.[1] : new NoneFits(refusals)
  }

  async #connectTo(server: ClientConfig): Promise<PostgresClient> {
    const { attributes, keepsSession, needsUtf8, sharesLock } = this.#from
    if (this.#limits === undefined) await this.#readLimits(server)
    const client = makeClient(server, keepsSession, this.limits)
    try {
      const state = await opened<State>(client, server, sharesLock ? `${askState}, ${shareLock} AS "isFree"` : askState)
      if (state.version < oldest) throw tooOld(state.version)
      if (needsUtf8 && state.encoding !== "UTF8") throw lacksCharacters(state.encoding)
      if (!fits[attributes](state)) throw new Unfit(attributes, state.isReadOnly)
      if (state.isFree === false) throw new Error(copied)
      client.isReadOnly = state.isReadOnly
      // A session that the server is about to end must not be lent.
      client.idleMillis = this.#idleMillis / 2
      if (keepsSession) client.query(settings, () => {}) // sent ahead of the first statement
      // Some proxies keep the session of a connection from its first setting on.
      if (keepsSession && !this.#isSessionKept) await this.#checkSession(client, server, state)
      return client
    } catch (cause) {
      void end(client)
      throw cause
    }
  }

  /** Fails if the server is behind a proxy that keeps no sessions. This is checked for the first connection. */
  async #checkSession(client: PostgresClient, server: ClientConfig, { pid }: State): Promise<void> {
    if (pid !== client.processID) {
      const other = makeClient(server, false)
      try {
        await (other.connect() as Promise<unknown>)
        if (!await isSessionKept(client, other, server.connectionTimeoutMillis)) throw new Error(notKept)
      } finally {
        await end(other)
      }
    }
    this.#isSessionKept = true
  }

  /** Reads the limits of the server. A session that sets its own limits when it opens cannot see them. */
  async #readLimits(server: ClientConfig): Promise<void> {
    const client = makeClient(server, false)
    try {
      const { limits } = await opened<
        { readonly limits: Partial<Limits> & { readonly idle_session_timeout?: number } }
      >(
        client,
        server,
        askLimits
      )
      const { idle_in_transaction_session_timeout, lock_timeout, statement_timeout } = this.#from.limits
      this.#idleMillis = lower(Infinity, limits.idle_session_timeout)
      this.#limits = {
        statement_timeout: lower(statement_timeout, limits.statement_timeout),
        lock_timeout: lower(lock_timeout, limits.lock_timeout),
        idle_in_transaction_session_timeout: lower(
          idle_in_transaction_session_timeout,
          limits.idle_in_transaction_session_timeout
        )
      }
    } finally {
      await end(client)
    }
  }
}

/** Opens a connection and returns the row of its first statement. */
const opened = async <Row>(client: PostgresClient, server: ClientConfig, text: string): Promise<Row> => {
  await (client.connect() as Promise<unknown>)
  const asked = { text, query_timeout: server.connectionTimeoutMillis }
  const { rows: [row] } = await (client.query(asked) as Promise<{ readonly rows: readonly [Row] }>)
  return row
}

const end = (client: PostgresClient): Promise<void> => (client.end() as Promise<void>).catch(() => {})
