import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { AcmeSession } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { minimalConfig, startServer } from "../support/Server.ts"
import type { Incident } from "./Incident.ts"
import type { Scene } from "./Scene.ts"

/* Incidents about signers and clients. */

/** Finalizes an order, and returns its URL whether the order succeeds or not. */
const finalized = async (scene: Scene, session: AcmeSession, name: string): Promise<string> => {
  const { body, url } = await session.newOrder([name])
  await session.authorize(body, scene.world.responder.tokens)
  const answer = await session.finalize(body, makeCsr({ names: [name] }).csr)
  if (answer.status !== 200) throw new Error(`finalize: ${answer.status} ${answer.text}`)
  return url
}

const valid = async (session: AcmeSession, url: string): Promise<void> => {
  const { status } = await session.awaitOrder(url, ["valid", "invalid"])
  if (status !== "valid") throw new Error(`the order ended ${status}`)
}

const upstreamAway: Incident = {
  name: "upstream-away",
  config: `[profiles.default]
[profiles.web.signer]
backend = "relay"
[profiles.web.signer.relay]
account_key_path = "upstream.pem"
poll_timeout_secs = 7200
challenge_strategy = "bypass"
`,
  play: async (scene) => {
    // This upstream CA accepts every client.
    const upstream = await startServer({ config: "[profiles.default.challenge]\nbypass = true\n", env: scene.env })
    scene.atEnd(() => upstream.dispose())
    const main = await scene.start("main", {
      env: { ACME_SVC_PROFILES__WEB__SIGNER__RELAY__DIRECTORY_URL: upstream.directoryUrl }
    })
    const session = await scene.account(main, "web")
    await scene.minutes(5)
    await scene.issue(session, "before.example")
    await scene.minutes(10)
    await scene.tells()
    scene.expect("all is well")
    await upstream.stop()
    const orders = [await finalized(scene, session, "first.example"), await finalized(scene, session, "second.example")]
    await scene.minutes(6)
    await scene.tells("upstream_away")
    scene.expect("the upstream is down, and two orders wait for it", { UpstreamAway: [{ profile: "web" }] })
    await upstream.restart()
    await scene.minutes(20)
    for (const url of orders) await valid(session, url)
    await scene.minutes(1)
    await scene.tells()
    scene.expect("the upstream is back, and the orders have their certificates")
  }
}

/** Returns a program that signs, but hangs while the file `hang` exists, and writes its process id into a file. */
const hangingSigner = (timeoutMillis: number): string =>
  `[profiles.default.signer]
backend = "custom"
[profiles.default.signer.custom]
script_path = "signer"
timeout_ms = ${timeoutMillis}
`

const layHangingSigner = (scene: Scene) => {
  const at = (name: string) => join(scene.directory, name)
  mkdirSync(at("books"))
  const recipe = new URL("../../docs/recipes/sign-with-openssl.sh", import.meta.url).pathname
  writeFileSync(
    at("signer"),
    `#!/bin/sh\nif [ -e '${at("hang")}' ]; then echo $$ > '${at("pid")}'; exec sleep 3600; fi\nexec '${recipe}' '${
      at("books")
    }'\n`
  )
  chmodSync(at("signer"), 0o755)
  return {
    hang: () => writeFileSync(at("hang"), ""),
    mend: () => rmSync(at("hang")),
    /** Ends the hanging program, as an operator would. */
    kill: () => process.kill(Number(readFileSync(at("pid"), "utf8")), "SIGKILL"),
    // The file is empty for a moment, and 0 would be all processes of this group.
    isHanging: () => existsSync(at("pid")) && readFileSync(at("pid"), "utf8") !== ""
  }
}

const scriptHangs: Incident = {
  name: "script-hangs",
  config: hangingSigner(1000),
  play: async (scene) => {
    const signer = layHangingSigner(scene)
    const main = await scene.start("main")
    const session = await scene.account(main)
    await scene.minutes(5)
    await scene.issue(session, "before.example")
    await scene.minutes(10)
    await scene.tells()
    scene.expect("all is well")
    signer.hang()
    const orders = [await finalized(scene, session, "first.example"), await finalized(scene, session, "second.example")]
    const timeouts = () =>
      main.server.records().filter(({ fields }) => fields["event"] === "signer_script_timeout").length
    await scene.minutes(5, async (minute) => {
      await session.poll(() => Promise.resolve(timeouts()), (found) => found >= 2 * Math.min(minute + 1, 2))
    })
    await scene.tells("script_fails")
    scene.expect("the program hangs, and two orders wait for it", { ScriptHangs: [{ profile: "default" }] })
    signer.mend()
    await scene.minutes(20)
    for (const url of orders) await valid(session, url)
    await scene.minutes(1)
    await scene.tells()
    scene.expect("the program answers again, and the orders have their certificates")
  }
}

const jobCannotBeEnded: Incident = {
  name: "job-cannot-be-ended",
  config: hangingSigner(3_600_000),
  play: async (scene) => {
    const signer = layHangingSigner(scene)
    const main = await scene.start("main", { env: { ACME_SVC_JOBS__LEASE_SECONDS: "7200" } })
    const session = await scene.account(main)
    await scene.minutes(5)
    await scene.issue(session, "before.example")
    await scene.minutes(10)
    await scene.tells()
    scene.expect("all is well")
    signer.hang()
    const url = await finalized(scene, session, "during.example")
    await session.poll(() => Promise.resolve(signer.isHanging()), (is) => is)
    await scene.minutes(25)
    await scene.tells("job_runs_long")
    scene.expect("an attempt has been running for 25 minutes", { JobRunsLong: [{ kind: "signer_issue" }] })
    signer.mend()
    signer.kill()
    await scene.minutes(5)
    await valid(session, url)
    await scene.minutes(1)
    await scene.tells()
    scene.expect("the program was ended, and the job done by another attempt")
  }
}

const clientLoops: Incident = {
  name: "client-loops",
  config: `${minimalConfig}[profiles.limited.limits]\norders_per_account = 10\n`,
  play: async (scene) => {
    const main = await scene.start("main")
    const [session, limited] = [await scene.account(main), await scene.account(main, "limited")]
    const order = (by: AcmeSession) =>
      by.postOnce(by.directory.newOrder, { identifiers: [{ type: "dns", value: "loop.example" }] })
    await scene.minutes(5)
    await scene.issue(session, "before.example")
    await scene.minutes(10)
    await scene.tells()
    scene.expect("all is well")
    await scene.minutes(20, async () => {
      for (let orders = 0; orders < 10; orders++) await order(session)
      for (let orders = 0; orders < 3; orders++) await order(limited)
    })
    await scene.tells("client_loops")
    scene.expect("two clients order without end; one of them is limited", {
      ClientLoops: [{ profile: "default" }],
      ClientLimited: [{ profile: "limited", limit: "orders_per_account" }]
    })
    await session.deactivate()
    await limited.deactivate()
    await scene.minutes(65)
    await scene.tells()
    scene.expect("their accounts were deactivated an hour ago")
  }
}

export const signings: ReadonlyArray<Incident> = [upstreamAway, scriptHangs, jobCannotBeEnded, clientLoops]
