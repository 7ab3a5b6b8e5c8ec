import Sqlite from "better-sqlite3"
import { copyFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Client, escapeIdentifier } from "pg"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { openssl } from "../crypto/Pki.ts"
import { AcmeSession, problemType } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, databases, freshDirectory, freshPostgresUrl } from "../support/Databases.ts"
import { leafOf, renewalIdOf } from "../support/Openssl.ts"
import { freePort } from "../support/Ports.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, startServer } from "../support/Server.ts"

/*
 * Tests what docs/operate/backup-and-restore.md says about a restored database: what the service does by itself, and
 * what operators must repeat.
 */

const config = `${minimalConfig}[challenge]\nbypass = true\n[admin]\nenabled = true\n`
const password = "Wrocław tramway, 4 stops"

/** Copies the present content of a database into a separate database, by `VACUUM INTO` or as a template. */
const copyOf = async (url: string): Promise<string> => {
  if (url.startsWith("sqlite://")) {
    const path = join(freshDirectory(), "backup.db")
    const database = new Sqlite(url.slice("sqlite://".length))
    database.prepare("VACUUM INTO ?").run(path)
    database.close()
    return `sqlite://${path}`
  }
  const copy = await freshPostgresUrl()
  const [from, to] = [url, copy].map((one) => escapeIdentifier(new URL(one).pathname.slice(1)))
  const maintenance = new URL(url)
  maintenance.pathname = "/postgres"
  const client = new Client({ connectionString: maintenance.href })
  await client.connect()
  await client.query(`DROP DATABASE ${to}`)
  await client.query(`CREATE DATABASE ${to} TEMPLATE ${from}`)
  await client.end()
  return copy
}

const serialOf = (chain: string): string => leafOf(chain).serialNumber.toLowerCase()

describe.each(databases)("a database that was restored from a backup, $name", ({ freshUrl }) => {
  const directory = freshDirectory()
  let server: Server
  let databaseUrl = ""
  let port = 0
  let api = ""

  const serve = async (url: string) => {
    databaseUrl = url
    const env = { ACME_SVC_ADMIN__BIND_ADDRESS: api, ACME_SVC_ADMIN__BASE_URL: `http://${api}` }
    server = await startServer({ config, directory, port, databaseUrl: url, env })
  }
  const ends = async (code: number, ...words: ReadonlyArray<string>): Promise<string> => {
    const env = { ACME_SVC_DATABASE__URL: databaseUrl, USER: "olga" }
    const ended = await commandLine(words, { config: null, directory, env })
    assert.strictEqual(ended.code, code, `${words.join(" ")}\n${ended.stdout}\n${ended.stderr}`)
    return code === 0 ? ended.stdout : ended.stderr
  }
  const list = async (): Promise<{ readonly number: number; readonly serials: ReadonlyArray<string> }> => {
    const answer = await fetch(server.directoryUrl.replace(/directory$/, "crl"))
    const input = Buffer.from(await answer.arrayBuffer())
    const said = openssl(["crl", "-inform", "DER", "-noout", "-crlnumber", "-text"], input).toString()
    const serials = [...said.matchAll(/Serial Number: (\S+)/g)].map(([, serial = ""]) => serial.toLowerCase())
    return { number: Number(/^crlNumber=(\S+)$/m.exec(said)?.[1]), serials }
  }
  const asked = async (headers: Readonly<Record<string, string>>): Promise<number> =>
    (await fetch(`http://${api}/api/orders`, { headers })).status

  beforeAll(async () => {
    await builtServer()
    port = await freePort()
    api = `127.0.0.1:${await freePort()}`
    await serve(await freshUrl())
  })
  afterAll(() => server.stop())

  it("lacks what came after the backup until operators repeat it, but continues the numbers of its lists", async () => {
    writeFileSync(join(directory, "password.txt"), `${password}\n`, { mode: 0o600 })
    await ends(0, "admin", "user", "create", "ann", "--password-file", "password.txt")
    const token = (await ends(0, "admin", "token", "create", "ann", "--name", "backup", "--expires-in", "2")).trim()
    const signedIn = await fetch(`http://${api}/api/session`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username: "ann", password })
    })
    const cookie = signedIn.headers.getSetCookie().map((one) => one.split(";")[0]).join("; ")
    const { kid } = JSON.parse(await ends(0, "eab", "create", "--label", "web", "--json")) as { readonly kid: string }
    const session = await AcmeSession.open(server.directoryUrl, { patienceMs: 10_000 })
    await session.register()
    const known = await session.issue(["known.example"], new Map())
    await server.stop()
    const backup = await copyOf(databaseUrl)

    await serve(databaseUrl)
    const { id, issuer, tokenId } = await (async () => {
      const parsed = async <A>(...words: ReadonlyArray<string>) =>
        (JSON.parse(await ends(0, ...words, "--json")) as { readonly items: ReadonlyArray<A> }).items[0]
      const order = await parsed<{ readonly id: string }>("order", "list")
      const crl = await parsed<{ readonly issuer: string }>("crl", "list")
      const made = await parsed<{ readonly id: string }>("admin", "token", "list")
      return { id: order?.id ?? "", issuer: crl?.issuer ?? "", tokenId: made?.id ?? "" }
    })()
    const late = await session.issue(["late.example"], new Map())
    const gone = await session.issue(["gone.example"], new Map())
    const newcomer = await session.another()
    await newcomer.register()
    await ends(0, "order", "revoke", id, "--wait", "20")
    await ends(0, "cert", "revoke", serialOf(gone.chain), "--reason", "superseded", "--wait", "20")
    await ends(0, "admin", "token", "revoke", tokenId, "--yes")
    await ends(0, "admin", "session", "revoke", "--all", "--yes")
    await ends(0, "eab", "revoke", kid)
    assert.deepStrictEqual([await asked({ cookie }), await asked({ authorization: `Bearer ${token}` })], [401, 401])
    const before = await list()
    const revoked = [known, gone].map(({ chain }) => serialOf(chain)).toSorted()
    assert.deepStrictEqual(before.serials.toSorted(), revoked)
    await server.stop()

    // What the service does by itself: revoked certificates are revoked again before anything is served, and the
    // numbers rise.
    await serve(backup)
    const first = await list()
    assert.isAbove(first.number, before.number)
    assert.deepStrictEqual(first.serials.toSorted(), revoked)
    const { fields } = await server.waitForEvent("local_ca_revocations_restored")
    assert.deepInclude(fields, { rows_imported: 2, entries: 2, crl_number: String(before.number) })
    const trail = await ends(0, "audit", "list", "--event", "revocation_restored", "--json")
    assert.strictEqual((JSON.parse(trail) as { readonly total: number }).total, 2)
    assert.include(await ends(3, "order", "revoke", id), "revoked already")

    // The restored database still has the sessions and tokens that were ended after the backup.
    assert.deepStrictEqual([await asked({ cookie }), await asked({ authorization: `Bearer ${token}` })], [200, 200])
    await ends(0, "admin", "session", "revoke", "--all", "--yes")
    await ends(0, "admin", "token", "revoke", tokenId, "--yes")
    assert.deepStrictEqual([await asked({ cookie }), await asked({ authorization: `Bearer ${token}` })], [401, 401])
    await ends(0, "eab", "revoke", kid)

    // The service does not know what was made after the backup: the certificate, its renewal information and the
    // account.
    const info = `${session.directory.renewalInfo ?? ""}/${renewalIdOf(late.chain)}`
    assert.strictEqual((await session.get(info)).status, 404)
    assert.strictEqual(problemType(await newcomer.post(newcomer.kid ?? "")), "accountDoesNotExist")
    newcomer.kid = undefined
    await newcomer.register()
    const renewed = await session.issue(["late.example"], new Map())
    assert.notStrictEqual(serialOf(renewed.chain), serialOf(late.chain))

    // An unknown certificate is revoked by its serial number.
    const serial = serialOf(late.chain)
    assert.include(await ends(2, "crl", "revoke", issuer, serial), "--yes")
    assert.include(await ends(0, "crl", "revoke", issuer, serial, "--reason", "4", "--yes"), "is revoked")
    await ends(3, "crl", "revoke", issuer, serial, "--yes")
    const of = serialOf(renewed.chain)
    assert.include(await ends(3, "crl", "revoke", issuer, of, "--yes"), "order revoke")
    const wanted = [...revoked, serial].toSorted()
    const last = await session.poll(list, ({ serials }) => serials.length === wanted.length)
    assert.deepStrictEqual(last.serials.toSorted(), wanted)
    assert.isAbove(last.number, first.number)
    session.close()
  })

  it("gets the revocations of a saved list back by crl import if there is no record of the last list", async () => {
    const session = await AcmeSession.open(server.directoryUrl, { patienceMs: 10_000 })
    await session.register()
    const { chain } = await session.issue(["kept.example"], new Map())
    await server.stop()
    const backup = await copyOf(databaseUrl)
    await serve(databaseUrl)
    await ends(0, "cert", "revoke", serialOf(chain), "--wait", "20")
    const before = await list()
    await server.stop()
    copyFileSync(join(directory, "ca.crl"), join(directory, "ca.crl.before"))
    rmSync(join(directory, "ca.crl.issued"))
    await serve(backup)
    assert.notInclude((await list()).serials, serialOf(chain))
    const [{ issuer = "" } = {}] = (JSON.parse(await ends(0, "crl", "list", "--json")) as {
      readonly items: ReadonlyArray<{ readonly issuer: string }>
    }).items
    const imported = await ends(0, "crl", "import", issuer, "ca.crl.before", "--yes", "--json")
    assert.deepInclude(JSON.parse(imported), { imported: 1, withoutOrder: 0, crlNumber: before.number })
    const last = await session.poll(list, ({ serials }) => serials.includes(serialOf(chain)))
    assert.isAbove(last.number, before.number)
    session.close()
  })
})
