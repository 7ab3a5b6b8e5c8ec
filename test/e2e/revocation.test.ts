import type * as acme from "acme-client"
import { base64url } from "jose"
import type { KeyObject } from "node:crypto"
import { createPrivateKey, X509Certificate } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { rfc3339 } from "../../src/engine/Time.ts"
import { openssl, opensslOnCrl, pem } from "../crypto/Pki.ts"
import { acmeClient, issueByHttp01 } from "../support/AcmeClient.ts"
import { acmeKeyFrom, AcmeSession, problemType } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer, databases, freshDirectory } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startBeside, startGround } from "../support/Ground.ts"
import { leafOf } from "../support/Openssl.ts"
import type { Server } from "../support/Server.ts"

interface CrlObject {
  readonly issuer: string
  readonly crlNumber: number
  readonly entries: number
  readonly unlisted: number
  readonly state: string
}

interface OrderObject {
  readonly id: string
  readonly status: string
  readonly certSerial?: string
  readonly revokedAt?: string
  readonly revocationReason?: number
}

interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly total: number
  readonly limit: number
  readonly offset: number
}

describe.each(databases)("revocation, end to end, $name", ({ freshUrl }) => {
  let ground: Ground
  let second: Server
  let databaseUrl = ""
  let session: AcmeSession
  let client: acme.Client

  const idOf = (url: string): string => url.slice(url.lastIndexOf("/") + 1)
  const serialOf = (chain: string): string => leafOf(chain).serialNumber.toLowerCase()

  const command = (...words: ReadonlyArray<string>) =>
    commandLine(words, {
      directory: ground.server.directory,
      env: { ACME_SVC_DATABASE__URL: databaseUrl, ACME_SVC_SERVER__BASE_URL: ground.server.baseUrl, USER: "olga" }
    })

  /** Runs a command that must end with this exit code, and returns the output from the stream where it belongs. */
  const ends = async (code: number, ...words: ReadonlyArray<string>): Promise<string> => {
    const ended = await command(...words)
    assert.strictEqual(ended.code, code, `${words.join(" ")}\n${ended.stdout}\n${ended.stderr}`)
    if (code !== 0) assert.strictEqual(ended.stdout, "", words.join(" "))
    return code === 0 ? ended.stdout : ended.stderr
  }

  const json = async <A>(...words: ReadonlyArray<string>): Promise<A> => JSON.parse(await ends(0, ...words)) as A

  const onlyList = async (): Promise<CrlObject> => {
    const { items: [list] } = await json<Page<CrlObject>>("crl", "list", "--json")
    return list ?? assert.fail("no list")
  }

  const fetchList = async (server: Server = ground.server): Promise<Buffer> => {
    const answer = await fetch(server.directoryUrl.replace(/directory$/, "crl"))
    assert.deepStrictEqual([answer.status, answer.headers.get("content-type")], [200, "application/pkix-crl"])
    assert.isNull(answer.headers.get("replay-nonce"))
    return Buffer.from(await answer.arrayBuffer())
  }

  const serialsOf = (list: Buffer): ReadonlyArray<string> =>
    [...openssl(["crl", "-inform", "DER", "-noout", "-text"], list).toString().matchAll(/Serial Number: (\S+)/g)]
      .map(([, serial = ""]) => serial.toLowerCase())

  const numberOf = (list: Buffer): number =>
    Number(openssl(["crl", "-inform", "DER", "-noout", "-crlnumber"], list).toString().trim().split("=")[1])

  /** Returns the list once it names all of these certificates. */
  const listWith = (...serials: ReadonlyArray<string>): Promise<Buffer> =>
    session.poll(fetchList, (list) => serials.every((serial) => serialsOf(list).includes(serial)))

  /** Returns the output of `openssl verify -crl_check`. */
  const check = (chain: string, list: Buffer): string => {
    const directory = freshDirectory()
    const file = (name: string, text: string) => {
      writeFileSync(join(directory, name), text)
      return join(directory, name)
    }
    const words = ["verify", "-no-CApath", "-x509_strict", "-crl_check", "-CAfile", ground.server.caFile, "-CRLfile"]
    try {
      return openssl([...words, file("ca.crl", pem("X509 CRL", list)), file("leaf.pem", leafOf(chain).toString())])
        .toString()
    } catch (error) {
      return String(error instanceof Error && "stderr" in error ? error.stderr : error)
    }
  }

  const issue = async (name: string) => {
    const { chain, key } = await issueByHttp01(client, ground.responder, [name])
    return { chain, key: createPrivateKey(key) }
  }

  const revokeWithKey = async (key: KeyObject, chain: string, reason?: number) => {
    const own = await session.another(await acmeKeyFrom(key))
    return own.postOnce(own.directory.revokeCert ?? "", {
      certificate: base64url.encode(leafOf(chain).raw),
      ...(reason === undefined ? {} : { reason })
    })
  }

  beforeAll(async () => {
    await builtServer()
    databaseUrl = await freshUrl()
    ground = await startGround({ databaseUrl })
    second = await startBeside(ground, databaseUrl)
    session = await AcmeSession.open(ground.server.directoryUrl)
    await session.register()
    client = await acmeClient(ground.server.directoryUrl)
    await client.createAccount({ termsOfServiceAgreed: true })
  })

  afterAll(async () => {
    session?.close()
    await second?.dispose()
    await ground?.dispose()
  })

  it("makes OpenSSL refuse the revoked certificates and accept the others", async () => {
    const empty = await fetchList()
    assert.deepStrictEqual([numberOf(empty), serialsOf(empty)], [1, []])
    const [one, two, fresh] = [await issue("one.example"), await issue("two.example"), await issue("fresh.example")]
    for (const { chain } of [one, two, fresh]) assert.include(check(chain, empty), "OK")

    await client.revokeCertificate(one.chain, { reason: 4 })
    assert.strictEqual((await revokeWithKey(two.key, two.chain, 1)).status, 200)
    const again = await client.revokeCertificate(one.chain).then(() => "", String)
    assert.match(again, /revoked already/i)

    const judge = async () => {
      const list = await listWith(serialOf(one.chain), serialOf(two.chain))
      assert.include(check(one.chain, list), "certificate revoked")
      assert.include(check(two.chain, list), "certificate revoked")
      assert.include(check(fresh.chain, list), "OK")
      return numberOf(list)
    }
    const before = await judge()
    const exported = readFileSync(join(ground.server.directory, "ca.crl"), "utf8")
    const der = openssl(["crl", "-outform", "DER"], exported)
    assert.strictEqual(opensslOnCrl(ground.server.caFile, der), "verify OK")

    // The list is due at once, and the first worker signs it again.
    const { issuer } = await onlyList()
    await ends(0, "crl", "raise", issuer, "--above", String(before + 40), "--yes")
    await session.poll(fetchList, (list) => numberOf(list) > before + 40)
    assert.isAbove(await judge(), before + 40)
    assert.isTrue((await fetchList(second)).equals(await fetchList()), "every process serves the stored list")
  })

  it("lists all of twenty certificates that were revoked at once at two servers", async () => {
    const issued = await Promise.all(
      Array.from({ length: 20 }, (_, index) => session.issue([`n${index}.example`], ground.responder.tokens))
    )
    const before = numberOf(await fetchList())
    const url = session.directory.revokeCert ?? ""
    const numbers: Array<number> = []
    const statuses = await Promise.all(issued.map(async ({ chain }, index) => {
      const body = await session.sign(url, { certificate: base64url.encode(leafOf(chain).raw), reason: index % 6 })
      const { port } = index % 2 === 0 ? ground.server : second
      const answer = await fetch(url.replace(ground.server.baseUrl, `http://127.0.0.1:${port}`), {
        method: "POST",
        headers: { "content-type": "application/jose+json" },
        body
      })
      numbers.push(numberOf(await fetchList(index % 2 === 0 ? second : ground.server)))
      return answer.status
    }))
    assert.deepStrictEqual([...new Set(statuses)], [200])
    const list = await listWith(...issued.map(({ chain }) => serialOf(chain)))
    assert.isAbove(numberOf(list), before)
    for (const number of numbers) assert.isAtMost(number, numberOf(list))
    const republished = [...ground.server.records(), ...second.records()]
      .filter(({ fields }) => fields["event"] === "local_ca_crl_republished").map(({ fields }) => fields["crl_number"])
    assert.strictEqual(new Set(republished).size, republished.length, "no number was given twice")
    for (const server of [ground.server, second]) {
      assert.deepStrictEqual(server.records().filter(({ level }) => level === "error"), [])
    }
    assert.deepInclude(await onlyList(), { state: "ok", unlisted: 0, entries: serialsOf(list).length })
  })

  it("is done by only one of twenty requests at once at two servers for one certificate", async () => {
    const { chain, key, order } = await session.issue(["wanted.example"], ground.responder.tokens)
    const reasons = [0, 1, 2, 3, 4, 5, 6, 8, 9, 10]
    const url = session.directory.revokeCert ?? ""
    const own = await session.another(await acmeKeyFrom(key))
    const outcomes = await Promise.all([...reasons, ...reasons].map(async (reason, index) => {
      const payload = { certificate: base64url.encode(leafOf(chain).raw), reason }
      const body = await (index < 10 ? session : own).sign(url, payload)
      const { port } = index % 2 === 0 ? ground.server : second
      const answer = await fetch(url.replace(ground.server.baseUrl, `http://127.0.0.1:${port}`), {
        method: "POST",
        headers: { "content-type": "application/jose+json" },
        body
      })
      return { status: answer.status, text: await answer.text(), reason }
    }))
    const won = outcomes.filter(({ status }) => status === 200)
    assert.strictEqual(won.length, 1)
    assert.strictEqual(outcomes.filter(({ text }) => text.includes("alreadyRevoked")).length, 19)
    const shown = await json<OrderObject>("order", "show", idOf(order.url), "--json")
    assert.strictEqual(shown.revocationReason, won[0]?.reason)
    assert.strictEqual(serialsOf(await listWith(serialOf(chain))).filter((one) => one === serialOf(chain)).length, 1)
  })

  describe("on the command line", () => {
    let chain = ""
    let id = ""
    let pending = ""
    const absent = "01890a5d-ac96-774b-bcce-b302099a8057"

    beforeAll(async () => {
      const issued = await session.issue(["shop.commands.example"], ground.responder.tokens)
      chain = issued.chain
      id = idOf(issued.order.url)
      pending = idOf((await session.newOrder(["waiting.commands.example"])).url)
    })

    it("order list has filters and pages, and prints JSON", async () => {
      const page = await json<Page<OrderObject>>("order", "list", "--identifier-suffix", "commands.example", "--json")
      assert.deepInclude(page, { total: 2, limit: 50, offset: 0 })
      assert.deepStrictEqual(page.items.map((item) => item.id), [pending, id])
      assert.containsAllKeys(page.items[1] ?? {}, [
        "id",
        "profile",
        "accountId",
        "status",
        "identifiers",
        "createdAt",
        "expires",
        "url",
        "certSerial",
        "certNotAfter"
      ])
      assert.notInclude(JSON.stringify(page), "BEGIN CERTIFICATE")
      const serial = leafOf(chain).serialNumber
      for (
        const filter of [
          ["--identifier", "SHOP.commands.example."],
          ["--identifier-contains", "hop.Comm"],
          ["--cert-serial", `00:${serial.replaceAll(/(..)(?=.)/g, "$1:")}`],
          ["--identifier-suffix", ".shop.commands.example"],
          ["--status", "valid", "--identifier-suffix", "commands.example", "--since", "2020-01-01"],
          ["--limit", "1", "--offset", "1", "--identifier-suffix", "commands.example"]
        ]
      ) {
        const found = await json<Page<OrderObject>>("order", "list", "--json", ...filter)
        assert.deepStrictEqual(found.items.map((item) => item.id), [id], filter.join(" "))
      }
      const none = await json<Page<OrderObject>>("order", "list", "--json", "--until", "2020-01-01")
      assert.deepStrictEqual([none.items, none.total], [[], 0])
      const text = await ends(0, "order", "list", "--identifier-suffix", "commands.example", "--limit", "0")
      assert.match(text, new RegExp(`^${pending} .*waiting\\.commands\\.example`, "m"))
      assert.match(text, /^1 of 2 row\(s\)\.$/m)
      assert.match(await ends(0, "order", "list", "--profile", "nowhere"), /^0 of 0 row\(s\)\.$/m)
    })

    it("order list --expiring-in lists the certificates that expire in the given time", async () => {
      interface Ending {
        readonly orderId: string
        readonly daysRemaining: number
        readonly supersededBy?: { readonly orderId: string; readonly via: string }
      }
      type Endings = Page<Ending> & { readonly hidden: number; readonly days: number }
      const ends90 = await json<Endings>("order", "list", "--expiring-in", "400", "--profile", "default", "--json")
      const shop = ends90.items.find(({ orderId }) => orderId === id) ?? assert.fail("not listed")
      assert.containsAllKeys(shop, ["profile", "accountId", "certSerial", "identifiers", "notAfter", "daysRemaining"])
      assert.deepStrictEqual([ends90.hidden, ends90.days], [0, 400])
      const text = await ends(0, "order", "list", "--expiring-in", "400", "--hide-superseded", "--limit", "10000")
      assert.match(text, new RegExp(`^${id} .*shop\\.commands\\.example`, "m"))
      assert.match(await ends(0, "order", "list", "--expiring-in", "1"), /^0 of 0 row\(s\)\.$/m)
      assert.include(await ends(2, "order", "list", "--hide-superseded"), "requires --expiring-in")
      for (const [days, counted] of [["0", 1], ["99999999999999999999", 100_000]] as const) {
        assert.strictEqual((await json<Endings>("order", "list", "--expiring-in", days, "--json")).days, counted)
      }
      assert.include(await ends(2, "order", "list", "--expiring-in", "7", "--status", "valid"), "only --profile")
    })

    it("order list ends with 2 or 3 if a filter is wrong", async () => {
      assert.include(await ends(3, "order", "list", "--status", "lost"), "status takes one of")
      assert.include(await ends(2, "order", "list", "--account-id", "me"), "--account-id takes an id")
      assert.include(await ends(2, "order", "list", "--since", "yesterday"), "--since")
      assert.include(await ends(2, "order", "list", "--identifier", "a", "--identifier-suffix", "b"), "exclude")
      await ends(2, "order", "list", "--limit", "many")
    })

    it("order show prints text and JSON", async () => {
      const text = await ends(0, "order", "show", id)
      assert.match(text, new RegExp(`^id +${id}$`, "m"))
      assert.match(text, /^status +valid$/m)
      assert.match(text, /http-01: valid/)
      assert.notMatch(text, /BEGIN CERTIFICATE|https?:\/\//)
      const shown = await json<OrderObject & { certificatePem: string; authorizations: ReadonlyArray<object> }>(
        "order",
        "show",
        id,
        "--json"
      )
      assert.deepInclude(shown, { id, status: "valid", certificatePem: chain, certSerial: serialOf(chain) })
      assert.containsAllKeys(shown.authorizations[0] ?? {}, ["id", "identifier", "status", "expires", "challenges"])
      for (const unknown of [absent, "1"]) {
        assert.include(await ends(3, "order", "show", unknown), `There is no order ${unknown}`)
      }
      const error = JSON.parse(await ends(3, "order", "show", absent, "--json")) as { readonly error: string }
      assert.strictEqual(error.error, "refused")
    })

    it("order chain prints the chain, and ends with 3 if the order has no certificate", async () => {
      assert.strictEqual((await ends(0, "order", "chain", id)).trim(), chain.trim())
      assert.include(await ends(3, "order", "chain", pending), "There is no certificate of order")
      await ends(3, "order", "chain", absent)
    })

    it("order revoke succeeds once, and fails for wrong reasons and for orders without a certificate", async () => {
      for (const reason of ["7", "-1", "outdated"]) {
        assert.include(await ends(2, "order", "revoke", id, `--reason=${reason}`), "keyCompromise", reason)
      }
      assert.include(await ends(3, "order", "revoke", pending), "has no certificate")
      await ends(3, "order", "revoke", absent)
      assert.isUndefined((await json<OrderObject>("order", "show", id, "--json")).revokedAt)
      const said = await ends(0, "order", "revoke", id, "--reason", "cessationOfOperation", "--wait", "20")
      assert.match(said, /^Revoked\. Job [0-9a-f-]{36} signs the revocation list\.\nThe revocation list is signed\.\n$/)
      assert.include(check(chain, await fetchList()), "certificate revoked")
      const shown = await json<OrderObject>("order", "show", id, "--json")
      assert.strictEqual(shown.revocationReason, 5)
      assert.isString(shown.revokedAt)
      assert.include(await ends(3, "order", "revoke", id, "--reason", "1"), "revoked already")
      assert.match(await ends(0, "order", "list", "--identifier", "shop.commands.example"), /revoked/)
      assert.notInclude(await ends(0, "order", "list", "--status", "revoked", "--identifier", "a.example"), id)
      assert.include(await ends(0, "order", "list", "--status", "revoked"), id)
      assert.include(await ends(0, "order", "export", "--status", "revoked"), id)
      assert.include(await ends(0, "order", "list", "--status", "revoked"), id)
      assert.include(await ends(0, "order", "export", "--status", "revoked"), id)
      const text = await ends(0, "order", "show", id)
      assert.match(text, /^status +valid, revoked$/m)
      assert.match(text, /^reason +cessationOfOperation \(5\)$/m)
    })

    it("cert revoke accepts serial numbers as certificates show them", async () => {
      const chains = [
        (await session.issue(["one.serials.example"], ground.responder.tokens)).chain,
        (await session.issue(["two.serials.example"], ground.responder.tokens)).chain
      ]
      const [one = "", two = ""] = chains.map((each) => leafOf(each).serialNumber.replaceAll(/(..)(?=.)/g, "$1:"))
      const [stored = "", other = ""] = chains.map(serialOf)
      assert.include(await ends(2, "cert", "revoke", one, "no-number"), "value 2 is not")
      const unknown = await ends(3, "cert", "revoke", one, "4A:1B", "4A:1C")
      assert.match(
        unknown,
        /There is no certificate 4a1b\..*\nThere is no certificate 4a1c\..*\nNo certificate was revoked\.\n$/
      )
      const { items } = await json<Page<OrderObject>>("order", "list", "--identifier", "one.serials.example", "--json")
      const [{ id: order, revokedAt } = { id: "", revokedAt: "" }] = items
      assert.isUndefined(revokedAt)
      const hint = `There is no order ${one}. It is the serial number of the certificate of order ${order}.`
      assert.include(await ends(3, "order", "show", one), hint)
      assert.include(await ends(3, "order", "revoke", one), `${hint} The command cert revoke takes serial numbers.`)
      const said = await ends(0, "cert", "revoke", one, "--reason", "keycompromise", "--wait", "20")
      assert.match(said, new RegExp(`^${stored}: Revoked\\. Job .*\nThe revocation list is signed\\.\n$`))
      const both = await command("cert", "revoke", one, two, two, "--wait", "20")
      assert.strictEqual(both.code, 3)
      assert.strictEqual(both.stderr, `${stored}: The certificate is revoked already.\n`)
      assert.match(both.stdout, new RegExp(`^${other}: Revoked\\. Job .*\nThe revocation list is signed\\.\n$`))
      const list = await fetchList()
      for (const each of chains) assert.include(check(each, list), "certificate revoked")
    })

    it("crl list prints the list as JSON and as text", async () => {
      const page = await json<Page<CrlObject>>("crl", "list", "--json")
      assert.deepInclude(page, { total: 1, limit: 1, offset: 0 })
      const [list] = page.items
      const ca = new X509Certificate(readFileSync(ground.server.caFile))
      assert.hasAllKeys(list ?? {}, [
        "issuer",
        "subject",
        "sha256",
        "keyType",
        "keySource",
        "notBefore",
        "notAfter",
        "chainNotAfter",
        "chainEndsWith",
        "caState",
        "issuance",
        "profiles",
        "crlNumber",
        "thisUpdate",
        "nextUpdate",
        "entries",
        "unlisted",
        "state"
      ])
      assert.deepInclude(list ?? {}, {
        state: "ok",
        caState: "ok",
        issuance: "issuing",
        chainNotAfter: rfc3339(Date.parse(ca.validTo) / 1000),
        chainEndsWith: "CN=ACME Service Local CA",
        unlisted: 0,
        profiles: ["default"],
        keyType: "ecdsa-p256",
        keySource: "file",
        sha256: ca.fingerprint256.replaceAll(":", "").toLowerCase(),
        crlNumber: numberOf(await fetchList()),
        entries: serialsOf(await fetchList()).length
      })
      const text = await ends(0, "crl", "list")
      assert.match(text, new RegExp(`^${list?.issuer} +default .* ok +ok$`, "m"))
      assert.match(text, /^1 of 1 row\(s\)\.$/m)
    })

    it("crl raise gives the next list a higher number", async () => {
      const { crlNumber, issuer } = await onlyList()
      const above = crlNumber + 100
      assert.include(await ends(2, "crl", "raise", issuer, "--above", String(above)), "--yes")
      await ends(2, "crl", "raise", issuer, "--yes")
      await ends(2, "crl", "raise", issuer, "--above", "many", "--yes")
      assert.include(await ends(2, "crl", "raise", issuer, "--above", "9007199254740991", "--yes"), "--above")
      assert.include(await ends(3, "crl", "raise", "unknown", "--above", "5", "--yes"), "unknown")
      const low = await ends(3, "crl", "raise", issuer, "--above", String(crlNumber), "--yes")
      assert.include(low, `not above the stored one, ${crlNumber}`)
      assert.strictEqual((await onlyList()).crlNumber, crlNumber, "nothing was changed")
      assert.include(await ends(0, "crl", "raise", issuer, "--above", String(above), "--yes"), `to ${above}`)
      const list = await session.poll(fetchList, (one) => numberOf(one) > above)
      assert.strictEqual(numberOf(list), above + 1)
    })

    it("crl list and order revoke end with 1 if the schema of the database is not up to date", async () => {
      const directory = freshDirectory()
      for (const words of [["crl", "list"], ["order", "revoke", absent]]) {
        const { code, stderr } = await commandLine(words, { directory })
        assert.strictEqual(code, 1, stderr)
        assert.include(stderr, "migrate")
      }
    })

    it("order revoke ends with 3 for a profile that is no longer served", async () => {
      const csr = makeCsr({ names: ["parked.example"] })
      const issued = await session.issue(["parked.example"], ground.responder.tokens, { key: csr.key })
      const directory = freshDirectory()
      const { code, stderr } = await commandLine(["order", "revoke", idOf(issued.order.url)], {
        directory,
        config: "[profiles.elsewhere]\nenabled = true\n",
        env: { ACME_SVC_DATABASE__URL: databaseUrl }
      })
      assert.strictEqual(code, 3, stderr)
      assert.include(stderr, "default")
      assert.strictEqual(problemType(await revokeWithKey(csr.key, issued.chain, 7)), "badRevocationReason")
    })
  })
})
