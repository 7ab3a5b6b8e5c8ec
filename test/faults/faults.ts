import { campaignKilled } from "./Campaign.ts"
import { clockJumps, clocksApart } from "./Clocks.ts"
import { failedOver, restartedDatabase } from "./DatabaseServer.ts"
import { killWhileDelivering, receiversAway } from "./Deliveries.ts"
import { fullDisk } from "./Disk.ts"
import { failedOverAsynchronously, failedOverLate, failedOverSynchronously, failedOverTwice } from "./FailedOver.ts"
import { databaseFileGone, descriptorsGone, staleLock } from "./Files.ts"
import { idleConnections, nonceFlood } from "./Floods.ts"
import { killApart, killBetweenSyncs, killChild, killOne } from "./Kill.ts"
import { longQueue } from "./LongQueue.ts"
import { queueing } from "./Newcomers.ts"
import { poison } from "./Poison.ts"
import { powerCut, powerCutBetweenSyncs } from "./PowerCut.ts"
import { clientResets, databaseResets } from "./Resets.ts"
import { killWhileRelaying, killWhileSigning } from "./Signing.ts"
import { slowBodies, slowHandshakes, slowHeads } from "./SlowLoris.ts"
import type { Fault } from "./Stage.ts"
import { starving } from "./Starving.ts"
import { stopWorker } from "./Stop.ts"
import { failedSyncs, slowSync } from "./Syncs.ts"
import { takenOver } from "./TakeOver.ts"
import { tokenAway } from "./TokenAway.ts"
import { restrictedBeside, upgradedApart, upgradedWhole } from "./Upgrade.ts"

/** Every fault. */
export const faults: ReadonlyArray<Fault> = [
  killOne,
  killApart,
  killBetweenSyncs,
  killChild,
  stopWorker,
  killWhileSigning,
  killWhileRelaying,
  killWhileDelivering,
  receiversAway,
  powerCut,
  powerCutBetweenSyncs,
  failedSyncs,
  slowSync,
  clockJumps,
  clocksApart,
  databaseFileGone,
  staleLock,
  descriptorsGone,
  fullDisk,
  restartedDatabase,
  failedOver,
  failedOverSynchronously,
  failedOverAsynchronously,
  failedOverLate,
  failedOverTwice,
  databaseResets,
  clientResets,
  slowHeads,
  slowBodies,
  slowHandshakes,
  idleConnections,
  nonceFlood,
  longQueue,
  poison,
  upgradedApart,
  upgradedWhole,
  restrictedBeside,
  takenOver,
  tokenAway,
  campaignKilled,
  ...starving,
  ...queueing
]
