import { rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import type { OrderBody } from "../support/AcmeSession.ts"
import { AcmeSession } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer, databases, freshDirectory } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import { shellScript } from "../support/Script.ts"

/* Tests the answers to finalize that wait for the certificate while something happens to the process. */

const recipe = resolve(import.meta.dirname, "../../docs/recipes/sign-with-openssl.sh")

describe.each(databases)("an answer to finalize that waits for the certificate, on $name", (backend) => {
  let ground: Ground
  let session: AcmeSession
  const [home, hold] = [freshDirectory(), join(freshDirectory(), "hold")]

  beforeAll(async () => {
    await builtServer()
    ground = await startGround({
      databaseUrl: await backend.freshUrl(),
      config: [
        "[order]\nfinalize_wait_ms = 50000\n[challenge]\nanswer_wait_ms = 50000\n[jobs]\nretry_base_seconds = 1",
        "[profiles.default.signer]\nbackend = \"custom\"\n[profiles.default.signer.custom]",
        `script_path = "${shellScript(`while [ -e '${hold}' ]; do sleep 0.05; done; exec '${recipe}' '${home}'`)}"`
      ].join("\n")
    })
    session = await AcmeSession.open(ground.server.directoryUrl)
    await session.register()
  })

  beforeEach(() => writeFileSync(hold, ""))

  afterAll(async () => {
    rmSync(hold, { force: true })
    session.close()
    await ground.dispose()
  })

  const release = () => rmSync(hold)

  /** Sends finalize for a new order, and returns when the signing has been queued. */
  const finalizing = async (name: string) => {
    const { body, url } = await session.newOrder([name])
    const [authorization = ""] = body.authorizations
    const { challenges: [challenge] } = await session.authorization(authorization)
    const { token = "", url: challengeUrl = "" } = challenge ?? {}
    ground.responder.tokens.set(token, session.keyAuthorization(token))
    assert.strictEqual((await session.trigger(challengeUrl)).status, "valid")
    const answer = session.finalize(body, makeCsr({ names: [name] }).csr).then(({ headers, json }) => ({
      headers,
      order: json as OrderBody
    }))
    // A test that fails before it reads the answer must not fail a second time.
    answer.catch(() => undefined)
    const id = url.split("/").at(-1)
    await ground.server.waitForEvent("order_finalize_queued", { where: ({ fields }) => fields["order_id"] === id })
    return { answer, url }
  }

  it("has the certificate even if the configuration is reloaded in the meantime", async () => {
    const { answer } = await finalizing("reloaded.example")
    ground.server.signal("SIGHUP")
    await ground.server.waitForEvent("server_config_reloaded")
    release()
    const { headers, order } = await answer
    assert.deepStrictEqual([order.status, headers["retry-after"]], ["valid", undefined])
    assert.match(await session.download(order.certificate ?? ""), /^-----BEGIN CERTIFICATE-----/)
  })

  it("is lost with a process that is killed, but the order is not", async () => {
    const { answer, url } = await finalizing("killed.example")
    await ground.server.kill9()
    assert.match(String(await answer.catch((error: unknown) => error)), /Error/)
    release()
    await ground.server.restart()
    assert.strictEqual((await session.awaitOrder(url, ["valid", "invalid"])).status, "valid")
  })

  it("has the present state if the process is stopped long before the certificate exists", async () => {
    const { answer, url } = await finalizing("stopped.example")
    ground.server.signal("SIGTERM")
    const { headers, order } = await answer
    assert.deepStrictEqual([order.status, headers["connection"]], ["processing", "close"])
    assert.deepStrictEqual(await ground.server.exited(), { code: 0, signal: null })
    release()
    await ground.server.restart()
    assert.strictEqual((await session.awaitOrder(url, ["valid", "invalid"])).status, "valid")
  })
})
