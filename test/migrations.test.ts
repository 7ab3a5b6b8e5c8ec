import { it } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Database, transaction } from "../src/engine/sql/Database.ts"
import type { Migration } from "../src/engine/sql/Migrations.ts"
import * as Migrations from "../src/engine/sql/Migrations.ts"
import type { Record } from "../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../src/engine/telemetry/EventLog.ts"
import { bothDatabases, databases, postgres, sqlite, useDatabase } from "./support/Databases.ts"
import { isFull } from "./support/Full.ts"
import { column, count, eventsOf, migrationsFolder, migrationsOf, openDriver, sql } from "./support/Graph.ts"

// A migration file that was applied somewhere never changes. New files are added, each with a line of its own
// (docs/contribute/decisions/compatibility.md, "Each surface").
const frozen = {
  postgres: {
    "0001_acme.sql": "419d1135c09cace169bf78654803e4f595aac04d91d202e02828acb45ce4cbc2",
    "0002_issuers.sql": "ebac481167e5c400f5fb01e3c805e3cb9c14ca72b8d33b4c402b15717b19766e",
    "0003_queue.sql": "1754777de3bb25d48324bb30ba3e1c4ea43debe163846fca92be1bd5d28c6838",
    "0004_operators.sql": "26bc5ec24018f6eedaca2ccb0cf7e4787e49b78d8a832fb377be5d96642c8dc1",
    "0005_audit.sql": "65c1c4f38b4b8c097b43bf0db677edac3d380986c48b61a627692206424b7a40",
    "0006_due_jobs.sql": "5c6998e811c459fe8d29910788a0442db38bffaf6f25defb1f6bc3a5911fcc2e",
    "0007_shares.sql": "7c11b01d8020a29a9332d20c88dc9e0c787927f29d8974ab080634cf50046a35",
    "0008_fair_claims.sql": "c0528fd9e7a864e1cd04598b403bd65d3cd505b6118f3604cc8fa0fa8ea5bcfb",
    "0010_revoked_at.sql": "a13e31ca7aa93a7812554418b000805d2c8cf81d42bae4a3c6e99c43f5681113",
    "0012_limits.sql": "252d82102e6fa6273dc3437941697ab40265f502274c96ea839b54ba0d18e775",
    "0014_burnt_keys.sql": "4fac6262c6233a4aedc5af78ca4725f18bf93362c966e46a487f71852757e710",
    "0016_upstream_asks.sql": "e05070d91820ef75933fd35255798cd0576151ac116ff3b6ae85561b72581b18",
    "0017_joined.sql": "f27be2e492f7ed08fdc2c208c545ddf4356ebabcf92ea8745a3838eff6a8d06e",
    "0018_api_tokens.sql": "9d898f588ce0bda9eea201b1d2b6fd5bed75c4afc51015d65d925a7f894545e7",
    "0019_administration.sql": "d4bcfabb10306f9f049a075436254cb61d4506c365cfed6d105e225d470432e3",
    "0020_lists.sql": "a324bcc96c25185594ca03510c4ca29ec0fc7da8ade85017a882f0205586015e",
    "0021_expiry.sql": "c64b0bf2f3a00561050497f8c8f464a64b3cbf05bb7d64bd0d0d39436ca1e93b",
    "0022_account_failures.sql": "35e1296a0390208b9dc5bff67dc602445f2efa554cd37257985ff3b93d8d3a1e",
    "0023_account_orders.sql": "841a6c356687a214fc455d8698624d2b06f44b8014687ad6c32accf92ac7d092",
    "0024_audit_requests.sql": "b546657a692c78cd249feafe259f267453a3eb38aa4dd4bfe2f6afd282ddb457",
    "0025_names_of_orders.sql": "687a2e937ff881a6bb9cd21329dc4c407c89474ae72bf66fe4be2ac58c6ba542",
    "0026_revoked_orders.sql": "13502cc7ce27b62e3ba9e74c4246388a2701b207b48c3e5b3c11640de84617f4",
    "0027_login_failures.sql": "8bb3cbae6b619ccf7ea1d5e7ca91549d65c996be2fdb512072644cf1fcbe99bd",
    "0028_authority_notices.sql": "16bee7bd08498cd2d7b42baca38741327fd15caa445261d4fae17360fb44131c",
    "0029_profile_states.sql": "a81aff51e48c93e9cc22ae8ef3bbb87f28a5c5f5813d4d12e84656d4f0fb45e0",
    "0030_stopped_lists.sql": "bb03f72aff2e129c1577828d443802c22e281415a1cb132a8dfae2e5ad800e8d",
    "0031_upstream_renewals.sql": "56e6d6b0d9dcea7ed4b33795c3c9fc51fe71474b6c49ee31d0475f41d0ecb437",
    "0032_validation_causes.sql": "6f4434225fbe73b6a26d117aebbfc1efc0a8e437cb269d88303b5e1eaa7e3369",
    "0035_not_granted.sql": "3cb80709ef0d649fcc1f460bbf3f0819dc1bec57a261a3f752aa9246266c3430",
    "0036_orphaned_certificates.sql": "517f5274a4ba14766dd48476008f08db96165cb13833ec0488b37c4580294ff9",
    "0037_expiry.sql": "dba80c7ef0253d6b3b128b11144431373020f1a876bcef73492af971fdd50b54",
    "0038_nonce_moments.sql": "6fc1afc05236a614c57d112f821eaa7792c41dc139409d6de601c82fd7a8eeba",
    "0039_unlogged_nonces.sql": "66ff1492691634120f018068dbf99a6c717f3eb834da4d04407718e07b0779bb",
    "0040_shared_syncs.sql": "69f72eda4da61a91b4c3742cabe760106de612fcaca525c024531ac585c63fc4",
    "0041_hot_orders.sql": "829cb6114be6044bdd3998f1826eefb8b1e22ba62bb40582d3a219ae7ed76c3f",
    "0042_kinds.sql": "e0ee0cef6c6b8a808e6e7eb481af1151ecbdb3a642fb1583798840a30cb37493",
    "0043_scopes.sql": "6272b128a22023cf26ad23517880105edf4a17bfebdecbde92457840ac87d9e5",
    "0044_scopes_known.sql": "7990d5ec73cada008b5d644b17ff7c62933b9a84627d0d294fb445f0ef7f74db",
    "0045_audit_chain.sql": "9723daa599e297f416860acb754732c4f2911d1e2cff2ad30e357a710cc97f49",
    "0046_compromised_issuers.sql": "18acca47549606dd1068851192fdeee8d9fc8a07ded08edac11ed5d0234f4e51",
    "0047_alternate_chains.sql": "be1c0d0e05355bb7cac6d2dafc96632b15cc8eb7110595da280dbc5512c02980",
    "0048_campaigns.sql": "65e7e637b2a80280ae6e2ba73df449a559f9d8491388a3aa368b683332833a3c",
    "0049_audit_push.sql": "d8a39dd826ce35864c5b4a6503074730f479fbdc274ff15e1750ec4cfedd517a",
    "0050_renewal_hours.sql": "43ecadd3e56e5dcb1e972ee18ab7af8d2759643115c1285794038ffd7effbbce",
    "0051_password_links.sql": "09beb04218c50368d94a0c0986d7002742ea70233dd4e739e11ffeec37ef3439",
    "0053_blocked_accounts.sql": "b39342eb0d710b7863211c6caea72c1202e6892b1da4f4e544fb927316363874",
    "0054_failing_loops.sql": "59dd9b8fec5234ade4bfa58c24cabf15c68f3522a25625d0682ab7c756701b9e",
    "0055_kinds_and_keys.sql": "d16a1edbf48e7247fc22ce9e369f14623da2342d38830df5a0b00d38e4358744",
    "0056_leaves.sql": "93af00ea3e96bdedc64cba879b069f0b4b868e6e800be4744a6be8a8748f7399",
    "0057_by_id.sql": "7e3dd5cb55d2b41bbc28dcf65d5e6f74658185be577b04ac3d75c617c6d76cf9"
  },
  sqlite: {
    "0001_acme.sql": "bac41fef7f2635cd26f4d19e8188f5b0218b7622c557d0d553059149aa0b78c8",
    "0002_issuers.sql": "25fda589a8e0c23c3e3c0a8cb6c38091765f53c3802fb46415e84667489fa017",
    "0003_queue.sql": "47e301ba1ef92df35fbf06667e36b7e5001b722d23c74fd8d84b8f6bb59fc36c",
    "0004_operators.sql": "57ca1b0a1a0c749dce1fc4ab28ce1794d95e26955de849a7d673ba729a5d182c",
    "0005_audit.sql": "5174167c5946d0d0736f57312555678b63355a25eba108ee68fe96367fd3b2fd",
    "0006_due_jobs.sql": "5c6998e811c459fe8d29910788a0442db38bffaf6f25defb1f6bc3a5911fcc2e",
    "0007_shares.sql": "7c11b01d8020a29a9332d20c88dc9e0c787927f29d8974ab080634cf50046a35",
    "0008_fair_claims.sql": "ecc0356c26df18414ddeca904ff6a45dbe03f96885666d1d933a1354b950ee1a",
    "0010_revoked_at.sql": "a13e31ca7aa93a7812554418b000805d2c8cf81d42bae4a3c6e99c43f5681113",
    "0012_limits.sql": "bfd2cfc752a16f71f391497218566c3653f46e8b0906d8b175977c92d45356cb",
    "0014_burnt_keys.sql": "7d4d39ddce01721c0c4f285c005e098bd902c3e3e0d4f53a467ba2dfce4c413a",
    "0016_upstream_asks.sql": "39f4e426563aa0371f9310e9c1bf33627f257858f71e42ab12c299dd7593365a",
    "0017_joined.sql": "3f41800f18d42f0af256aef14d843cd2eee5252605dc3bcbff19bbdd2bb340aa",
    "0018_api_tokens.sql": "5c855c84891b20900d5dd96b175cf0d80a7f1d8de7c972232e85c6b2c0de590b",
    "0019_administration.sql": "d4bcfabb10306f9f049a075436254cb61d4506c365cfed6d105e225d470432e3",
    "0020_lists.sql": "a324bcc96c25185594ca03510c4ca29ec0fc7da8ade85017a882f0205586015e",
    "0021_expiry.sql": "a71bf78f7257bc0ee1f6b00909f84cd41b6f6ceb7858ade88d0759ae2eec3e91",
    "0022_account_failures.sql": "35e1296a0390208b9dc5bff67dc602445f2efa554cd37257985ff3b93d8d3a1e",
    "0023_account_orders.sql": "841a6c356687a214fc455d8698624d2b06f44b8014687ad6c32accf92ac7d092",
    "0024_audit_requests.sql": "b546657a692c78cd249feafe259f267453a3eb38aa4dd4bfe2f6afd282ddb457",
    "0025_names_of_orders.sql": "687a2e937ff881a6bb9cd21329dc4c407c89474ae72bf66fe4be2ac58c6ba542",
    "0026_revoked_orders.sql": "13502cc7ce27b62e3ba9e74c4246388a2701b207b48c3e5b3c11640de84617f4",
    "0027_login_failures.sql": "ce44b6ac3202f2b949a0b70b95ce23e5f0c5786fbd69b22bc4b7ea3e5a32d5eb",
    "0028_authority_notices.sql": "da830694001024734a025809d02c93fd88ccb172871e4428e3f5372d166dc11b",
    "0029_profile_states.sql": "fe07a79b5aae1f90a4beaffe6cfbeb7d3dea8fea2947a6cb1a870a953762817b",
    "0030_stopped_lists.sql": "b49f424a8de31655464b08a75cce774e4b33cab99bad0a979be39e89aa2714d1",
    "0031_upstream_renewals.sql": "0a811ca0fcbe358d862a81f8724188826b61995eff4a2b8359f3c7a676ff917d",
    "0032_validation_causes.sql": "0b69149b6384811b96d059cce055b1ebd23796d9bad18b771178f44863ccb1b6",
    "0035_not_granted.sql": "24afd226b0720f68279451ecd4a9bbd94d3fc0c151a46c0e91f381dfd818be54",
    "0036_orphaned_certificates.sql": "de4598b5669a6358dc182ca57028ef6bf6c37c7def1886fde9fd23bd1add760f",
    "0037_expiry.sql": "3e93853a99e912608298ef768c21081691e4e291a2039510193554c9bc28449a",
    "0038_nonce_moments.sql": "6af765978719c7e3da9e62bb196312cdadbd904c08a5756f95b8846451abc813",
    "0039_unlogged_nonces.sql": "c8b12dfe9297aaf2e87f9af07dc514f2474643652ec7a8e5db9bdeb63257f1b9",
    "0040_shared_syncs.sql": "57d19acd652505ee73e2e6a12d66a1898d4b053ad2a06e9ab9fd40ac1bb23db3",
    "0041_hot_orders.sql": "2f4320d46ae87c66497f3162f64e4e39c5932c397c3e448b0a24baa09187da23",
    "0042_kinds.sql": "c1cf96c2a77fdc833937aac8e080b2a0301064e9311ecd6f0d9c3eebdf40a32a",
    "0043_scopes.sql": "e7ac8d551f6e2263b2c739261be748a892e4f8900e3eeac1582b1b4bf4ce1bdb",
    "0044_scopes_known.sql": "f6aa10482a5f69c38e1e05448b286df29538d182080c6ae8091d91e75d2b7357",
    "0045_audit_chain.sql": "3a86a713aeaa73034852785cded6c458d8beaf5c30165169a13a4a0b4d4be9c0",
    "0046_compromised_issuers.sql": "7868f411963819b9226fe6e80d7de169ea94af3d9fcff7710816174f6d1429fe",
    "0047_alternate_chains.sql": "6fda37c1d8cbec7ec48423a9273cf5a2c4fbbdd5354308885020dc3f60163c42",
    "0048_campaigns.sql": "1191cfab26644c531144534cfff1f61b02dd6131da58e1f3e12d16833e27d3a9",
    "0049_audit_push.sql": "803ab2c3f7a185ba11bcd5145f24026bac8216ff4b63fd70c0cb9a15a24ed679",
    "0050_renewal_hours.sql": "66f9708cab4a1a98a63c889f66594af5e470b0cd4e27e7aff56ffa9a9202e433",
    "0051_password_links.sql": "d8b57af596d5faede3b9efdbd23935b5d5359048bab8d5a76315485e8e4e132c",
    "0053_blocked_accounts.sql": "648d7e216347bdb2d880bba10a179644785aa2d2d93e8a3b02d9a8977d1114d5",
    "0054_failing_loops.sql": "edc02c7edf1b5808e22affb407a001c19ecdae047d7b998d62e40279e8e0aa9b",
    "0055_kinds_and_keys.sql": "d16a1edbf48e7247fc22ce9e369f14623da2342d38830df5a0b00d38e4358744",
    "0056_leaves.sql": "0fcbfe38f050d89c6db46348cc418052f850599f36da87912af96e7baf6b7c52",
    "0057_by_id.sql": "b220ff987d3b83bc393939de8940b12929e8085ea14c2567fee6b8bed5de7bfe"
  }
} as const

describe("the migration files", () => {
  it.each(["postgres", "sqlite"] as const)("of %s have not changed", (dialect) => {
    const folder = join(migrationsFolder, dialect)
    const sums = Object.fromEntries(
      readdirSync(folder).sort().map((file) => [
        file,
        createHash("sha256").update(readFileSync(join(folder, file))).digest("hex")
      ])
    )
    assert.deepStrictEqual(sums, frozen[dialect])
  })

  it.effect("have equal numbers and names for both engines", () =>
    Effect.gen(function*() {
      const named = (migrations: ReadonlyArray<Migration>) =>
        migrations.map(({ name, version }) => `${version} ${name}`)
      const [sqlite, postgres] = [yield* migrationsOf("sqlite"), yield* migrationsOf("postgres")]
      assert.deepStrictEqual(named(sqlite), named(postgres))
      const versions = sqlite.map(({ version }) => version)
      assert.deepStrictEqual(versions, [...new Set(versions)].sort((one, other) => one - other))
    }))

  it.effect("are read with their checksums, and are split into statements", () =>
    Effect.gen(function*() {
      const changing = new Set<string>()
      const all = new Set<string>()
      for (const dialect of ["sqlite", "postgres"] as const) {
        for (const { checksum, name, statements } of yield* migrationsOf(dialect)) {
          assert.strictEqual(checksum, new Map<string, string>(Object.entries(frozen[dialect])).get(`${name}.sql`))
          all.add(name)
          for (const text of statements) {
            changing.add(name)
            assert.match(
              text,
              /CREATE |DROP INDEX |INSERT INTO |UPDATE orders |ALTER TABLE \w+ (ADD COLUMN |SET UNLOGGED|SET \(fillfactor = )/
            )
          }
        }
      }
      assert.deepStrictEqual([...changing].sort(), [...all].sort(), "one that changes neither engine")
    }))

  it.effect("cause an error that names their folder if the folder cannot be read", () =>
    Effect.gen(function*() {
      const refused = yield* Effect.flip(Migrations.read("/nowhere", "sqlite"))
      assert.strictEqual(refused.reason, "unreadable")
      assert.include(refused.detail, "/nowhere")
    }))
})

interface Shape {
  readonly columns: ReadonlyArray<string>
  readonly indexes: ReadonlyArray<string>
  readonly foreignKeys: ReadonlyArray<string>
}

// The types of the two engines, grouped into kinds (docs/contribute/decisions/data-model.md, "Kinds of columns"). On
// SQLite a bool is an INTEGER and a uuid a BLOB.
const folded = new Map([
  ["bigint", "int"],
  ["integer", "int"],
  ["boolean", "int"],
  ["uuid", "bytes"],
  ["bytea", "bytes"],
  ["blob", "bytes"]
])

const typeOf = (word: unknown): string => folded.get(String(word).toLowerCase()) ?? String(word).toLowerCase()

const shapeOfSqlite = Effect.gen(function*() {
  const shapes = new Map<string, Shape>()
  const names = yield* column("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
  for (const table of names) {
    const columns = yield* sql(`SELECT * FROM pragma_table_info('${table}')`)
    const indexes = yield* sql(`SELECT * FROM pragma_index_list('${table}')`)
    const keys = yield* sql(`SELECT * FROM pragma_foreign_key_list('${table}')`)
    const described: Array<string> = []
    for (const index of indexes) {
      const parts = yield* column(`SELECT name FROM pragma_index_info('${String(index.name)}') ORDER BY seqno`)
      if (index.origin === "c") {
        described.push(
          `${index.unique === 1 ? "unique " : ""}${index.partial === 1 ? "partial " : ""}(${parts.join(", ")})`
        )
      }
      if (index.origin === "u") described.push(`unique (${parts.join(", ")})`)
    }
    shapes.set(table, {
      columns: columns.map((one) =>
        `${String(one.name)} ${typeOf(one.type)}${Number(one.notnull) === 1 || Number(one.pk) > 0 ? " not null" : ""}${
          Number(one.pk) > 0 ? ` key ${String(one.pk)}` : ""
        }`
      ).sort(),
      indexes: described.sort(),
      foreignKeys: keys.map((one) => `${String(one.from)} -> ${String(one.table)} ${String(one.on_delete)}`).sort()
    })
  }
  return shapes
})

const shapeOfPostgres = Effect.gen(function*() {
  const shapes = new Map<string, Shape>()
  const names = yield* column("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
  for (const table of names) {
    const columns = yield* sql(
      `SELECT c.column_name AS name, c.data_type AS type, c.is_nullable AS nullable,
         (SELECT k.ordinal_position FROM information_schema.table_constraints t
          JOIN information_schema.key_column_usage k ON k.constraint_name = t.constraint_name
          WHERE t.table_name = '${table}' AND t.constraint_type = 'PRIMARY KEY' AND k.column_name = c.column_name) AS key
       FROM information_schema.columns c WHERE c.table_schema = 'public' AND c.table_name = '${table}'`
    )
    const indexes = yield* sql(
      `SELECT i.indisunique AS "unique", i.indpred IS NOT NULL AS "partial",
         array_to_json(ARRAY(SELECT pg_get_indexdef(i.indexrelid, k, TRUE) FROM generate_series(1, i.indnkeyatts) k))::text AS "parts"
       FROM pg_index i WHERE i.indrelid = '${table}'::regclass AND NOT i.indisprimary`
    )
    const keys = yield* sql(
      `SELECT a.attname AS "from", c.confrelid::regclass::text AS "to", c.confdeltype AS "action" FROM pg_constraint c
       JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
       WHERE c.contype = 'f' AND c.conrelid = '${table}'::regclass`
    )
    shapes.set(table, {
      columns: columns.map((one) =>
        `${String(one.name)} ${typeOf(one.type)}${one.nullable === "NO" ? " not null" : ""}${
          one.key === null ? "" : ` key ${String(one.key)}`
        }`
      ).sort(),
      indexes: indexes.map((one) => {
        // This index contains the digest of the key, because the longest keys do not fit into a B-tree page.
        const parts = (JSON.parse(String(one.parts)) as ReadonlyArray<string>).map((part) =>
          part.replace(/^sha256\((\w+)\)$/, "$1")
        )
        return `${one.unique === true ? "unique " : ""}${one.partial === true ? "partial " : ""}(${parts.join(", ")})`
      }).sort(),
      foreignKeys: keys.map((one) =>
        `${String(one.from)} -> ${String(one.to)} ${one.action === "c" ? "CASCADE" : "NONE"}`
      )
        .sort()
    })
  }
  return shapes
})

/** The indexes of orders that only the other engine has. On PostgreSQL no index has the status of an order. */
const ofTheOther = {
  sqlite: ["partial (created_at)"],
  postgres: ["(status, created_at)", "partial (account_id)"]
} as const

describe("the schema", () => {
  it.live("has equal tables, columns, indexes and foreign keys on both engines", () =>
    Effect.gen(function*() {
      const shapes: Array<ReadonlyMap<string, Shape>> = []
      for (const { dialect, freshUrl } of bothDatabases) {
        const driver = yield* openDriver(yield* Effect.promise(() => freshUrl()))
        yield* Effect.provideService(
          Effect.gen(function*() {
            yield* Migrations.migrate(yield* migrationsOf(dialect))
            shapes.push(yield* dialect === "sqlite" ? shapeOfSqlite : shapeOfPostgres)
          }),
          Database,
          driver
        )
      }
      const [sqlite = new Map<string, Shape>(), postgres = new Map<string, Shape>()] = shapes
      assert.isAbove(sqlite.size, 15)
      assert.deepStrictEqual([...sqlite.keys()].sort(), [...postgres.keys()].sort())
      for (const [table, shape] of sqlite) {
        const own = (dialect: "postgres" | "sqlite", { indexes, ...others }: Shape) => ({
          ...others,
          indexes: [...indexes, ...table === "orders" ? ofTheOther[dialect] : []].sort()
        })
        assert.deepStrictEqual(own("sqlite", shape), own("postgres", postgres.get(table) ?? shape), table)
      }
      assert.include(sqlite.get("jobs")?.indexes ?? [], "unique partial (kind, dedup_key)")
    }))

  it.live("makes every table STRICT on SQLite", () =>
    Effect.gen(function*() {
      const driver = yield* openDriver(yield* Effect.promise(() => sqlite.freshUrl()))
      const lax = Effect.andThen(
        Effect.flatMap(migrationsOf("sqlite"), Migrations.migrate),
        column("SELECT name FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%' AND strict = 0")
      )
      assert.deepStrictEqual(yield* Effect.provideService(lax, Database, driver), [])
    }))

  it.live("compares every text column by bytes on PostgreSQL", () =>
    Effect.gen(function*() {
      const driver = yield* openDriver(yield* Effect.promise(() => postgres.freshUrl()))
      const other = Effect.andThen(
        Effect.flatMap(migrationsOf("postgres"), Migrations.migrate),
        column(
          `SELECT table_name || '.' || column_name FROM information_schema.columns
           WHERE table_schema = 'public' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`
        )
      )
      assert.deepStrictEqual(yield* Effect.provideService(other, Database, driver), [])
    }))
})

describe.each(databases)("a migration on $name", ({ dialect, freshUrl }) => {
  const fresh = Effect.flatMap(
    Effect.promise(() => freshUrl()),
    (url) => Effect.map(openDriver(url), (driver) => ({ url, driver }))
  )

  it.live("applies every file once and records its checksum", () =>
    Effect.gen(function*() {
      const { driver } = yield* fresh
      const migrations = yield* migrationsOf(dialect)
      const program = Effect.gen(function*() {
        const names = migrations.map(({ name }) => name)
        assert.deepStrictEqual(yield* Migrations.migrate(migrations), names)
        assert.deepStrictEqual(yield* Migrations.migrate(migrations), [])
        const stored = yield* sql("SELECT version, name, checksum FROM schema_migrations ORDER BY version")
        assert.deepStrictEqual(
          stored.map((row) => [Number(row.version), row.name, row.checksum]),
          migrations.map(({ checksum, name, version }) => [version, name, checksum])
        )
        yield* Migrations.check(migrations)
      })
      yield* Effect.provideService(program, Database, driver)
    }))

  it.live("can widen the check of the types of challenges, while an older process goes on", () =>
    Effect.gen(function*() {
      const { driver: older, url } = yield* fresh
      const newer = yield* openDriver(url)
      const isSqlite = dialect === "sqlite"
      const inOlder = Effect.provideService(Database, older)
      const inNewer = Effect.provideService(Database, newer)
      const migrations = yield* migrationsOf(dialect)
      yield* inOlder(Migrations.migrate(migrations))
      const words = "'http-01', 'dns-01', 'tls-alpn-01', 'new-01'"
      const wider: Migration = {
        version: 9999,
        name: "9999_wider",
        checksum: "1".repeat(64),
        // docs/contribute/development.md, "Migrations"
        statements: isSqlite
          ? [
            `CREATE TABLE challenges_wider (
               id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
               authz_id BLOB NOT NULL REFERENCES authorizations (id) ON DELETE CASCADE,
               type TEXT NOT NULL CONSTRAINT challenges_type CHECK (type IN (${words})),
               position INTEGER NOT NULL,
               token TEXT NOT NULL,
               status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'valid', 'invalid')),
               validated_at INTEGER,
               error TEXT,
               created_at INTEGER NOT NULL,
               cause TEXT,
               CONSTRAINT challenges_authz_id_type UNIQUE (authz_id, type)
             ) STRICT, WITHOUT ROWID`,
            "INSERT INTO challenges_wider SELECT * FROM challenges",
            "DROP TABLE challenges",
            "ALTER TABLE challenges_wider RENAME TO challenges",
            "CREATE INDEX challenges_processing ON challenges (authz_id) WHERE status = 'processing'"
          ]
          : [
            `ALTER TABLE challenges DROP CONSTRAINT challenges_type_check,
               ADD CONSTRAINT challenges_type CHECK (type IN (${words}))`
          ]
      }
      const id = (n: number) => isSqlite ? Buffer.alloc(16, n) : Buffer.alloc(16, n).toString("hex")
      const at = (position: number) => isSqlite ? "?" : `$${position}`
      // A connection prepares a text once, so the older process goes on with statements of the narrower table.
      const insert = (n: number, type: string) =>
        Effect.exit(sql(
          `INSERT INTO challenges (id, authz_id, type, position, token, status, created_at)
           VALUES (${at(1)}, ${at(2)}, ${at(3)}, 0, 't', 'pending', 0)`,
          [id(n), id(3), type]
        ))
      const types = column("SELECT type FROM challenges ORDER BY id")
      yield* inOlder(Effect.gen(function*() {
        yield* sql(
          `INSERT INTO accounts (id, profile, pubkey, status, created_at) VALUES (${at(1)}, 'p', ${at(2)}, 'valid', 0)`,
          [id(1), Buffer.of(1)]
        )
        yield* sql(
          `INSERT INTO orders (id, profile, account_id, status, identifiers, created_at)
           VALUES (${at(1)}, 'p', ${at(2)}, 'pending', '[]', 0)`,
          [id(2), id(1)]
        )
        yield* sql(
          `INSERT INTO authorizations (id, order_id, identifier, status, created_at)
           VALUES (${at(1)}, ${at(2)}, '{}', 'pending', 0)`,
          [id(3), id(2)]
        )
        assert.strictEqual((yield* insert(4, "http-01"))._tag, "Success")
        assert.strictEqual((yield* insert(5, "new-01"))._tag, "Failure")
        assert.deepStrictEqual(yield* types, ["http-01"])
      }))
      assert.deepStrictEqual(yield* inNewer(Migrations.migrate([...migrations, wider])), [wider.name])
      yield* inOlder(Effect.gen(function*() {
        assert.strictEqual((yield* insert(5, "dns-01"))._tag, "Success")
        assert.deepStrictEqual(yield* types, ["http-01", "dns-01"])
      }))
      yield* inNewer(Effect.gen(function*() {
        assert.strictEqual((yield* insert(6, "new-01"))._tag, "Success")
        assert.strictEqual((yield* insert(7, "newer-01"))._tag, "Failure")
        // The next migration can widen the check without another table, because the check now has a name.
        for (
          const change of ["DROP CONSTRAINT challenges_type", `ADD CONSTRAINT challenges_type CHECK (type <> '')`]
        ) yield* sql(`ALTER TABLE challenges ${change}`)
        assert.strictEqual((yield* insert(7, "newer-01"))._tag, "Success")
      }))
      yield* inOlder(Effect.gen(function*() {
        assert.deepStrictEqual(yield* types, ["http-01", "dns-01", "new-01", "newer-01"])
        yield* sql("DELETE FROM accounts")
        assert.deepStrictEqual(yield* types, [])
      }))
    }))

  // The service limits every other statement to half a minute.
  it.live.runIf(isFull && dialect === "postgres")(
    "waits for a statement that takes longer than other statements may",
    () =>
      Effect.gen(function*() {
        const { driver } = yield* fresh
        const long = {
          version: 99,
          name: "0099_long",
          checksum: "1".repeat(64),
          statements: ["SELECT pg_sleep(33)", "CREATE TABLE made (id INTEGER)"]
        }
        const program = Effect.gen(function*() {
          assert.deepStrictEqual(yield* Migrations.migrate([long]), ["0099_long"])
          assert.strictEqual(yield* count("SELECT count(*) FROM made"), 0)
          const bounded = yield* sql("SELECT current_setting('statement_timeout') AS bound")
          assert.deepStrictEqual(bounded.map((row) => row["bound"]), ["30s"], "only while it migrates")
        })
        yield* Effect.provideService(program, Database, driver)
      }),
    90_000
  )

  it.live("is refused if the content of an applied file has changed", () =>
    Effect.gen(function*() {
      const { driver } = yield* fresh
      const migrations = yield* migrationsOf(dialect)
      const changed = migrations.map((one) => one.version === 2 ? { ...one, checksum: "0".repeat(64) } : one)
        .concat([{
          version: 99,
          name: "0099_later",
          checksum: "1".repeat(64),
          statements: ["CREATE TABLE later (id INTEGER)"]
        }])
      const program = Effect.gen(function*() {
        yield* Migrations.migrate(migrations)
        const attempts = [Migrations.migrate, Migrations.check, Migrations.pending].map((one) =>
          Effect.asVoid(one(changed))
        )
        for (const attempt of attempts) {
          assert.deepInclude(yield* Effect.flip(attempt), {
            _tag: "SchemaUnusable",
            reason: "changed",
            migration: "0002_issuers"
          })
        }
        assert.strictEqual(yield* count("SELECT count(*) FROM schema_migrations"), migrations.length)
      })
      yield* Effect.provideService(program, Database, driver)
    }))

  it.live("is not done by --check, which only refuses a schema that is too old", () =>
    Effect.gen(function*() {
      const { driver } = yield* fresh
      const migrations = yield* migrationsOf(dialect)
      const records: Array<Record> = []
      const program = Effect.gen(function*() {
        const none = yield* Effect.flip(Migrations.check(migrations))
        assert.deepInclude(none, { _tag: "SchemaUnusable", reason: "behind", migration: "0001_acme" })
        const tables = dialect === "sqlite"
          ? "SELECT count(*) FROM sqlite_master"
          : "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        assert.strictEqual(yield* count(tables), 0)
        yield* Migrations.migrate(migrations.slice(0, -1))
        const one = yield* Effect.flip(Migrations.check(migrations))
        assert.deepInclude(one, { _tag: "SchemaUnusable", reason: "behind", migration: migrations.at(-1)?.name ?? "" })
        assert.deepStrictEqual(eventsOf(records), [
          "server_schema_behind",
          ...migrations.slice(1).map(() => "db_migration_applied"),
          "server_schema_behind"
        ])
      })
      yield* program.pipe(
        Effect.provideService(Database, driver),
        Effect.provide(layerMemory(records))
      )
    }))

  it.live("accepts a database with a later, unknown migration", () =>
    Effect.gen(function*() {
      const { driver } = yield* fresh
      const migrations = yield* migrationsOf(dialect)
      const program = Effect.gen(function*() {
        yield* Migrations.migrate(migrations)
        yield* sql("INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (900, 'later', 'x', 0)")
        yield* Migrations.check(migrations)
        assert.deepStrictEqual(yield* Migrations.migrate(migrations), [])
      })
      yield* Effect.provideService(program, Database, driver)
    }))

  it.live("is undone if it fails", () =>
    Effect.gen(function*() {
      const { driver } = yield* fresh
      const migrations: ReadonlyArray<Migration> = [
        { version: 1, name: "0001_good", checksum: "a", statements: ["CREATE TABLE good (id INTEGER)"] },
        {
          version: 2,
          name: "0002_bad",
          checksum: "b",
          statements: ["CREATE TABLE half (id INTEGER)", "NO SUCH STATEMENT"]
        },
        { version: 3, name: "0003_never", checksum: "c", statements: ["CREATE TABLE never (id INTEGER)"] }
      ]
      const records: Array<Record> = []
      const program = Effect.gen(function*() {
        const failed = yield* Effect.flip(Migrations.migrate(migrations))
        assert.deepInclude(failed, { _tag: "SchemaUnusable", reason: "failed", migration: "0002_bad" })
        assert.deepStrictEqual(yield* column("SELECT name FROM schema_migrations"), ["0001_good"])
        const tables = dialect === "sqlite"
          ? "SELECT name FROM sqlite_master WHERE type = 'table'"
          : "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        assert.sameMembers([...yield* column(tables)], ["schema_migrations", "good"])
        assert.include(eventsOf(records), "db_migration_failed")
      })
      yield* program.pipe(
        Effect.provideService(Database, driver),
        Effect.provide(layerMemory(records))
      )
    }))

  it.live("moves what failed orders wanted to replace, and keeps the claims of other orders", () =>
    Effect.gen(function*() {
      const { driver } = yield* fresh
      const migrations = yield* migrationsOf(dialect)
      const isBefore = ({ version }: Migration) => version < 41
      const octets = (n: number) =>
        dialect === "sqlite" ? `X'${String(n).padStart(32, "0")}'` : `'${String(n).padStart(32, "0")}'::uuid`
      yield* Effect.gen(function*() {
        yield* Migrations.migrate(migrations.filter(isBefore))
        yield* sql(
          `INSERT INTO accounts (id, profile, pubkey, status, created_at) VALUES (${octets(1)}, 'p', ${
            dialect === "sqlite" ? "X'01'" : "'\\x01'"
          }, 'valid', 0)`
        )
        for (const [n, status] of [[2, "invalid"], [3, "invalid"], [4, "valid"]] as const) {
          yield* sql(
            `INSERT INTO orders (id, profile, account_id, status, identifiers, replaces, created_at)
             VALUES (${octets(n)}, 'p', ${octets(1)}, '${status}', '[]', 'cert', 0)`
          )
        }
        yield* Migrations.migrate(migrations)
        assert.deepStrictEqual(
          yield* sql("SELECT status, replaces, failed_replaces FROM orders ORDER BY id"),
          [
            { status: "invalid", replaces: null, failed_replaces: "cert" },
            { status: "invalid", replaces: null, failed_replaces: "cert" },
            { status: "valid", replaces: "cert", failed_replaces: null }
          ]
        )
      }).pipe(Effect.provideService(Database, driver), Effect.provide(layerMemory([])))
    }))

  it.live("is applied once if two processes start at once", () =>
    Effect.gen(function*() {
      const { driver, url } = yield* fresh
      const other = yield* openDriver(url)
      const migrations = yield* migrationsOf(dialect)
      const applied = yield* Effect.all(
        [driver, other, driver, other].map((one) =>
          Effect.provideService(Migrations.migrate(migrations), Database, one)
        ),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(applied.flat().sort(), migrations.map(({ name }) => name))
      const stored = Effect.provideService(count("SELECT count(*) FROM schema_migrations"), Database, driver)
      assert.strictEqual(yield* stored, migrations.length)
    }))
})

describe.each(databases)("the rules of the schema on $name", (backend) => {
  const database = useDatabase(backend)
  const id = (n: number) => {
    const hex = n.toString(16).padStart(32, "0")
    return backend.dialect === "sqlite" ? `X'${hex}'` : `'${hex}'::uuid`
  }
  const octets = (n: number) => backend.dialect === "sqlite" ? `X'0${n}'` : `'\\x0${n}'::bytea`
  const refused = (text: string) => Effect.map(Effect.exit(sql(text)), (exit) => exit._tag === "Failure")
  const account = (n: number) =>
    sql(
      `INSERT INTO accounts (id, profile, pubkey, status, created_at) VALUES (${id(n)}, 'p', ${octets(n)}, 'valid', 0)`
    )
  const order = (n: number, of: number, more: { readonly status?: string; readonly replaces?: string } = {}) =>
    `INSERT INTO orders (id, profile, account_id, status, identifiers, replaces, created_at)
     VALUES (${id(n)}, 'p', ${id(of)}, '${more.status ?? "pending"}', '[]', ${
      more.replaces === undefined ? "NULL" : `'${more.replaces}'`
    }, 0)`
  const job = (n: number, status: string, key = "k") =>
    `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
     VALUES (${id(n)}, 'kind', '${key}', '{}', '${status}', 0, 0, 5, 0, 0)`

  it.live("refuse UPDATE and accept inserts in audit_log", () =>
    database.use(Effect.gen(function*() {
      const insert = "INSERT INTO audit_log (created_at, event, outcome, actor_kind) VALUES (0, 'e', 'success', 'acme')"
      yield* sql(insert)
      assert.isTrue(yield* refused("UPDATE audit_log SET event = 'x'"))
      assert.deepStrictEqual(yield* column("SELECT event FROM audit_log"), ["e"])
      assert.deepStrictEqual(yield* column("SELECT identifiers FROM audit_log"), ["[]"])
      yield* sql(insert)
      yield* sql("DELETE FROM audit_log")
      yield* sql(insert)
      assert.isAtLeast(yield* count("SELECT id FROM audit_log"), 3, "ids are never used again")
    })))

  it.live("delete everything that belongs to an account together with the account", () =>
    database.use(Effect.gen(function*() {
      yield* account(1)
      yield* sql(order(2, 1))
      yield* sql(`INSERT INTO order_identifiers (order_id, profile, name, name_rev) VALUES (${id(2)}, 'p', 'a', 'a')`)
      yield* sql(
        `INSERT INTO authorizations (id, order_id, identifier, status, created_at) VALUES (${id(3)}, ${
          id(2)
        }, '{}', 'pending', 0)`
      )
      yield* sql(
        `INSERT INTO challenges (id, authz_id, type, position, token, status, created_at)
         VALUES (${id(4)}, ${id(3)}, 'http-01', 0, 't', 'pending', 0)`
      )
      yield* sql(
        `INSERT INTO upstream_orders (order_id, status, csr_der, created_at, updated_at) VALUES (${id(2)}, 'valid', ${
          octets(1)
        }, 0, 0)`
      )
      assert.isTrue(yield* refused(order(5, 9)), "an order of nobody")
      yield* sql("DELETE FROM accounts")
      for (const table of ["orders", "order_identifiers", "authorizations", "challenges", "upstream_orders"]) {
        assert.strictEqual(yield* count(`SELECT count(*) FROM ${table}`), 0, table)
      }
    })))

  it.live("refuse a state that does not exist", () =>
    database.use(Effect.gen(function*() {
      yield* account(1)
      assert.isTrue(yield* refused(order(2, 1, { status: "deactivated" })))
      assert.isTrue(yield* refused(job(1, "queued")))
      assert.isTrue(yield* refused("UPDATE accounts SET status = 'gone'"))
    })))

  it.live("allow at most one live job for a kind and key, and do not count settled jobs", () =>
    database.use(Effect.gen(function*() {
      yield* sql(job(1, "done"))
      yield* sql(job(2, "failed"))
      yield* sql(job(3, "ready"))
      assert.isTrue(yield* refused(job(4, "ready")))
      assert.isTrue(yield* refused(job(5, "running")))
      yield* sql(job(6, "ready", "other"))
      yield* sql("UPDATE jobs SET status = 'done' WHERE status = 'ready' AND dedup_key = 'k'")
      yield* sql(job(7, "running"))
    })))

  it.live("allow at most one order to replace a certificate, and do not count invalid orders", () =>
    database.use(Effect.gen(function*() {
      yield* account(1)
      yield* sql(order(2, 1, { replaces: "cert" }))
      yield* sql("UPDATE orders SET status = 'invalid'")
      yield* sql(order(3, 1, { replaces: "cert" }))
      assert.isTrue(yield* refused(order(4, 1, { replaces: "cert" })))
      yield* sql(`UPDATE orders SET status = 'invalid' WHERE status = 'pending'`)
      yield* sql(order(5, 1, { replaces: "cert" }))
      assert.deepStrictEqual(
        yield* sql("SELECT status, replaces, failed_replaces FROM orders ORDER BY id"),
        [
          { status: "invalid", replaces: null, failed_replaces: "cert" },
          { status: "invalid", replaces: null, failed_replaces: "cert" },
          { status: "pending", replaces: "cert", failed_replaces: null }
        ]
      )
    })))

  it.live("let the version before insert orders that replace a certificate", () =>
    database.use(Effect.gen(function*() {
      yield* account(1)
      const insert = (n: number) =>
        sql(
          `${order(n, 1, { replaces: "cert" })}
           ON CONFLICT (profile, replaces) WHERE replaces IS NOT NULL AND status <> 'invalid' DO NOTHING RETURNING replaces`
        )
      assert.deepStrictEqual(yield* insert(2), [{ replaces: "cert" }])
      assert.deepStrictEqual(yield* insert(3), [])
      yield* sql("UPDATE orders SET status = 'invalid'")
      assert.deepStrictEqual(yield* insert(4), [{ replaces: "cert" }])
    })))

  it.live("change the status of an unfinished order without new index entries on PostgreSQL", () =>
    database.use(Effect.gen(function*() {
      if (backend.dialect === "sqlite") return // SQLite writes an index entry only if its columns change.
      yield* account(1)
      yield* sql(order(2, 1, { replaces: "cert" }))
      const changed = yield* transaction(Effect.gen(function*() {
        for (const status of ["ready", "processing"]) yield* sql(`UPDATE orders SET status = '${status}'`)
        return yield* sql(
          "SELECT n_tup_upd::int AS all, n_tup_hot_upd::int AS hot FROM pg_stat_xact_user_tables WHERE relname = 'orders'"
        )
      }))
      assert.deepStrictEqual(changed, [{ all: 2, hot: 2 }])
    })))

  it.live("allow at most one account for a key in a profile", () =>
    database.use(Effect.gen(function*() {
      yield* account(1)
      const again = (profile: string) =>
        `INSERT INTO accounts (id, profile, pubkey, status, created_at) VALUES (${id(2)}, '${profile}', ${
          octets(1)
        }, 'valid', 0)`
      assert.isTrue(yield* refused(again("p")))
      yield* sql(again("q"))
    })))
})
