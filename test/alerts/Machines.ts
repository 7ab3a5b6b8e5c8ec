import { join } from "node:path"
import { startPostgres } from "../support/Postgres.ts"
import { minimalConfig } from "../support/Server.ts"
import { makeSmallDisk } from "../support/SmallDisk.ts"
import type { Incident } from "./Incident.ts"
import type { Scene } from "./Scene.ts"

/* Incidents of disks, databases and processes. */

const diskFull: Incident = {
  name: "disk-full",
  config: minimalConfig,
  play: async (scene) => {
    const disk = makeSmallDisk(64)
    scene.atEnd(disk.remove)
    const main = await scene.start("main", { databaseUrl: `sqlite://${join(disk.directory, "acme.db")}` })
    const session = await scene.account(main)
    await scene.minutes(5)
    await scene.issue(session, "before.example")
    await scene.minutes(10)
    await scene.tells()
    scene.expect("all is well")
    disk.fill(262_144)
    const order = () =>
      session.postOnce(session.directory.newOrder, { identifiers: [{ type: "dns", value: "during.example" }] })
    // The first orders still fit into the free part of the database file. Then one needs more space on the disk.
    for (let status = 201; status === 201;) status = (await order()).status
    // Each failed request uses up a nonce of the client, and the service issues no new nonces.
    await scene.minutes(7, () => order().catch(() => undefined))
    await scene.tells("disk_full")
    scene.expect("the disk of the database is full, and a client goes on", {
      DiskFull: [{ instance: main.instance }]
    })
    disk.clear()
    await scene.minutes(15)
    await scene.issue(await scene.account(main), "after.example")
    await scene.minutes(1)
    await scene.tells()
    scene.expect("there is room again")
  }
}

/** The database fails at night while there are no requests, so that only the alert shows it. */
const databaseAway: Incident = {
  name: "database-away",
  config: minimalConfig,
  play: async (scene) => {
    const cluster = await startPostgres()
    scene.atEnd(cluster.stop)
    const { acme, worker } = await scene.startApart({ databaseUrl: await cluster.createDatabase() })
    const session = await scene.account(acme)
    await scene.minutes(5)
    await scene.issue(session, "before.example")
    await scene.minutes(10)
    await scene.tells()
    scene.expect("all is well")
    await cluster.halt()
    await scene.minutes(6)
    await scene.tellsNothing()
    scene.expect("PostgreSQL is down, and no client asks for anything", {
      DatabaseAway: [{ instance: acme.instance }, { instance: worker.instance }]
    })
    await cluster.resume()
    await scene.minutes(5)
    await scene.issue(session, "after.example")
    await scene.minutes(1)
    await scene.tells()
    scene.expect("PostgreSQL is back")
  }
}

const apart = async (scene: Scene) => {
  const { acme, worker } = await scene.startApart()
  const session = await scene.account(acme)
  await scene.minutes(5)
  await scene.issue(session, "before.example")
  await scene.minutes(10)
  await scene.tells()
  scene.expect("all is well")
  return { acme, worker, session }
}

const noWorker: Incident = {
  name: "no-worker",
  config: minimalConfig,
  play: async (scene) => {
    const { session, worker } = await apart(scene)
    await worker.server.kill9()
    await scene.minutes(8)
    await scene.tells("worker_absent")
    scene.expect("the worker was killed, and the acme process serves on", {
      WorkerGone: [{}],
      ProcessGone: [{ instance: worker.instance, job: "acme-svc" }]
    })
    await worker.server.restart()
    await scene.minutes(3)
    await scene.issue(session, "after.example")
    await scene.minutes(1)
    await scene.tells()
    scene.expect("the worker is back")
  }
}

const processGone: Incident = {
  name: "process-gone",
  config: minimalConfig,
  play: async (scene) => {
    const { acme, session } = await apart(scene)
    await acme.server.kill9()
    await scene.minutes(5)
    await scene.tells("acme_absent")
    scene.expect("the acme process was killed, and a worker lives", {
      AcmeGone: [{}],
      ProcessGone: [{ instance: acme.instance, job: "acme-svc" }]
    })
    await acme.server.restart()
    // A process that is missed for ten minutes is forgotten.
    await scene.minutes(11)
    await scene.issue(session, "after.example")
    await scene.minutes(1)
    await scene.tells()
    scene.expect("the acme process is back")
  }
}

export const machines: ReadonlyArray<Incident> = [diskFull, databaseAway, noWorker, processGone]
