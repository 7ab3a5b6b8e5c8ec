import { execFileSync } from "node:child_process"
import { Client } from "pg"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { download } from "../interop/RevocationList.ts"
import { AcmeSession, problemType } from "../support/AcmeSession.ts"
import { builtServer, freshPostgresUrl } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import { leafOf } from "../support/Openssl.ts"

/*
 * A PostgreSQL database that is restored to an earlier state while the service runs. The processes notice this by
 * themselves, report what is missing, and never serve a list that lacks a revoked certificate.
 */

/** Returns the serial numbers that OpenSSL reads in a list. */
const serialsIn = (input: Buffer): ReadonlyArray<string> => {
  const said = execFileSync("openssl", ["crl", "-inform", "DER", "-noout", "-text"], { input }).toString()
  return [...said.matchAll(/Serial Number: (\S+)/g)].map(([, one = ""]) => one.toLowerCase().replace(/^0+/, ""))
}

describe("a database that is restored while the service runs", () => {
  const bypass = "[profiles.default]\nenabled = true\n[challenge]\nbypass = true\n"
  let ground: Ground
  let session: AcmeSession
  let url = ""
  let name = ""
  let admin: Client

  beforeAll(async () => {
    await builtServer()
    url = await freshPostgresUrl()
    name = new URL(url).pathname.slice(1)
    const maintenance = new URL(url)
    maintenance.pathname = "/postgres"
    admin = new Client({ connectionString: maintenance.href })
    await admin.connect()
    ground = await startGround({ databaseUrl: url, config: bypass })
    session = await AcmeSession.open(ground.server.directoryUrl, { patienceMs: 60_000 })
    await session.register()
  })

  afterAll(async () => {
    session?.close()
    await ground?.dispose()
    await admin.query(`DROP DATABASE IF EXISTS ${name}_before`)
    await admin.end()
  })

  /** Copies a database. No session may use the database during the copy. */
  const copied = async (from: string, to: string) => {
    for (const one of [from, to]) {
      await admin.query(
        `DO $$ BEGIN IF EXISTS (SELECT FROM pg_database WHERE datname = '${one}') THEN
           ALTER DATABASE ${one} ALLOW_CONNECTIONS false; END IF; END $$`
      )
      await admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [one])
    }
    await admin.query(`DROP DATABASE IF EXISTS ${to}`)
    await admin.query(`CREATE DATABASE ${to} TEMPLATE ${from}`)
    for (const one of [from, to]) await admin.query(`ALTER DATABASE ${one} ALLOW_CONNECTIONS true`)
  }
  const list = () => download(`${ground.server.directoryUrl.replace(/directory$/, "crl")}`, ground.server.caFile)
  const revoke = async (chain: string) => {
    const certificate = leafOf(chain).raw.toString("base64url")
    const { status } = await session.post(session.directory.revokeCert ?? "", { certificate })
    assert.strictEqual(status, 200)
  }
  const idOf = (of: string): string => of.slice(of.lastIndexOf("/") + 1)
  const serialOf = (chain: string): string => leafOf(chain).serialNumber.toLowerCase().replace(/^0+/, "")
  const untilListed = (serial: string) => session.poll(list, (der) => serialsIn(der).includes(serial), 60_000)

  it("is noticed by the processes, which make the missing revocations again", async () => {
    const kept = await session.issue(["kept.example"], new Map())
    await copied(name, `${name}_before`)
    const other = await session.another()
    const account = await other.register()
    const lost = await session.issue(["lost.example"], new Map())
    await revoke(lost.chain)
    await untilListed(serialOf(lost.chain))

    await copied(`${name}_before`, name)
    const { server } = ground
    const went = await server.waitForEvent("db_went_back", { timeoutMs: 60_000 })
    assert.isAtLeast(Number(went.fields["count"]), 4)
    const named = server.records().filter(({ fields }) => fields["event"] === "db_change_lost")
      .map(({ fields }) => [fields["change"], fields["order_id"] ?? fields["account_id"]].join(" "))
    assert.includeMembers(named, [
      `account_created ${idOf(account)}`,
      `order_created ${idOf(lost.order.url)}`,
      `certificate_issued ${idOf(lost.order.url)}`,
      `certificate_revoked ${idOf(lost.order.url)}`
    ])
    assert.notInclude(named.join(), idOf(kept.order.url))
    assert.include(serialsIn(await list()), serialOf(lost.chain))

    assert.strictEqual(await session.download(kept.certificateUrl), kept.chain)
    assert.strictEqual(problemType(await other.post(account)), "accountDoesNotExist")
    const again = await session.issue(["again.example"], new Map())
    await revoke(again.chain)
    await untilListed(serialOf(again.chain))
    assert.include(serialsIn(await list()), serialOf(lost.chain))
    await server.waitForEvent("local_ca_revocations_restored")
  })
})
