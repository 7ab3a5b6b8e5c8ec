import { X509Certificate } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { problemType, UnexpectedAnswer } from "../support/AcmeSession.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, runToEnd, thisBuild } from "../support/Server.ts"
import type { Bound } from "./Filled.ts"
import { command } from "./Filled.ts"
import type { Site } from "./Site.ts"

/*
 * Restrictions that an earlier version does not know: the scope of a credential, and a kind of certificates. Nothing may
 * be issued outside of them, whichever processes run (docs/contribute/decisions/compatibility.md, "Neighbours").
 */

/** A configuration with a kind of certificates that an earlier version does not know. */
const withKinds = (config: string): string =>
  `${config}[profiles.bound.certificates.kinds]\ndefault.description = "servers"\nmutual.description = "both sides"\n`
  + `mutual.usages = ["server_auth", "client_auth"]\n`

/** Gives a configuration to processes, and waits until each has read it. */
const reloaded = async (servers: ReadonlyArray<Server>, config: string, event: string): Promise<void> => {
  for (const { directory } of servers) writeFileSync(join(directory, "config.toml"), config)
  await Promise.all(servers.map(async (server) => {
    server.signal("SIGHUP")
    await server.waitForEvent(event)
  }))
}

/** Checks that both restrictions are refused while a process of the earlier version runs. */
export const refusesRestriction = async (site: Site, { kid }: Bound, front: Server, config: string): Promise<void> => {
  await reloaded([front], withKinds(config), "server_config_reload_refused")
  writeFileSync(join(front.directory, "config.toml"), config)
  const said = await command(site, thisBuild, ["eab", "set", kid, "--names", "covered.bound.example"], 3)
  if (!said.includes("runs an older version")) throw new Error(`beside an older process, eab set said: ${said}`)
}

const refusalOf = async ({ session }: Bound, name: string, more: object): Promise<string> => {
  try {
    const { body } = await session.newOrder([name], more)
    return body.status
  } catch (error) {
    if (error instanceof UnexpectedAnswer) return problemType(error.answer) ?? `${error.answer.status}`
    throw error
  }
}

/** Restricts the credential in every process, and returns the check that nothing was issued outside of it. */
export const restrict = async (
  site: Site,
  bound: Bound,
  front: Server,
  config: string
): Promise<() => Promise<void>> => {
  await reloaded([front, ...site.workers], withKinds(config), "server_config_reloaded")
  const words = ["--names", "covered.bound.example", "--kinds", "mutual"]
  await command(site, thisBuild, ["eab", "set", bound.kid, ...words])
  const [row] = await sqlAt(site.databaseUrl, "SELECT count(*) AS n FROM orders WHERE profile = 'bound'")
  const placedBefore = Number(row?.["n"])
  return async () => {
    const wrong = await refusalOf(bound, "other.bound.example", {})
    if (wrong !== "rejectedIdentifier") throw new Error(`a name outside of the scope: ${wrong}`)
    const plain = await refusalOf(bound, "covered.bound.example", { profile: "default" })
    if (plain !== "invalidProfile") throw new Error(`a kind outside of the scope: ${plain}`)
    const { chain } = await bound.session.issue(["covered.bound.example"], new Map())
    const usages = new X509Certificate(chain).keyUsage ?? []
    if (!usages.includes("1.3.6.1.5.5.7.3.2")) throw new Error(`a certificate of another kind: ${usages.join(" ")}`)
    const [now] = await sqlAt(site.databaseUrl, "SELECT count(*) AS n FROM orders WHERE profile = 'bound'")
    if (Number(now?.["n"]) !== placedBefore + 1) throw new Error("an order outside of the scope was placed")
  }
}

/** Checks that a process of the earlier version does not start beside the restriction, and says why. */
export const olderEnds = async ({ databaseUrl }: Site, build: string): Promise<void> => {
  const directory = mkdtempSync(join(tmpdir(), "acme-faults-"))
  const { code, stderr, stdout } = await runToEnd(["serve", "--role", "worker"], {
    config: minimalConfig,
    directory,
    env: { ACME_SVC_DATABASE__URL: databaseUrl },
    build
  })
  rmSync(directory, { recursive: true, force: true })
  if (code === 0 || !`${stdout}${stderr}`.includes("a credential has a scope")) {
    throw new Error(`an older process ended with ${code}: ${stderr}`)
  }
}
