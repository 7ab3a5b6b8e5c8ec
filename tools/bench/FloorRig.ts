import { join } from "node:path"
import type { PostgresCluster } from "../../test/support/Postgres.ts"
import type { bareHttp, TlsFiles } from "./BareHttp.ts"
import type { Act, Exchange } from "./Client.ts"
import type { Cryptography, Extract, floor } from "./Floor.ts"
import type { Forked } from "./Forked.ts"
import { startForked } from "./Forked.ts"
import type { load } from "./Load.ts"
import type { Postmaster } from "./Postmaster.ts"
import * as Procfs from "./Procfs.ts"
import type { Proof } from "./Proof.ts"
import { lastingToken } from "./Proof.ts"
import type { Service, Synchronous } from "./Service.ts"
import { migrate } from "./Service.ts"

/* The processes that measure the floor on the machine of a running service. */

/** The floor, measured before and after one window, in CPU microseconds per issuance, or per request of one kind. */
export interface Floor extends Cryptography {
  readonly http: number
  readonly statements: number
  /** The cost of two look-ups and one request to a client's web server, or 0 if nothing is proved. */
  readonly validation: number
  /** The cost of the statements in the database server. On SQLite, this cost is part of the process. */
  readonly databaseServer: number
  /** The cost in the process itself, which is everything except `databaseServer`. */
  readonly total: number
}

// The length of a full round, in milliseconds where possible, and otherwise in issuances or validations.
const floorMillis = { cryptography: 100, sqlite: 300, http: 600 }
const floorIssuances = 108
const floorValidations = 200

const lastOfEachKind = (exchanges: ReadonlyArray<Exchange>): ReadonlyArray<Exchange> => [
  ...new Map(exchanges.map((exchange) => [exchange.kind, exchange])).values()
]

/** Returns the mean of the measurements before and after a window. */
export const between = (before: Floor, after: Floor): Floor => {
  const mean = (key: keyof Floor) => (before[key] + after[key]) / 2
  return {
    verify: mean("verify"),
    importKey: mean("importKey"),
    csr: mean("csr"),
    leaf: mean("leaf"),
    lint: mean("lint"),
    http: mean("http"),
    statements: mean("statements"),
    validation: mean("validation"),
    databaseServer: mean("databaseServer"),
    total: mean("total")
  }
}

/** What one round measures. */
export interface Bout {
  readonly act?: Act
  readonly concurrency: number
  /** The length of the round, as a fraction of a full round. */
  readonly share?: number
  /** The servers of the proof, if the round includes what an http-01 validation cannot avoid. */
  readonly proof?: Pick<Proof, "httpPort" | "resolver"> | undefined
}

/** The processes that measure the floor. */
export interface FloorRig {
  readonly measure: (bout: Bout) => Promise<Floor>
  readonly stop: () => void
}

/** The service whose floor is measured. */
export interface FloorGround {
  readonly service: Service
  readonly loader: Forked<typeof load>
  readonly synchronous: Synchronous
  /** The certificate and the key of the bare server; undefined for plain HTTP. */
  readonly tls?: TlsFiles | undefined
  /** The PostgreSQL server, or undefined on SQLite. */
  readonly postgres: { readonly cluster: PostgresCluster; readonly postmaster: Postmaster } | undefined
}

const noCryptography: Cryptography = { verify: 0, importKey: 0, csr: 0, leaf: 0, lint: 0 }

/**
 * Returns the costs of cryptography in an act, given those of a whole issuance. An issuance verifies seven requests.
 */
const cryptographyOf = (act: Act, whole: Cryptography): Cryptography =>
  act === "issue" ? whole : { ...noCryptography, importKey: whole.importKey, verify: whole.verify / 7 }

/** Starts the processes that measure the floor. Their input is an issuance of the service. */
export const layFloor = async ({ loader, postgres, service, synchronous, tls }: FloorGround): Promise<FloorRig> => {
  const exchanges = lastOfEachKind(await loader.call("sample"))
  const plain = await loader.call("plain")
  const worker = startForked<typeof floor>("floor")
  const http = startForked<typeof bareHttp>("http")
  await worker.call("lay", { exchanges, caDirectory: service.directory })
  const port = await http.call("serve", { exchanges: [...exchanges, plain.directory, plain.newNonce], tls })
  const requests: { readonly [A in Act]: ReadonlyArray<string> } = {
    issue: exchanges.map(({ request }) => request),
    newAccount: exchanges.flatMap(({ kind, request }) => kind === "newAccount" ? [request] : []),
    newNonce: [plain.newNonce.request],
    directory: [plain.directory.request]
  }

  const measureHttp = async (act: Act, concurrency: number, millis: number): Promise<number> => {
    const before = Procfs.cpuOf(http.pid).total
    const { issuances } = await loader.call("replay", {
      port,
      secure: tls !== undefined,
      requests: requests[act],
      concurrency,
      seconds: millis / 1000
    })
    return (Procfs.cpuOf(http.pid).total - before) / issuances * 1000
  }

  const measureValidation = async ({ concurrency, proof, share = 1 }: Bout): Promise<number> => {
    if (proof === undefined) return 0
    const times = Math.ceil(floorValidations * share)
    const { httpPort, resolver } = proof
    const path = `/.well-known/acme-challenge/${lastingToken}`
    const before = Procfs.cpuOf(http.pid).total
    await http.call("validate", { resolver, httpPort, path, times, concurrency })
    return (Procfs.cpuOf(http.pid).total - before) / times * 1000
  }

  if (postgres === undefined) {
    const directory = migrate({ databaseUrl: "sqlite://floor.db", synchronous })
    await worker.call("openSqlite", { file: join(directory, "floor.db"), synchronous })
  } else {
    const databaseUrl = await postgres.cluster.createDatabase()
    migrate({ databaseUrl, synchronous })
    await worker.call("openPostgres", databaseUrl)
  }
  const measureStatements = async (extract: Extract, concurrency: number, share: number) => {
    if (postgres === undefined) {
      const millis = floorMillis.sqlite * share
      return { statements: await worker.call("sqlite", { millis, extract }), databaseServer: 0 }
    }
    const { pid } = postgres.postmaster
    const before = Procfs.cpuOfFamily(pid)
    const issuances = Math.ceil(floorIssuances * share)
    const bout = await worker.call("postgres", { concurrency, issuances, extract })
    return {
      statements: bout.microseconds,
      databaseServer: (Procfs.cpuOfFamily(pid) - before) / bout.issuances * 1000
    }
  }

  // The first rounds only warm up the code.
  await worker.call("cryptography", 200)
  await measureStatements("issue", 8, 3)
  await measureHttp("issue", 8, 2000)
  return {
    measure: async (bout) => {
      const { act = "issue", concurrency, share = 1 } = bout
      const isSigned = act === "issue" || act === "newAccount"
      const bare = {
        ...isSigned
          ? cryptographyOf(act, await worker.call("cryptography", floorMillis.cryptography * share))
          : noCryptography,
        ...isSigned ? await measureStatements(act, concurrency, share) : { statements: 0, databaseServer: 0 },
        http: await measureHttp(act, concurrency, floorMillis.http * share),
        validation: await measureValidation(bout)
      }
      const { csr, http: served, importKey, leaf, lint, statements, validation, verify } = bare
      return { ...bare, total: verify + importKey + csr + leaf + lint + served + statements + validation }
    },
    stop: () => {
      worker.stop()
      http.stop()
    }
  }
}
