import { AcmeSession } from "../support/AcmeSession.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import { runToEnd } from "../support/Server.ts"
import { patienceMs } from "./Load.ts"
import type { Fault, Stage } from "./Stage.ts"
import { siteOn, under } from "./Stage.ts"

/** Returns how many of the jobs are due at first, which are nine in ten. */
const dueOf = (rounds: number): number => rounds - Math.floor(rounds / 10)

/** The longest wait that this kind may ask for. A later due time would come from a wrong clock. */
const laterSeconds = 1800

/** The number of jobs that were added per second. */
const perSecond = 25

/**
 * Adds validations of challenges that do not exist. A worker claims each job, looks up the challenge, and is then
 * finished.
 */
const queueUp = async (databaseUrl: string, directory: string, rounds: number): Promise<void> => {
  const migrated = await runToEnd(["init"], { directory, env: { ACME_SVC_DATABASE__URL: databaseUrl } })
  if (migrated.code !== 0) throw new Error(`init: ${migrated.stderr}`)
  const now = Math.floor(Date.now() / 1000)
  const isSqlite = databaseUrl.startsWith("sqlite://")
  const [id, text, numbers] = isSqlite
    ? [
      "randomblob(16)",
      "lower(hex(randomblob(16)))",
      `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${rounds})`
    ]
    : [
      "gen_random_uuid()",
      "gen_random_uuid()::text",
      `WITH numbers AS (SELECT n FROM generate_series(1, ${rounds}) AS n)`
    ]
  await sqlAt(
    databaseUrl,
    `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
     ${numbers} SELECT ${id}, 'challenge_validate', 'queued-' || n,
       '{"challenge_id":"' || ${text} || '","profile":"default","thumbprint":"t"}', 'ready',
       ${now} + CASE WHEN n > ${dueOf(rounds)} THEN ${laterSeconds} ELSE -n / ${perSecond} END, 0, 5, ${now}, ${now}
     FROM numbers`
  )
  // Autovacuum would do this within a minute. The planner would not know of the long queue before.
  if (!isSqlite) await sqlAt(databaseUrl, "ANALYZE jobs")
}

const drain = async ({ load, means: { rounds, say }, site: { acme, databaseUrl } }: Stage): Promise<number> => {
  const count = async (where: string): Promise<number> => {
    const rows = await sqlAt(databaseUrl, `SELECT count(*) AS n FROM jobs WHERE dedup_key LIKE 'queued-%' AND ${where}`)
    return Number(rows[0]?.["n"])
  }
  const env = { ACME_SVC_DATABASE__URL: databaseUrl }
  const shown = await runToEnd(["jobs", "queue"], { directory: acme.directory, config: null, env })
  if (shown.code !== 0 || !/^challenge_validate +\d+/m.test(shown.stdout)) {
    throw new Error(`jobs queue: ${shown.code} ${shown.stdout} ${shown.stderr}`)
  }
  const left = await count("status = 'ready' AND run_at < 4000000000 AND attempts = 0")
  say(`${left} are left when clients have their first certificates`)
  const poll = await AcmeSession.open(acme.directoryUrl, { pollMs: 500 })
  // A run at full size takes longer, in proportion to the rounds.
  const patience = patienceMs * Math.max(1, rounds / 20_000)
  await poll.poll(() => count("status = 'done'"), (done) => done >= dueOf(rounds), patience)
  poll.close()
  // No job may have run twice or before its time.
  const again = await count("attempts > 1")
  if (again > 0) throw new Error(`${again} jobs were begun more than once`)
  // On a slow machine, jobs that were queued for later become due while the others run.
  const later = `CAST(substr(dedup_key, ${"queued-".length + 1}) AS integer) > ${dueOf(rounds)}`
  const early = await count(`${later} AND status <> 'ready' AND updated_at < created_at + ${laterSeconds}`)
  if (early !== 0) throw new Error(`${early} jobs ran before they were due`)
  await sqlAt(databaseUrl, "DELETE FROM jobs WHERE dedup_key LIKE 'queued-%' AND status = 'ready'")
  await load.ledger.acknowledged.more(10)
  return rounds
}

/** A queue has become long while no worker ran. */
export const longQueue: Fault = {
  name: "queued jobs",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 100_000,
  isSize: true,
  run: async (means) =>
    under(means, {
      ...await siteOn(means),
      prepare: (databaseUrl, directory) => queueUp(databaseUrl, directory, means.rounds)
    }, drain)
}
