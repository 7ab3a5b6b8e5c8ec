import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { EarlierBuild } from "../support/EarlierBuild.ts"
import { buildEarlier, NoEarlierBuild } from "../support/EarlierBuild.ts"
import { freePort } from "../support/Ports.ts"
import { minimalConfig, runToEnd, thisBuild } from "../support/Server.ts"
import { boundProfile, command, fill, fillBound, fillOperators } from "./Filled.ts"
import { patienceMs } from "./Load.ts"
import { olderEnds, refusesRestriction, restrict } from "./Restricted.ts"
import { finalized, holderOf, recipe } from "./Signing.ts"
import type { Site } from "./Site.ts"
import { startSite } from "./Site.ts"
import type { Fault, Stage } from "./Stage.ts"
import { NotPossible, siteOn, under } from "./Stage.ts"

/**
 * A few clients, as between two upgrades of a real service. A client that a person runs tries for a minute. A client
 * that a timer runs tries again the next day.
 */
const clients = 4
const manners = { triesForMs: 60_000, restMs: 500 }

/** Returns a build that is made once for both databases. */
const onceBuilt = (without?: string) => {
  let built: Promise<EarlierBuild> | undefined
  return (): Promise<EarlierBuild> =>
    (built ??= buildEarlier(without)).catch((error: unknown) => {
      throw error instanceof NoEarlierBuild ? new NotPossible(error.message) : error
    })
}

const earlierBuild = onceBuilt()

/** The last version that knows neither kinds of certificates nor scopes of credentials (`Restricted.ts`). */
const unrestrictedBuild = onceBuilt("0042_kinds")

/** Lets every client get several answers. */
const aWhile = ({ load }: Stage) => load.beside(load.ledger.acknowledged.more(2 * clients))

/** Checks that a new process that may not migrate refuses the old schema and says what to do. */
const refusesOldSchema = async ({ acme: { directory }, databaseUrl }: Site, lacks: ReadonlyArray<string>) => {
  const { code, records, stderr } = await runToEnd(["serve", "--role", "acme"], {
    config: null,
    directory,
    env: { ACME_SVC_DATABASE__URL: databaseUrl }
  })
  const isTold = records.some(({ fields }) => fields["event"] === "server_schema_behind" && fields["name"] === lacks[0])
  if (code !== 1 || !isTold || !stderr.includes("run acme-svc migrate")) {
    throw new Error(`a process of the new version over the old schema: ${code} ${stderr}`)
  }
}

const migrated = async (site: Site, { folder, lacks }: EarlierBuild) => {
  const pending = await command(site, thisBuild, ["migrate", "--check"], 3)
  for (const name of lacks) if (!pending.includes(name)) throw new Error(`migrate --check does not name ${name}`)
  await refusesOldSchema(site, lacks)
  const applied = await command(site, thisBuild, ["migrate"])
  if (!applied.includes(`${lacks.length} migration(s) applied`)) throw new Error(`migrate said: ${applied}`)
  // The previous version does not know these migrations, so that it finds the schema complete.
  await command(site, folder, ["migrate", "--check"])
}

const stopped = async ({ acme }: Site) => {
  const { code } = await acme.stop()
  if (code !== 0) throw new Error(`the old front ended with ${code}`)
}

/**
 * The service is upgraded in steps: the schema, one worker, the process that serves while its successor already serves,
 * and the last worker while it has a job.
 */
export const upgradedApart: Fault = {
  name: "upgrade, process by process",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 1,
  run: async (means) => {
    const earlier = await earlierBuild()
    const home = mkdtempSync(join(tmpdir(), "acme-faults-"))
    const hold = join(home, "hold")
    const script = join(home, "sign")
    writeFileSync(hold, "")
    writeFileSync(
      script,
      `#!/bin/sh\ntouch "${home}/begun.$ACME_SIGNER_ORDER_ID"; while [ -e '${hold}' ]; do sleep 0.05; done\nexec '${recipe}' '${home}'\n`
    )
    chmodSync(script, 0o755)
    const config =
      `${minimalConfig}[server]\nreuse_port = true\n${boundProfile}[profiles.held.challenge]\nbypass = true\n`
      + `[profiles.held.signer]\nbackend = "custom"\n[profiles.held.signer.custom]\nscript_path = "${script}"\ntimeout_ms = 50000\n`
    const options = { ...await siteOn(means), home, config, workers: 2, build: earlier.folder, manners }
    return under({ ...means, clients }, options, async (stage) => {
      const { load, measured, site } = stage
      const check = await fill(site, earlier.folder, load.another)
      const held = await finalized(site.acme, "held", "held.filled.example")
      await held.session.poll(
        () => Promise.resolve(existsSync(join(home, `begun.${held.id}`))),
        (begun) => begun,
        patienceMs
      )

      await migrated(site, earlier)
      await aWhile(stage)
      const last = await holderOf(site, held.id)
      const [first] = site.workers.filter((worker) => worker !== last)
      await first?.restart(thisBuild)
      await aWhile(stage)
      // Both processes listen on one address until the old one has finished its requests.
      await site.beside({ flags: ["--role", "acme"], build: thisBuild })
      await aWhile(stage)
      await stopped(site)
      await aWhile(stage)
      // The old worker hands its job back, and the worker of the new version begins the job again.
      await last.restart(thisBuild)
      rmSync(hold)
      const { status } = await load.beside(held.session.awaitOrder(held.url, ["valid", "invalid"], patienceMs))
      held.session.close()
      if (status !== "valid") throw new Error(`the order in hand ended ${status}`)
      await aWhile(stage)
      await check()
      measured(`${load.failures.value} answers 5xx, ${load.broken.value} requests not answered`)
      if (load.failures.value > 0) throw new Error(`${load.failures.value} answers blamed the service`)
      return 4
    })
  }
}

/**
 * A credential gets a scope, and a profile a kind of certificates, as soon as the last process that does not know them
 * has ended. No client asks while such a process runs, because it is older than the previous version.
 */
export const restrictedBeside: Fault = {
  name: "scope and kind beside an older process",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 1,
  run: async (means) => {
    const earlier = await unrestrictedBuild()
    const config = `${minimalConfig}[server]\nreuse_port = true\n${boundProfile}`
    const site = await startSite({ ...await siteOn(means), config, workers: 1, build: earlier.folder })
    try {
      const bound = await fillBound(site, earlier.folder)
      await migrated(site, earlier)
      const front = await site.beside({ flags: ["--role", "acme"], build: thisBuild })
      await stopped(site)
      await refusesRestriction(site, bound, front, config)
      for (const worker of site.workers) await worker.restart(thisBuild)
      await bound.check()
      const checkRestricted = await restrict(site, bound, front, config)
      await checkRestricted()
      await olderEnds(site, earlier.folder)
      bound.session.close()
      return { injected: 2, acknowledged: 2, lost: [], twice: [] }
    } finally {
      await site.dispose()
    }
  }
}

/**
 * The only process is stopped and started in the new version, which migrates, then in the old version, and then in the
 * new one again.
 */
export const upgradedWhole: Fault = {
  name: "upgrade and back, by restarts",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 1,
  run: async (means) => {
    const earlier = await earlierBuild()
    const address = `127.0.0.1:${await freePort()}`
    const env = {
      ACME_SVC_ADMIN__ENABLED: "true",
      ACME_SVC_ADMIN__BIND_ADDRESS: address,
      ACME_SVC_ADMIN__BASE_URL: `http://${address}`
    }
    const options = { ...await siteOn(means), env, build: earlier.folder, manners }
    return under({ ...means, clients }, options, async (stage) => {
      const { load, measured, site } = stage
      const checkOperators = await fillOperators(site, earlier.folder, `http://${address}/api`)
      for (const build of [thisBuild, earlier.folder, thisBuild]) {
        await load.beside(site.acme.restart(build))
        await aWhile(stage)
        await checkOperators()
      }
      measured(`${load.failures.value} answers 5xx, ${load.broken.value} requests not answered`)
      return 3
    })
  }
}
