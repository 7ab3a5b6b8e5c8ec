import { failedOver, restartedDatabase } from "./DatabaseServer.ts"
import { fullDisk } from "./Disk.ts"
import { idleConnections, nonceFlood } from "./Floods.ts"
import { killApart, killOne } from "./Kill.ts"
import { longQueue } from "./LongQueue.ts"
import { clientResets, databaseResets } from "./Resets.ts"
import { slowBodies, slowHandshakes, slowHeads } from "./SlowLoris.ts"
import type { Fault } from "./Stage.ts"
import { stopWorker } from "./Stop.ts"

/** Every fault. */
export const faults: ReadonlyArray<Fault> = [
  killOne,
  killApart,
  stopWorker,
  fullDisk,
  restartedDatabase,
  failedOver,
  databaseResets,
  clientResets,
  slowHeads,
  slowBodies,
  slowHandshakes,
  idleConnections,
  nonceFlood,
  longQueue
]
