import * as acme from "acme-client"
import type { Server as TlsServer } from "node:tls"
import { createSecureContext, createServer } from "node:tls"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { builtServer, databases } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import { verifyChain } from "../support/Openssl.ts"
import { freePort } from "../support/Ports.ts"

/** The validation certificates by name, as a client's responder shows them. */
const shown = new Map<string, { readonly cert: Buffer; readonly key: Buffer }>()

/** Starts a responder for `acme-tls/1` on 127.0.0.1. */
const startAlpn = async (port: number): Promise<TlsServer> => {
  const server = createServer({
    ALPNProtocols: ["acme-tls/1"],
    SNICallback: (name, done) => {
      const pair = shown.get(name)
      done(null, pair === undefined ? undefined : createSecureContext(pair))
    }
  })
  server.on("tlsClientError", () => {})
  await new Promise<void>((listening) => server.listen(port, "127.0.0.1", listening))
  return server
}

describe.each(databases)("npm's acme-client, dns-01 and tls-alpn-01, $name", ({ freshUrl }) => {
  let ground: Ground
  let alpn: TlsServer
  let client: acme.Client

  /** Changes the TXT values of a name, which may have several of them as in real zones. */
  const setTxt = (name: string, change: (values: ReadonlyArray<string>) => ReadonlyArray<string>) => {
    const key = `_acme-challenge.${name}`
    const values = (ground.dns.zone.get(key)?.TXT ?? []).flat()
    ground.dns.zone.set(key, { TXT: change(values) })
  }

  const issue = async (type: "dns-01" | "tls-alpn-01", names: ReadonlyArray<string>): Promise<string> => {
    const [, csr] = await acme.crypto.createCsr({ altNames: [...names] })
    return client.auto({
      csr,
      termsOfServiceAgreed: true,
      skipChallengeVerification: true,
      challengePriority: [type],
      challengeCreateFn: async (authorization, challenge, keyAuthorization) => {
        assert.strictEqual(challenge.type, type)
        const name = authorization.identifier.value
        if (type === "dns-01") return setTxt(name, (values) => [...values, keyAuthorization])
        const [key, cert] = await acme.crypto.createAlpnCertificate(authorization, keyAuthorization)
        shown.set(name, { key: Buffer.from(key), cert: Buffer.from(cert) })
      },
      challengeRemoveFn: (authorization, _challenge, keyAuthorization) => {
        setTxt(authorization.identifier.value, (values) => values.filter((value) => value !== keyAuthorization))
        return Promise.resolve()
      }
    })
  }

  beforeAll(async () => {
    await builtServer()
    const port = await freePort()
    alpn = await startAlpn(port)
    ground = await startGround({
      databaseUrl: await freshUrl(),
      env: {
        ACME_SVC_CHALLENGE__ENABLED: "http-01,dns-01,tls-alpn-01",
        ACME_SVC_CHALLENGE__TLS_ALPN_01__PORT: `${port}`
      }
    })
    const accountKey = await acme.crypto.createPrivateEcdsaKey("P-256")
    const { directoryUrl } = ground.server
    client = new acme.Client({ directoryUrl, accountKey, backoffAttempts: 60, backoffMin: 50, backoffMax: 500 })
    await client.createAccount({ termsOfServiceAgreed: true })
  })

  afterAll(async () => {
    await ground?.dispose()
    alpn?.close()
  })

  it("proves a wildcard name and its base name in one order by dns-01", async () => {
    const chain = await issue("dns-01", ["*.wild.corp.example", "wild.corp.example"])
    await verifyChain(chain, ground.server.caFile, "wild.corp.example")
    await verifyChain(chain, ground.server.caFile, "below.wild.corp.example")
    const asked = ground.dns.queries.filter(({ type }) => type === "TXT").map(({ name }) => name.toLowerCase())
    assert.isTrue(asked.every((name) => name === "_acme-challenge.wild.corp.example"), String(asked))
  })

  it("proves a name by tls-alpn-01", async () => {
    const chain = await issue("tls-alpn-01", ["alpn.corp.example"])
    await verifyChain(chain, ground.server.caFile, "alpn.corp.example")
    assert.isTrue(ground.server.records().some(({ fields }) => fields["event"] === "challenge_tls_alpn_01_matched"))
  })

  it("sees that the authorization of a wildcard name offers only dns-01", async () => {
    const identifiers = [{ type: "dns" as const, value: "*.only.corp.example" }]
    const [authorization] = await client.getAuthorizations(await client.createOrder({ identifiers }))
    assert.deepStrictEqual(authorization?.identifier, { type: "dns", value: "only.corp.example" })
    assert.isTrue(authorization?.wildcard)
    assert.deepStrictEqual(authorization?.challenges.map(({ type }) => type), ["dns-01"])
  })

  it.each(
    [
      {
        type: "dns-01",
        name: "wrong.corp.example",
        error: "incorrectResponse",
        says: /Of 2 TXT records at _acme-challenge\.wrong\.corp\.example none/
      },
      { type: "dns-01", name: "broken.corp.example", error: "dns", says: /could not be looked up/ },
      {
        type: "tls-alpn-01",
        name: "mute.corp.example",
        error: "tls",
        says: /did not speak the validation protocol at port \d+;/
      }
    ] as const
  )("is told of a failed $type by $error, without the received data", async ({ error, name, says, type }) => {
    ground.dns.zone.set("_acme-challenge.wrong.corp.example", { TXT: ["planted-one", "planted-two"] })
    ground.dns.zone.set("_acme-challenge.broken.corp.example", { rcode: "SERVFAIL" })
    const order = await client.createOrder({ identifiers: [{ type: "dns", value: name }] })
    const [authorization] = await client.getAuthorizations(order)
    const challenge = authorization?.challenges.find((one) => one.type === type)
    assert.isDefined(challenge)
    if (challenge === undefined || authorization === undefined) return
    await client.completeChallenge(challenge)
    await ground.server.waitForEvent("challenge_failed", { where: ({ fields }) => fields["identifier"] === name })
    const [failed] = await client.getAuthorizations(order)
    const { error: told } = failed?.challenges.find((one) => one.type === type) ?? {}
    assert.deepInclude(told, { type: `urn:ietf:params:acme:error:${error}` })
    const text = JSON.stringify(told)
    assert.match(text, says)
    assert.notInclude(text, "planted")
  })
})
