import { writeFileSync } from "node:fs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { startHttp01Responder } from "../support/Http01Responder.ts"
import { leafOf } from "../support/Openssl.ts"
import type { Serving } from "../support/Place.ts"
import { begun, hasRunLinesOf } from "../support/Place.ts"
import type { Place } from "../support/Place.ts"

/* Tests the commands of the runbooks that are in no other document. */

describe("docs/operate/runbooks", () => {
  let place: Place
  let serving: Serving
  let session: AcmeSession
  let closeResponder: () => Promise<void>
  let tokens: Map<string, string>

  beforeAll(async () => {
    ;({ place, serving } = await begun())
    const responder = await startHttp01Responder({ port: place.httpPort })
    closeResponder = () => responder.stop()
    tokens = responder.tokens
    session = await AcmeSession.open(`http://localhost:${place.port}/profile/default/directory`)
    const account = await session.register()
    place.stand("ACCOUNT_ID", account.slice(account.lastIndexOf("/") + 1))
  })

  afterAll(async () => {
    session?.close()
    await closeResponder?.()
    await serving?.stop()
  })

  /** Gets a new certificate, whose serial number replaces SERIAL from now on. */
  const issued = async () => {
    const serial = leafOf((await session.issue(["demo.localhost"], tokens)).chain).serialNumber
    place.stand("SERIAL", serial)
    return serial.toLowerCase()
  }

  it("begin with what needs attention", async () => {
    assert.include(await place.succeed("attention"), "All is well.")
  })

  it("inspect the disk, the database and the CA", async () => {
    assert.match(await place.succeed("diskFree"), /%/)
    const { code, stderr, stdout } = await place.paste("onlineCheck")
    assert.include([0, 1], code, stdout + stderr)
    assert.match(stdout + stderr, /database/)
    assert.match(await place.succeed("caEnd"), /^notAfter=/m)
  })

  it("find a certificate by its serial number, and revoke it", async () => {
    const one = await issued()
    assert.match(await place.succeed("ofSerial"), /  default  valid /)
    assert.match(await place.succeed("revokeCompromised"), new RegExp(`^${one}: Revoked\\.`, "m"))
    const [issuer = ""] = /^[0-9a-f]{64}/m.exec(await place.succeed("crlList")) ?? []
    place.stand("ISSUER", issuer)
    place.stand("SERIAL", "7a0b1c")
    assert.include(await place.succeed("crlRevokeCompromised"), "Certificate 7a0b1c is revoked")
    await issued()
    assert.include(await place.succeed("ordersEndingInAYear"), "demo.localhost")
  })

  it("show an account with an endless loop of requests, and deactivate it", async () => {
    assert.include(await place.succeed("ordersOfAccount"), "demo.localhost")
    assert.match(await place.succeed("accountShow"), /^status +valid$/m)
    await place.succeed("accountDeactivate")
    assert.match(await place.succeed("accountShow"), /^status +deactivated$/m)
  })

  it("list certificates that were signed for orders that had ended", async () => {
    for (const line of ["orphansWaiting", "orphansKept", "orphanJobs"] as const) await place.succeed(line)
  })

  it("verify the audit trail, and show its receivers and jobs", async () => {
    assert.match(await place.succeed("auditVerify"), /^faults +0$/m)
    assert.include(await place.succeed("auditOfRoles"), "0 of 0 row(s)")
    for (const line of ["auditReceivers", "auditPushJobs", "auditCheckJobs"] as const) await place.succeed(line)
  })

  it("help an operator who has lost the second factor", async () => {
    writeFileSync(place.at("password.txt"), "Wrocław tramway, 4 stops\n", { mode: 0o600 })
    const { code, stderr } = await place.run("acme-svc admin user create ann --password-file password.txt")
    assert.strictEqual(code, 0, stderr)
    await place.succeed("auditOfOperators")
    for (const line of ["totpReset", "totpStatus", "endSessionsOf"] as const) {
      const { code, stderr, stdout } = await place.paste(line)
      // No operator here has a second factor that could be removed.
      assert.include(line === "totpReset" ? [0, 3] : [0], code, `${line}: ${stdout}${stderr}`)
    }
  })

  // The CA issues nothing afterwards.
  it("revoke everything that a compromised CA has signed", async () => {
    const [, issuer = ""] = /^([0-9a-f]{64}) /m.exec(await place.succeed("crlList")) ?? []
    place.stand("ISSUER", issuer)
    assert.include(await place.succeed("crlCompromised"), "a worker revokes its certificates.")
  })
})

hasRunLinesOf("runbooks")
