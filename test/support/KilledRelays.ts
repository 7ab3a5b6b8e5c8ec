import { setTimeout as delay } from "node:timers/promises"
import { AcmeSession } from "./AcmeSession.ts"
import { makeCsr } from "./Csr.ts"
import { sqlAt } from "./OpenDatabase.ts"
import type { Server } from "./Server.ts"

/** A relaying service that is killed at random times. */
export interface KilledRelays {
  readonly server: Server
  readonly databaseUrl: string
  /** The profile at which orders are placed. */
  readonly profile: string
  /** The name for each order. */
  readonly nameOf: (index: number) => string
  /** The number of orders, and the number of orders between two kills. */
  readonly orders: number
  readonly between: number
  /** Every kill comes at most `withinMillis` after the last finalize before it. */
  readonly withinMillis: number
}

/**
 * Relays orders while the service is killed again and again. Fails unless every order ends with a certificate and no
 * row stays in progress.
 */
export const relayWhileKilled = async (run: KilledRelays): Promise<void> => {
  const { between, databaseUrl, nameOf, orders, profile, server, withinMillis } = run
  const session = await AcmeSession.open(server.profileUrl(profile))
  await session.register()
  const urls: Array<string> = []
  for (let index = 0; index < orders; index++) {
    const names = [nameOf(index)]
    const { body, url } = await session.newOrder(names)
    const { challenges } = await session.authorization(body.authorizations[0] ?? "")
    await session.trigger(challenges[0]?.url ?? "")
    await session.awaitOrder(url, ["ready"])
    await session.finalize(body, makeCsr({ names }).csr)
    urls.push(url)
    if (index % between < between - 1) continue
    await delay(Math.random() * withinMillis)
    await server.kill9()
    await server.restart()
  }
  for (const url of urls) {
    const order = await session.awaitOrder(url, ["valid", "invalid"])
    if (order.status === "valid") continue
    const given = await sqlAt(databaseUrl, "SELECT attempts, last_error FROM jobs WHERE status = 'failed'")
    throw new Error(`${url} ended ${order.status}: ${JSON.stringify([order.error, given])}`)
  }
  session.close()
  const stuck = await sqlAt(databaseUrl, "SELECT order_id FROM upstream_orders WHERE status = 'processing'")
  if (stuck.length > 0) throw new Error(`${stuck.length} relayed orders are stuck`)
}
