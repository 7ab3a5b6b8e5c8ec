import Sqlite from "better-sqlite3"
import { X509Certificate } from "node:crypto"
import { copyFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { totpCode } from "../../src/crypto/Totp.ts"
import { secretOf } from "../support/Authenticator.ts"
import { layCa } from "../support/LaidCa.ts"
import { freePort } from "../support/Ports.ts"
import { minimalConfig } from "../support/Server.ts"
import type { Incident } from "./Incident.ts"
import type { Member, Scene } from "./Scene.ts"

/*
 * Incidents about keys of certificates, operators and CAs, and about a database that was restored to an earlier state.
 */

const serialOf = (chain: string): string => new X509Certificate(chain).serialNumber

const revokeBySerial: Incident = {
  name: "revoke-by-serial",
  config: minimalConfig,
  play: async (scene) => {
    const main = await scene.start("main")
    const session = await scene.account(main)
    await scene.minutes(5)
    const serial = serialOf(await scene.issue(session, "leaked.example"))
    await scene.minutes(10)
    await scene.tells()
    scene.expect("all is well")
    await scene.byRunbook(["cert", "revoke", serial, "--reason", "keyCompromise", "--wait", "10"])
    await scene.minutes(2)
    await scene.tells("key_compromised")
    scene.expect("a certificate was revoked by its serial number", { KeyCompromised: [{ profile: "default" }] })
    await scene.minutes(65)
    await scene.tells()
    scene.expect("that is more than an hour ago")
  }
}

const password = "Wrocław tramway, 4 stops"

const secondFactorLost: Incident = {
  name: "second-factor-lost",
  config: `[admin]\nenabled = true\nrequire_mfa = true\n${minimalConfig}`,
  play: async (scene) => {
    const address = `127.0.0.1:${await freePort()}`
    const origin = `http://${address}`
    const env = { ACME_SVC_ADMIN__BIND_ADDRESS: address, ACME_SVC_ADMIN__BASE_URL: origin }
    writeFileSync(join(scene.directory, "password"), `${password}\n`, { mode: 0o600 })
    const main = await scene.start("main", { env })
    await scene.command(["admin", "user", "create", "ann", "--password-file", "password"])
    const send = async (
      path: string,
      body: object | undefined,
      session?: { readonly cookie: string; readonly csrf: string }
    ) => {
      const answer = await fetch(`${origin}/api/session${path}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...session === undefined ? {} : { cookie: session.cookie, "x-csrf-token": session.csrf }
        },
        ...body === undefined ? {} : { body: JSON.stringify(body) }
      })
      const text = await answer.text()
      return { status: answer.status, answer, json: (text === "" ? {} : JSON.parse(text)) as Record<string, string> }
    }
    const signIn = async () => {
      const { answer, json } = await send("", { username: "ann", password })
      return { cookie: answer.headers.getSetCookie()[0]?.split(";")[0] ?? "", csrf: json["csrfToken"] ?? "" }
    }
    const enrol = async () => {
      const half = await signIn()
      const { json } = await send("/mfa/totp", undefined, half)
      const { status } = await send("/mfa/totp/confirm", {
        code: totpCode(secretOf(json["secret"] ?? ""), scene.now)
      }, half)
      if (status !== 200) throw new Error(`the second factor was not enrolled: ${status}`)
    }
    await enrol()
    await scene.minutes(5)
    await scene.issue(await scene.account(main), "before.example")
    await scene.minutes(10)
    await scene.tells()
    scene.expect("all is well")
    await scene.minutes(2, async () => {
      const half = await signIn()
      for (let tries = 0; tries < 2; tries++) {
        const { status } = await send("/mfa", { code: "000000" }, half)
        if (status !== 401) throw new Error(`a wrong code was answered with ${status}`)
      }
    })
    await scene.tells("second_factor_refused")
    scene.expect("an operator with the right password has no code", { SecondFactorRefused: [{}] })
    await scene.byRunbook(["admin", "user", "totp", "reset", "ann", "--yes"])
    await enrol()
    await scene.minutes(20)
    await scene.tells()
    scene.expect("the factor was taken off, and another one enrolled")
  }
}

const restore: Incident = {
  name: "restore",
  config: minimalConfig,
  play: async (scene) => {
    const at = (name: string) => join(scene.directory, name)
    const main = await scene.start("main")
    const session = await scene.account(main)
    await scene.issue(session, "kept.example")
    await scene.minutes(5)
    const database = new Sqlite(at("sqlite.db"), { readonly: true })
    database.exec(`VACUUM INTO '${at("backup.db")}'`)
    database.close()
    for (const name of ["one", "two", "three"]) await scene.issue(session, `${name}.lost.example`)
    await scene.minutes(10)
    await scene.tells()
    scene.expect("all is well")
    await main.server.stop()
    for (const suffix of ["", "-wal", "-shm"]) rmSync(at(`sqlite.db${suffix}`), { force: true })
    copyFileSync(at("backup.db"), at("sqlite.db"))
    await main.server.restart()
    await scene.minutes(3)
    // A database cannot know what it lacks. The history of the metrics does.
    await scene.tells()
    scene.expect("a backup was put back, which lacks three certificates", { DatabaseWentBack: [{}] })
    for (const name of ["one", "two", "three", "four"]) await scene.issue(session, `${name}.again.example`)
    await scene.minutes(3)
    scene.expect("the trail has as many rows as before")
  }
}

const daySeconds = 86_400

/** Makes a CA that expires after `secondsLeft`, in the files of the scene. */
const layCaOf = (scene: Scene, secondsLeft: number, name = "ca") =>
  layCa({ directory: scene.directory, name, end: scene.now + secondsLeft })

/** Places an order with a new account, because the clock of the process is far ahead. */
const issueAnew = async (scene: Scene, main: Member, name: string) => scene.issue(await scene.account(main), name)

const caEnds: Incident = {
  name: "ca-ends",
  config: minimalConfig,
  play: async (scene) => {
    await layCaOf(scene, 100 * daySeconds)
    const main = await scene.start("main")
    await scene.minutes(5)
    await issueAnew(scene, main, "before.example")
    await scene.minutes(5)
    scene.expect("the CA has a hundred days left")
    scene.skip(80 * daySeconds)
    await scene.minutes(70)
    await scene.tells("ca_ending")
    scene.expect("it has twenty days left", { AuthorityEndsIn30Days: [{ issuer: "ca-1" }] })
    scene.skip(19.5 * daySeconds)
    await scene.minutes(10)
    await scene.tells("ca_ending")
    scene.expect("it has half a day left", { AuthorityEndsIn1Day: [{ issuer: "ca-1" }] })
    scene.skip(daySeconds)
    // A worker reports its presence every few seconds, and counts as present if it was seen within half a minute.
    await main.server.waitForEvent("profile_degraded")
    await scene.degraded(main, "default")
    await scene.still(10)
    await scene.tells("ca_ended", "profile_degraded")
    scene.expect("it has ended", {
      AuthorityEndsIn1Day: [{ issuer: "ca-1" }],
      ProfileDegraded: [{ profile: "default" }]
    })
    await layCaOf(scene, 3000 * daySeconds)
    await main.server.restart()
    await scene.minutes(5)
    await issueAnew(scene, main, "after.example")
    await scene.minutes(1)
    await scene.tells()
    scene.expect("another CA took its place")
  }
}

/** Returns the table of a CA with files of its own. */
const tableOf = (table: string, name: string): string =>
  `[profiles.default.signer.local_ca${table}]
cert_path = "${name}.pem"
key_path = "${name}.key"
crl_path = "${name}.crl"
`

const caCompromised: Incident = {
  name: "ca-compromised",
  config: tableOf("", "ca"),
  play: async (scene) => {
    const main = await scene.start("main")
    const session = await scene.account(main)
    await scene.minutes(5)
    for (const name of ["one.example", "two.example"]) await scene.issue(session, name)
    await scene.minutes(10)
    await scene.tells()
    scene.expect("all is well")
    await layCaOf(scene, 3000 * daySeconds, "ca2")
    scene.configure(`${tableOf("", "ca2")}${tableOf(".others.former", "ca")}state = "retired"\n`)
    await main.server.restart()
    const former = /^([0-9a-f]{64}) .*\bretired\b/m.exec(await scene.command(["ca", "list"]))?.[1] ?? ""
    await scene.byRunbook(["ca", "compromise", former, "--yes"])
    await scene.minutes(3)
    await scene.tells("ca_compromised")
    scene.expect("the CA was replaced, and what it had signed is revoked", {
      CaCompromised: [{ profile: "default" }]
    })
    await scene.issue(session, "after.example")
    await scene.minutes(65)
    await scene.tells()
    scene.expect("that is more than an hour ago")
  }
}

export const keys: ReadonlyArray<Incident> = [revokeBySerial, secondFactorLost, restore, caEnds, caCompromised]
