import { startPostgres } from "../../test/support/Postgres.ts"
import { onEnd } from "./Cleanup.ts"
import type { FloorRig } from "./FloorRig.ts"
import { layFloor } from "./FloorRig.ts"
import { postmasterOf } from "./Postmaster.ts"
import * as Procfs from "./Procfs.ts"
import { provedConfiguration, provedProfile } from "./Proof.ts"
import { startService, waitsConfiguration } from "./Service.ts"
import type { Dialect } from "./Statements.ts"
import type { Burden, Ground, Side } from "./Turn.ts"
import { warmUpOf, windowOf } from "./Turn.ts"

const floorShare = 0.5

/** The service as a side. It runs until it is stopped. */
export interface ServiceSide extends Side {
  readonly stop: () => Promise<void>
}

/** Starts the service on one database, as a side of a comparison. The floor is measured before each of its turns. */
export const serviceSide = async (name: Dialect, { loader, options, proof, tls }: Ground): Promise<ServiceSide> => {
  const { extent, nodeWords, serviceOnly, synchronous, waits } = options
  const cluster = name === "postgres" ? await startPostgres({ durable: true }) : undefined
  const release = onEnd(() => void cluster?.stop())
  const postmaster = cluster === undefined ? undefined : await postmasterOf(cluster)
  const service = await startService({
    databaseUrl: await cluster?.createDatabase() ?? "sqlite://bench.db",
    synchronous,
    nodeWords,
    tls,
    configuration: waitsConfiguration(waits) + provedConfiguration(proof)
  })
  const postgres = cluster === undefined || postmaster === undefined ? undefined : { cluster, postmaster }
  let rig: FloorRig | undefined
  const turnTo = ({ isProved }: Burden) =>
    loader.call("target", isProved ? service.directoryOf(provedProfile) : service.directoryUrl)
  const read = () => ({
    cpu: Procfs.cpuOf(service.pid).total,
    database: postmaster === undefined ? undefined : Procfs.cpuOfFamily(postmaster.pid)
  })
  return {
    name,
    bears: () => true,
    warmUp: async (burden) => {
      await turnTo(burden)
      await windowOf(loader, warmUpOf(burden, extent), burden, read)
      if (!serviceOnly) rig ??= await layFloor({ service, loader, synchronous, tls, postgres })
    },
    turn: async (burden) => {
      const { act, concurrency, isProved } = burden
      const floor = await rig?.measure({
        act,
        concurrency,
        share: floorShare,
        proof: isProved ? proof : undefined
      })
      await turnTo(burden)
      return { floor, ...await windowOf(loader, extent, burden, read) }
    },
    stop: async () => {
      rig?.stop()
      await service.stop()
      await postmaster?.leave()
      release()
      await cluster?.stop()
    }
  }
}
