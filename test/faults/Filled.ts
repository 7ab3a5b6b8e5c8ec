import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { PlacedOrder } from "../support/AcmeSession.ts"
import { AcmeSession, problemType, UnexpectedAnswer } from "../support/AcmeSession.ts"
import { bindingOf } from "../support/Binding.ts"
import { makeCsr } from "../support/Csr.ts"
import { leafOf, renewalIdOf } from "../support/Openssl.ts"
import { runToEnd } from "../support/Server.ts"
import { patienceMs } from "./Load.ts"
import type { Site } from "./Site.ts"

/** The profile of a filled service that requires credentials and validates nothing. */
export const boundProfile = "[profiles.bound.eab]\nenabled = true\n[profiles.bound.challenge]\nbypass = true\n"

/**
 * Runs a command of a build while the service runs. Returns the output, and also the errors of a command that should
 * fail. Fails unless the command ends with `code`.
 */
export const command = async (
  { acme: { directory }, databaseUrl }: Site,
  build: string,
  words: ReadonlyArray<string>,
  code = 0
): Promise<string> => {
  const env = { ACME_SVC_DATABASE__URL: databaseUrl, ACME_SVC_LOGGING__JSON_FORMAT: "false" }
  const ended = await runToEnd(words, { config: null, directory, env, build })
  if (ended.code === code) return code === 0 ? ended.stdout : `${ended.stdout}${ended.stderr}`
  throw new Error(`${words.join(" ")} ended with ${ended.code}, not ${code}: ${ended.stdout}${ended.stderr}`)
}

/** Makes an account that is bound to a credential, and the check that its unfinished order can be finished later. */
export const fillBound = async (site: Site, build: string) => {
  const options = { patienceMs, pollMs: 100 }
  const session = await AcmeSession.open(site.acme.profileUrl("bound"), options)
  const words = ["eab", "create", "--label", "filled", "--json"]
  const { hmacKey, kid } = JSON.parse(await command(site, build, words)) as {
    readonly kid: string
    readonly hmacKey: string
  }
  const { directory: { newAccount }, key: { jwk } } = session
  await session.register({
    termsOfServiceAgreed: true,
    externalAccountBinding: bindingOf({ kid, secret: Buffer.from(hmacKey, "base64url") }, jwk, newAccount)
  })
  const unfinished = await session.newOrder(["unfinished.bound.example"])
  const check = async () => {
    await session.authorize(unfinished.body, new Map())
    const finalized = await session.finalize(unfinished.body, makeCsr({ names: ["unfinished.bound.example"] }).csr)
    if (finalized.status !== 200) throw new UnexpectedAnswer("the order of an account with a credential", finalized)
  }
  return { check, kid, session }
}

const fillOrders = async ({ world: { responder: { tokens } } }: Site, another: () => Promise<AcmeSession>) => {
  const session = await another()
  await session.register()
  const placed = async (name: string): Promise<PlacedOrder> => session.newOrder([name])
  const finish = async ({ body, url }: PlacedOrder, name: string) => {
    const finalized = await session.finalize(body, makeCsr({ names: [name] }).csr)
    // The answer to an earlier try may have been lost.
    if (finalized.status !== 200 && problemType(finalized) !== "orderNotReady") {
      throw new UnexpectedAnswer(name, finalized)
    }
    const done = await session.awaitOrder(url, ["valid", "invalid"], patienceMs)
    if (done.status !== "valid") throw new Error(`${name} is ${done.status}`)
  }
  const pending = await placed("pending.filled.example")
  const ready = await placed("ready.filled.example")
  await session.authorize(ready.body, tokens)
  const { chain, certificateUrl } = await session.issue(["valid.filled.example"], tokens)
  return async () => {
    await session.authorize(pending.body, tokens)
    await finish(pending, "pending.filled.example")
    await finish(ready, "ready.filled.example")
    if (await session.download(certificateUrl) !== chain) throw new Error("a certificate is another one now")
    const replaces = renewalIdOf(chain)
    const window = await session.get(`${session.directory.renewalInfo ?? ""}/${replaces}`)
    if (window.status !== 200) throw new UnexpectedAnswer("renewal information", window)
    const renewed = await session.issue(["valid.filled.example"], tokens, { more: { replaces } })
    if (leafOf(renewed.chain).serialNumber === leafOf(chain).serialNumber) throw new Error("nothing was renewed")
  }
}

/** An account that is bound to a credential. */
export interface Bound {
  readonly kid: string
  readonly session: AcmeSession
}

/**
 * Puts data into a service with a build of its version: an account that is bound to a credential, and orders that are
 * pending, ready and valid. Returns the checks that must succeed later.
 */
export const fill = async (
  site: Site,
  build: string,
  another: () => Promise<AcmeSession>
): Promise<() => Promise<void>> => {
  const bound = await fillBound(site, build)
  const checkOrders = await fillOrders(site, another)
  return async () => {
    await bound.check()
    bound.session.close()
    await checkOrders()
  }
}

/**
 * Makes an operator with a session, and a token for a program, with a build of the service's version. Returns the
 * checks that must succeed later.
 */
export const fillOperators = async (site: Site, build: string, api: string): Promise<() => Promise<void>> => {
  const file = join(site.acme.directory, "password.txt")
  writeFileSync(file, "Wrocław tramway, 4 stops\n", { mode: 0o600 })
  await command(site, build, ["admin", "user", "create", "ann", "--password-file", file])
  const words = ["admin", "token", "create", "ann", "--name", "backup", "--role", "operator", "--expires-in", "30"]
  const token = (await command(site, build, words)).match(/acme_svc_[\w-]+/)?.[0] ?? ""
  const signIn = () =>
    fetch(`${api}/session`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username: "ann", password: "Wrocław tramway, 4 stops" })
    })
  const asked = async (headers: Readonly<Record<string, string>>, what: string) => {
    const answer = await fetch(`${api}/orders`, { headers })
    if (answer.status !== 200) throw new Error(`${what}: ${answer.status} ${await answer.text()}`)
  }
  const cookie = (await signIn()).headers.getSetCookie().map((one) => one.split(";")[0]).join("; ")
  const check = async () => {
    await asked({ authorization: `Bearer ${token}` }, "a token")
    await asked({ cookie }, "a session")
    const again = await signIn()
    if (again.status !== 200 && again.status !== 201) throw new Error(`sign-in: ${again.status} ${await again.text()}`)
  }
  await check()
  return check
}
