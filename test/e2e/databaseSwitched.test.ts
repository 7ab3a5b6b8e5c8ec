import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { builtServer } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import type { TwoServers } from "../support/TwoServers.ts"
import { connectionsAt, startTwoServers, switchOver } from "../support/TwoServers.ts"

/*
 * A failover after which the address belongs to another server. The old server stays up and accepts no writes, and no
 * connection is cut. The service changes to the new server without help.
 */

describe("an address that now belongs to another PostgreSQL server", () => {
  let servers: TwoServers
  let ground: Ground
  let session: AcmeSession

  beforeAll(async () => {
    await builtServer()
    servers = await startTwoServers()
    ground = await startGround({ databaseUrl: servers.url })
    session = await AcmeSession.open(ground.server.directoryUrl, { patienceMs: 60_000 })
    await session.register({ contact: ["mailto:ops@corp.example"] })
  })

  afterAll(async () => {
    session?.close()
    await ground?.dispose()
    await servers?.dispose()
  })

  it("makes every connection change to the new server without loss of what was issued before", async () => {
    const { tokens } = ground.responder
    const pid = ground.server.pid()
    const before = await session.issue(["before.corp.example"], tokens)
    await switchOver(servers)
    servers.address.target = servers.follower.port
    const health = `${ground.server.baseUrl}/health`
    const identifiers = [{ type: "dns", value: "during.corp.example" }]
    const ordered = await session.poll(
      () => session.post(session.directory.newOrder, { identifiers }),
      ({ status }) => status === 201
    )
    assert.strictEqual(ordered.status, 201)
    await session.poll(() => connectionsAt(servers.at.primary), (count) => count === 0)
    await session.issue(["after.corp.example"], tokens)
    assert.strictEqual(await session.download(before.certificateUrl), before.chain)
    assert.deepStrictEqual((await session.get(health)).json, { healthy: true })
    assert.strictEqual(await connectionsAt(servers.at.primary), 0)
    assert.isAbove(await connectionsAt(servers.at.follower), 0)
    assert.strictEqual(ground.server.pid(), pid)
  })
})
