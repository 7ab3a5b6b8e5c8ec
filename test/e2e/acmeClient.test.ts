import * as acme from "acme-client"
import { readFileSync } from "node:fs"
import { Agent } from "node:https"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { acmeClient, issueByHttp01 } from "../support/AcmeClient.ts"
import { builtServer, databases } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import { leafOf, verifyChain } from "../support/Openssl.ts"

/** Returns the error with which a promise failed. Fails the test if the promise did not fail. */
const failure = async (promise: Promise<unknown>): Promise<Error> => {
  const outcome = await promise.then(() => undefined, (error: unknown) => error)
  assert.instanceOf(outcome, Error)
  return outcome
}

describe.each(databases)("npm's acme-client over TLS, http-01, $name", ({ freshUrl }) => {
  let ground: Ground
  let client: acme.Client

  const newClient = async (key: Buffer): Promise<acme.Client> => {
    const made = await acmeClient(ground.server.directoryUrl, { accountKey: key })
    await made.createAccount({ termsOfServiceAgreed: true, contact: ["mailto:ops@corp.example"] })
    return made
  }

  const issue = async (from: acme.Client, names: ReadonlyArray<string>, serve = true): Promise<string> =>
    (await issueByHttp01(from, serve ? ground.responder : undefined, names)).chain

  beforeAll(async () => {
    await builtServer()
    ground = await startGround({ tls: true, databaseUrl: await freshUrl() })
    // The client trusts only the certificate that the server generated.
    const ca = readFileSync(join(ground.server.directory, "server.pem"))
    acme.axios.defaults.httpsAgent = new Agent({ ca })
    client = await newClient(await acme.crypto.createPrivateEcdsaKey("P-256"))
  })

  afterAll(async () => {
    await ground?.dispose()
  })

  it("gets a certificate that OpenSSL accepts", async () => {
    const chain = await issue(client, ["www.corp.example"])
    await verifyChain(chain, ground.server.caFile, "www.corp.example")
    assert.isTrue(ground.responder.requests.some(({ host }) => /^www\.corp\.example(:\d+)?$/.test(host)))
  })

  it("gets one certificate for several names", async () => {
    const names = ["one.corp.example", "two.corp.example", "intranet"]
    const chain = await issue(client, names)
    for (const name of names) await verifyChain(chain, ground.server.caFile, name)
  })

  it("can use an account with an RSA key", async () => {
    const rsa = await newClient(await acme.crypto.createPrivateRsaKey(2048))
    await verifyChain(await issue(rsa, ["rsa.corp.example"]), ground.server.caFile, "rsa.corp.example")
  })

  it("renews a certificate with the same account", async () => {
    const before = await issue(client, ["renewed.corp.example"])
    const account = client.getAccountUrl()
    const after = await issue(client, ["renewed.corp.example"])
    await verifyChain(after, ground.server.caFile, "renewed.corp.example")
    assert.notStrictEqual(leafOf(after).serialNumber, leafOf(before).serialNumber)
    assert.strictEqual(client.getAccountUrl(), account)
  })

  it("finds the account again by its key", async () => {
    const key = await acme.crypto.createPrivateEcdsaKey("P-256")
    const [first, second] = [await newClient(key), await newClient(key)]
    assert.strictEqual(second.getAccountUrl(), first.getAccountUrl())
  })

  it("is told that a challenge failed if it does not serve the key authorization", async () => {
    const { message } = await failure(issue(client, ["unserved.corp.example"], false))
    assert.include(message, "unserved.corp.example")
    await ground.server.waitForEvent("challenge_failed", {
      where: ({ fields }) => fields["identifier"] === "unserved.corp.example"
    })
  })

  it("is refused a wildcard name while dns-01 is off", async () => {
    const order = client.createOrder({ identifiers: [{ type: "dns", value: "*.corp.example" }] })
    assert.include((await failure(order)).message, "dns-01")
  })

  it("deactivates an authorization", async () => {
    const order = await client.createOrder({ identifiers: [{ type: "dns", value: "given-up.corp.example" }] })
    const [authorization] = await client.getAuthorizations(order)
    assert.isDefined(authorization)
    if (authorization === undefined) return
    assert.strictEqual((await client.deactivateAuthorization(authorization)).status, "deactivated")
  })

  it("can no longer use its account after it has deactivated the account", async () => {
    const leaving = await newClient(await acme.crypto.createPrivateEcdsaKey("P-256"))
    await issue(leaving, ["leaving.corp.example"])
    assert.strictEqual((await leaving.updateAccount({ status: "deactivated" })).status, "deactivated")
    await failure(leaving.createOrder({ identifiers: [{ type: "dns", value: "leaving.corp.example" }] }))
  })

  it("works again after a restart of the server", async () => {
    const { code } = await ground.server.stop("SIGTERM")
    assert.strictEqual(code, 0)
    await ground.server.restart()
    await verifyChain(await issue(client, ["after.corp.example"]), ground.server.caFile, "after.corp.example")
  })
})
