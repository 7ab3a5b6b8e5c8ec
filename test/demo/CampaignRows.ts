import Database from "better-sqlite3"
import type { DemoPlace } from "./DemoState.ts"

/* A campaign that has run for three days. */

const hourSeconds = 3600
const hours = 72

/** Starts a campaign, and then writes its past: most clients have asked and replaced their certificates. */
export const writeCampaign = async ({ command, database: path, now, waitForEvent }: DemoPlace): Promise<void> => {
  const words = ["--profile", "corp", "--key", "ecdsa-p256", "--reason", "The CA signed with a weak random source"]
  const text = await command([
    "campaign",
    "start",
    ...words,
    "--explanation-url",
    "https://status.corp.example/2026-11",
    "--yes",
    "--json"
  ])
  const { id } = JSON.parse(text) as { readonly id: string }
  const campaign = Buffer.from(id.replaceAll("-", ""), "hex")
  await waitForEvent("campaign_filled")
  const database = new Database(path, { timeout: 10_000 })
  const begun = now - hours * hourSeconds
  // The service writes too. A transaction that begins with a read would fail instead of waiting.
  database.transaction(() => {
    const orders = database.prepare(
      "SELECT order_id FROM campaign_certificates WHERE campaign_id = ? AND left_at IS NULL ORDER BY order_id"
    ).pluck().all(campaign) as ReadonlyArray<Buffer>
    const replaced = Math.floor(orders.length * 0.82)
    const leave = database.prepare(
      `UPDATE campaign_certificates SET asked_at = ?, left_at = ?, left_as = 'replaced'
       WHERE campaign_id = ? AND order_id = ?`
    )
    const ask = database.prepare("UPDATE campaign_certificates SET asked_at = ? WHERE campaign_id = ? AND order_id = ?")
    const sample = database.prepare("INSERT OR REPLACE INTO campaign_samples VALUES (?, ?, ?, ?)")
    /** The part of the renewals that is done after a part of the time: fast at first, then slower. */
    const done = (part: number) => 1 - (1 - part) ** 3
    orders.forEach((order, number) => {
      const at = begun + Math.floor(number / orders.length * hours * hourSeconds)
      if (number < replaced) leave.run(at, at + 60, campaign, order)
      else if (number % 3 > 0) ask.run(at, campaign, order)
    })
    for (let hour = 0; hour <= hours; hour++) {
      const gone = Math.round(done(hour / hours) * replaced)
      sample.run(
        campaign,
        begun + hour * hourSeconds,
        orders.length - gone,
        Math.min(orders.length, Math.round(gone * 1.08))
      )
    }
    database.prepare(
      `UPDATE campaigns SET created_at = ?, begun_at = ?, filled_at = ?, asked = ?, replaced = ? WHERE id = ?`
    ).run(begun, begun, begun, Math.round(replaced * 1.08), replaced, campaign)
  }).immediate()
  database.close()
}
