import { join } from "node:path"
import { AcmeSession } from "../support/AcmeSession.ts"
import { startHttp01Responder } from "../support/Http01Responder.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import { verifyChain } from "../support/Openssl.ts"
import { startPostgres } from "../support/Postgres.ts"
import { cleared, linkOnScreen, onTerminalIn, started } from "./Clone.ts"
import { commandBelow, commandsBelow } from "./Page.ts"
import type { Way } from "./Way.ts"
import { expects } from "./Way.ts"

const page = "docs/start/postgresql.md"

/** From a clone to a service that uses a PostgreSQL database. */
export const newPostgres: Way = {
  name: "to PostgreSQL",
  before: "by hand, no page",
  page,
  commands: ["openssl"],
  go: async (steps, { clone, scratch }) => {
    cleared(clone)
    const cluster = await startPostgres()
    try {
      const { password, port } = new URL(cluster.adminUrl)
      const line = commandBelow(page, "With PostgreSQL", "node_modules/.bin/node dist/main.js init")
      const begin = commandsBelow("docs/start/ten-minutes.md", "Start it").at(-1) ?? ""
      // The server of this run does not have the usual port.
      const here = steps.typed(line).replace("@localhost/", `@127.0.0.1:${port}/`)
      const making = onTerminalIn(clone, scratch, here)
      await making.shown(/assword[^\n]*: $/)
      steps.done("the administrator's password is typed")
      making.type(`${decodeURIComponent(password)}\r`)
      expects(await making.ended === 0, making.screen())
      const serving = onTerminalIn(clone, scratch, steps.typed(begin))
      await serving.shown(started)
      expects(linkOnScreen.test(serving.screen()), `the start prints no link into the panel:\n${serving.screen()}`)
      const responder = await startHttp01Responder({ port: 5002 })
      const session = await AcmeSession.open("http://localhost:3000/profile/default/directory")
      await session.register()
      const { chain } = await session.issue(["demo.localhost"], responder.tokens)
      session.close()
      await responder.stop()
      await verifyChain(chain, join(clone, "ca.pem"), "demo.localhost")
      const [row] = await sqlAt(
        cluster.url("acme"),
        "SELECT count(*)::integer AS orders FROM orders WHERE status = 'valid'"
      )
      steps.said(`${row?.["orders"]} certificate in the database acme of PostgreSQL`)
      expects(row?.["orders"] === 1, steps.last)
      await serving.interrupt()
    } finally {
      await cluster.stop()
    }
  }
}
