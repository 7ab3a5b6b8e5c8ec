import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { download } from "../interop/RevocationList.ts"
import type { Server } from "../support/Server.ts"
import { patienceMs } from "./Load.ts"
import type { Fault, Stage } from "./Stage.ts"
import { NotPossible, siteOn, under } from "./Stage.ts"

const fileOf = (databaseUrl: string): string => databaseUrl.slice("sqlite://".length)

/**
 * The file of the database is removed while the service runs, which the service must notice. Then the file is put back.
 */
export const databaseFileGone: Fault = {
  name: "file of the database taken away",
  databases: ["SQLite"],
  rounds: 2,
  run: async (means) =>
    under(means, await siteOn(means), async ({ load, means: { clients, rounds }, measured, site }) => {
      const file = fileOf(site.databaseUrl)
      for (let round = 0; round < rounds; round++) {
        await load.ledger.acknowledged.more(clients)
        // Work that has begun is completed in the open files, and these files are put back.
        for (const suffix of ["", "-wal", "-shm"]) {
          if (existsSync(file + suffix)) renameSync(file + suffix, `${file}.away${suffix}`)
        }
        const begun = performance.now()
        const { code } = await site.acme.exited()
        measured(`ended after ${((performance.now() - begun) / 1000).toFixed(1)} s`)
        if (code !== 1) throw new Error(`the service ended with ${code} when its file was taken away`)
        const refused = await site.acme.restart().then(() => undefined, (error: unknown) => String(error))
        if (refused === undefined) throw new Error("the service began anew where its database was gone")
        for (const suffix of ["", "-wal", "-shm"]) {
          if (existsSync(`${file}.away${suffix}`)) renameSync(`${file}.away${suffix}`, file + suffix)
        }
        await site.acme.restart()
        await load.ledger.acknowledged.more(clients)
      }
      return rounds
    })
}

const numberOf = (said: string): number => Number(/X509v3 CRL Number:\s*(\d+)/.exec(said)?.[1] ?? 0)

const crlText = (input: Uint8Array, form: "DER" | "PEM"): string =>
  execFileSync("openssl", ["crl", "-inform", form, "-noout", "-text"], { input }).toString()

/** Waits until the exported file has the number of the list that is served. */
const exported = async (acme: Server): Promise<number> => {
  const begun = performance.now()
  const file = join(acme.directory, "ca.crl")
  for (const end = Date.now() + patienceMs; Date.now() < end; await delay(250)) {
    const served = numberOf(crlText(await download(new URL("crl", acme.directoryUrl).href, ""), "DER"))
    if (existsSync(file) && numberOf(crlText(readFileSync(file), "PEM")) >= served) {
      return (performance.now() - begun) / 1000
    }
  }
  throw new Error("the exported list stays behind the one that is served")
}

/** A process was killed and has left the lock of the exported list behind. */
export const staleLock: Fault = {
  name: "lock of a dead process beside the list",
  databases: ["SQLite"],
  rounds: 1,
  run: async (means) =>
    under(means, await siteOn(means), async ({ load, means: { clients, rounds }, measured, site: { acme } }) => {
      for (let round = 0; round < rounds; round++) {
        const lock = join(acme.directory, "ca.crl.lock")
        writeFileSync(lock, "")
        // The lock is new, so its age proves nothing. Only the id of its owner shows that the process is dead.
        utimesSync(lock, new Date(), new Date())
        await load.ledger.acknowledged.more(6 * clients)
        measured(`brought up to date after ${(await exported(acme)).toFixed(1)} s`)
      }
      return rounds
    })
}

const limit = (pid: number, files: number): void => {
  try {
    execFileSync("prlimit", ["--pid", `${pid}`, `--nofile=${files}:`], { stdio: "pipe" })
  } catch (error) {
    throw new NotPossible(`prlimit does not run here: ${String(error).split("\n")[0]}`)
  }
}

const openFiles = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

/** For a while, no file and no socket can be opened, which must affect no order. */
export const descriptorsGone: Fault = {
  name: "descriptors used up",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 2,
  run: async (means) =>
    under(means, await siteOn(means), async (stage: Stage) => {
      const { load, means: { clients, rounds }, site: { acme } } = stage
      for (let round = 0; round < rounds; round++) {
        const pid = acme.pid()
        const answers = load.answers.value
        limit(pid, openFiles(pid))
        // Clients continue over open connections, but none of their names can be validated.
        await load.answers.more(4 * clients)
        await delay(2000)
        limit(pid, 4096)
        stage.means.say(`${load.answers.value - answers} answers without a descriptor`)
        await load.ledger.acknowledged.more(4 * clients)
      }
      if (load.refused.value > 0) {
        throw new Error(`${load.refused.value} orders ended invalid by the service's own want`)
      }
      return rounds
    })
}
