import { X509Certificate } from "node:crypto"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { foreignCa, keyPem } from "../support/LocalCa.ts"
import { issuerIdOf } from "../support/Openssl.ts"
import { minimalConfig } from "../support/Server.ts"
import type { Ledger } from "./Ledger.ts"
import type { ListSource } from "./ListWatch.ts"
import { watchLists } from "./ListWatch.ts"
import type { Site } from "./Site.ts"
import type { Fault } from "./Stage.ts"
import { siteOn, under } from "./Stage.ts"

/* A waiting CA takes over while clients get certificates (docs/contribute/decisions/rotation.md). */

const clients = 4
/** Seconds from the configuration to the time at which the CA takes over, and from then until the load ends. */
const [before, after] = [25, 10]
/** Leaves are backdated by this number of seconds. */
const backdated = 3600
/** A certificate may have been signed before the second in which the CA takes over. */
const tolerance = 1

/** Returns the list of a CA at every process that serves. */
const sourcesOf = ({ fronts }: Site, caFile: string): ReadonlyArray<ListSource> =>
  fronts.map(({ baseUrl }, at) => ({
    name: `front ${at}`,
    read: async () => {
      const answer = await fetch(`${baseUrl}/profile/default/crl/${issuerIdOf(caFile)}`)
      return answer.status === 200 ? Buffer.from(await answer.arrayBuffer()) : undefined
    }
  }))

/** Fails unless every certificate has the issuer of its time. Returns the numbers of certificates before and after. */
const judge = ({ orders }: Ledger, from: number): readonly [number, number] => {
  const counts: [number, number] = [0, 0]
  for (const { chain } of orders) {
    if (chain === undefined) continue
    const { issuer, validFrom } = new X509Certificate(chain)
    const at = Date.parse(validFrom) / 1000 + backdated
    const isNext = issuer === "CN=Next CA"
    counts[isNext ? 1 : 0]++
    if (isNext ? at < from - tolerance : at > from + tolerance) {
      throw new Error(`a certificate of ${issuer} ${at - from} s after the time of the next CA`)
    }
  }
  if (counts.includes(0)) throw new Error(`certificates of both CAs: ${counts.join(", ")}`)
  return counts
}

/** Two processes serve and two work. At its time the waiting CA issues, in all of them at once. */
export const takenOver: Fault = {
  name: "waiting CA takes over",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 1,
  run: async (means) => {
    const home = mkdtempSync(join(tmpdir(), "acme-faults-"))
    const next = foreignCa({ name: "Next CA" })
    const [cert, key] = [join(home, "next.pem"), join(home, "next.key")]
    writeFileSync(cert, next.certificatePem)
    writeFileSync(key, keyPem(next.key), { mode: 0o600 })
    const from = Math.ceil(Date.now() / 1000) + before
    const config = `${minimalConfig}[signer.local_ca.others.next]\ncert_path = "${cert}"\nkey_path = "${key}"\n`
      + `state = "waiting"\nfrom = "${new Date(from * 1000).toISOString()}"\n`
    const options = { ...await siteOn(means), home, config, fronts: 2, workers: 2, otherCaFiles: [cert] }
    return under({ ...means, clients }, options, async ({ load, measured, site }) => {
      const caFiles = [join(home, "ca.pem"), cert]
      const watches = caFiles.map((file) => watchLists(sourcesOf(site, file), file))
      while (Date.now() / 1000 < from + after) await delay(100)
      await load.beside(load.ledger.acknowledged.more(2 * clients))
      for (const watch of watches) await watch.stop()
      const wrong = watches.flatMap(({ wrong }) => wrong)
      if (wrong.length > 0) throw new Error(wrong.join("\n"))
      const missing = watches.reduce((sum, { unanswered }) => sum + unanswered(), 0)
      if (missing > 0) throw new Error(`${missing} times there was no list`)
      const [old, young] = judge(load.ledger, from)
      const verified = watches.map((watch) => watch.verified()).join(" and ")
      measured(`${old} certificates of the old CA and ${young} of the new one; ${verified} lists verified`)
      if (load.failures.value > 0) throw new Error(`${load.failures.value} answers blamed the service`)
      return 1
    })
  }
}
