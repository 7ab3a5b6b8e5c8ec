import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { isInstalled } from "../support/Installed.ts"
import { foreignCa, keyPem } from "../support/LocalCa.ts"
import { minimalConfig } from "../support/Server.ts"
import { childOf } from "../support/Stopped.ts"
import type { TokenPlace } from "../support/TokenPlace.ts"
import { makeToken, rightPin } from "../support/TokenPlace.ts"
import type { Fault, Stage } from "./Stage.ts"
import { NotPossible, siteOn, under } from "./Stage.ts"

/*
 * A CA whose key is in a PKCS#11 token takes over from one whose key is in a file. Then the token fails in several ways
 * while clients get certificates (docs/contribute/decisions/ca-keys.md).
 */

/** Seconds until the CA with the token takes over. */
const before = 15
/** How long a service may take to end while a signature hangs: its drain, and then the end of the process. */
const mostEndMillis = 45_000

const moduleOf = async ({ site: { acme } }: Stage): Promise<number> => {
  for (;;) {
    const pid = childOf(acme.pid(), "pkcs11Module")
    if (pid !== undefined) return pid
    await delay(50)
  }
}

/**
 * Waits until a signature hangs: an order has been finalized, and has no certificate for two seconds. The service ends
 * the module of such a signature. A module that is stopped without one would outlive the service.
 */
const hanging = async ({ load: { ledger } }: Stage): Promise<void> => {
  for (let isSo = false; !isSo;) {
    const waiting = ledger.orders.filter(({ chain, isFinalized }) => isFinalized && chain === undefined)
    await delay(2000)
    isSo = waiting.some(({ chain }) => chain === undefined)
  }
}

/** Waits until clients have got further certificates. */
const issued = ({ load, means: { clients } }: Stage): Promise<void> =>
  load.beside(load.ledger.acknowledged.more(10 * clients))

const degraded = ({ site: { acme } }: Stage, since: number) =>
  acme.waitForEvent("profile_degraded", { where: ({ timestamp }) => Date.parse(timestamp) >= since, timeoutMs: 60_000 })

/** The ways in which the token fails. Each ends when the token works again. */
const ways: ReadonlyArray<readonly [name: string, (stage: Stage, token: TokenPlace) => Promise<void>]> = [
  ["crashes", async (stage) => void process.kill(await moduleOf(stage), "SIGKILL")],
  ["hangs", async (stage) => void process.kill(await moduleOf(stage), "SIGSTOP")],
  ["is taken away", async (stage, token) => {
    const since = Date.now()
    token.move("away")
    process.kill(await moduleOf(stage), "SIGKILL")
    await degraded(stage, since)
    token.move("back")
  }],
  ["gets a wrong PIN", async (stage, token) => {
    const since = Date.now()
    token.writePin("4321")
    process.kill(await moduleOf(stage), "SIGKILL")
    await degraded(stage, since)
    token.writePin(rightPin)
  }],
  ["hangs while the service ends", async (stage) => {
    const { load, site: { acme } } = stage
    process.kill(await moduleOf(stage), "SIGSTOP")
    await load.beside(hanging(stage))
    const begun = performance.now()
    await acme.stop()
    const millis = performance.now() - begun
    if (millis > mostEndMillis) throw new Error(`the service ended after ${millis.toFixed(0)} ms`)
    stage.measured(`ended after ${(millis / 1000).toFixed(1)} s beside a token that hangs`)
    await acme.restart()
  }]
]

/** The token of the CA fails in every way. Each failure costs another attempt, and no order. */
export const tokenAway: Fault = {
  name: "token of the CA away",
  databases: ["SQLite", "PostgreSQL"],
  rounds: ways.length,
  run: async (means) => {
    if (!isInstalled("softhsm2-util")) throw new NotPossible("softhsm2-util is not installed")
    const home = mkdtempSync(join(tmpdir(), "acme-faults-"))
    const next = foreignCa({ name: "Next CA" })
    const [cert, key] = [join(home, "next.pem"), join(home, "next.key")]
    writeFileSync(cert, next.certificatePem)
    writeFileSync(key, keyPem(next.key), { mode: 0o600 })
    const token = makeToken(home, key)
    const from = Math.ceil(Date.now() / 1000) + before
    const config = `${minimalConfig}[signer.local_ca.others.next]\ncert_path = "${cert}"\nkey_source = "pkcs11"\n`
      + `state = "waiting"\nfrom = "${new Date(from * 1000).toISOString()}"\n`
      + `[signer.local_ca.others.next.pkcs11]\n${token.toml}`
    const options = { ...await siteOn(means), home, config, env: token.env, otherCaFiles: [cert] }
    return under(means, options, async (stage) => {
      while (Date.now() / 1000 < from) await stage.load.beside(delay(100))
      await issued(stage)
      for (let round = 0; round < means.rounds; round++) {
        const [name, fail] = ways[round % ways.length] ?? ways[0] ?? []
        stage.means.say(`the token ${name}`)
        await fail?.(stage, token)
        await issued(stage)
      }
      if (stage.load.refused.value > 0) throw new Error(`${stage.load.refused.value} orders became invalid`)
      return means.rounds
    })
  }
}
