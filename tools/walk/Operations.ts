import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { AcmeSession } from "../../test/support/AcmeSession.ts"
import { makeCsr } from "../../test/support/Csr.ts"
import { freePort } from "../../test/support/Ports.ts"
import { runToEnd, startServer } from "../../test/support/Server.ts"
import type { Prepare } from "./Coverage.ts"

/* The operations whose code is measured, each with a separate service. */

// Every commit with a job wakes the queue, so that polling would only make the counts less exact.
const config = "[profiles.default]\nenabled = true\nchallenge.bypass = true\n[jobs]\npoll_interval_ms = 60000\n"
const password = "a long walk through many rooms"

/** Starts a service from its sources, with an inspector, one operator and one account. */
export const serve = async () => {
  const admin = `127.0.0.1:${await freePort()}`
  const settings = {
    ACME_SVC_ADMIN__ENABLED: "true",
    ACME_SVC_ADMIN__BIND_ADDRESS: admin,
    ACME_SVC_ADMIN__BASE_URL: `http://${admin}`
  }
  // V8 does not count some calls of optimized or cached code, so optimization and the cache are turned off.
  const preload = encodeURIComponent(`import v8 from "node:v8"; v8.setFlagsFromString("--no-opt --no-maglev")`)
  const inspected = {
    NODE_OPTIONS: `--inspect=127.0.0.1:0 --import=data:text/javascript,${preload}`,
    NODE_DISABLE_COMPILE_CACHE: "1"
  }
  const server = await startServer({ config, from: "source", env: { ...settings, ...inspected } })
  const command = async (...words: ReadonlyArray<string>): Promise<string> => {
    const { directory } = server
    const { code, stderr, stdout } = await runToEnd(words, { config, directory, from: "source", env: settings })
    if (code !== 0) throw new Error(`${words.join(" ")} failed:\n${stdout}${stderr}`)
    return stdout.trim()
  }
  writeFileSync(join(server.directory, "password"), password, { mode: 0o600 })
  await command("admin", "user", "create", "ann", "--role", "admin", "--password-file", "password")
  const token = await command("admin", "token", "create", "ann", "--name", "walk", "--expires-in", "1")
  const signedIn = await fetch(`http://${admin}/ui/login`, {
    method: "POST",
    body: new URLSearchParams({ username: "ann", password }),
    redirect: "manual"
  })
  const [cookie = ""] = signedIn.headers.getSetCookie()[0]?.split(";") ?? []
  const session = await AcmeSession.open(server.directoryUrl)
  await session.register()

  const [inspector = ""] = /ws:\S+/.exec(server.stderr()) ?? []
  const asking =
    (path: string, status: number, headers: Readonly<Record<string, string>>): Prepare => () => async () => {
      const answer = await fetch(`http://${admin}${path}`, { headers })
      await answer.text()
      if (answer.status !== status) throw new Error(`${path} was answered ${answer.status} in place of ${status}`)
    }
  const authorization = { authorization: `Bearer ${token}` }

  let names = 0
  const newName = () => `walk${++names}.example.org`
  const operations: Readonly<Record<string, Prepare>> = {
    newOrder: () => () => session.newOrder([newName()]),
    finalize: async () => {
      const name = newName()
      const { body, url } = await session.newOrder([name])
      await session.authorize(body, new Map())
      const { csr } = makeCsr({ names: [name] })
      return async () => {
        await session.finalize(body, csr)
        // The order is not polled, because that would be another operation.
        await server.waitForEvent("order_finalized", {
          where: ({ fields }) => url.endsWith(String(fields["order_id"]))
        })
      }
    },
    "API list": asking("/api/eab", 200, authorization),
    "panel page": asking("/ui/orders", 200, { cookie }),
    "API refusal, 400": asking("/api/eab?limit=none", 400, authorization),
    "API refusal, 404": asking("/api/eab/none", 404, authorization)
  }
  const end = () => {
    session.close()
    return server.dispose()
  }
  return { inspector, operations, end }
}
