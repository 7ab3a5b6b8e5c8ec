import type { BusyPopulation } from "./Busy.ts"
import type { Read } from "./Reader.ts"
import type { ServiceOptions } from "./Service.ts"
import { runCommand } from "./Service.ts"

/* The code that both kinds of operators' reads share: lists of the API, and pages of the panel. */

/** The headers with which a reader identifies itself in every request. */
export type Shown = { readonly [name: string]: string }

type Serving = ServiceOptions & { readonly directory: string }

/** One kind of operators' reads, and how its reader signs in. */
export interface Subject {
  readonly readsOf: (population: BusyPopulation, now: number) => ReadonlyArray<Read>
  /** Signs a reader in to the service whose operators' listener is `origin`. */
  readonly enter: (serving: Serving, origin: string) => Promise<Shown>
}

/** Makes named reads of paths below `root`: `below("/api/")("jobs failed", "jobs", { status: "failed" })`. */
export const below =
  (root: string) => (name: string, path: string, query: { readonly [parameter: string]: string } = {}): Read => ({
    name,
    path: `${root}${path}${Object.keys(query).length === 0 ? "" : `?${new URLSearchParams(query)}`}`
  })

/** Returns the date `days` days before the epoch second `now`. */
export const dayBefore = (now: number, days: number): string =>
  new Date((now - days * 86_400) * 1000).toISOString().slice(0, 10)

const operatorName = "bench"

/** Makes an operator with this password. A kept database may have the operator already, with its old password. */
const operatorWith = (serving: Serving, password: string): void => {
  const isThere = runCommand(serving, ["admin", "user", "list", "--json"]).includes(`"${operatorName}"`)
  const words = isThere ? ["passwd", operatorName] : ["create", operatorName, "--role", "admin"]
  runCommand(serving, ["admin", "user", ...words], `${password}\n`)
}

const newPassword = (): string => Buffer.from(crypto.getRandomValues(new Uint8Array(18))).toString("base64url")

/** Signs in as a program does, with a new token. */
export const withToken: Subject["enter"] = (serving) => {
  operatorWith(serving, newPassword())
  const name = `run ${Date.now()}`
  const printed = runCommand(serving, ["admin", "token", "create", operatorName, "--name", name, "--expires-in", "1"])
  const [token] = /acme_svc_\S+/.exec(printed) ?? []
  if (token === undefined) throw new Error(`no token in ${printed}`)
  return Promise.resolve({ authorization: `Bearer ${token}` })
}

/** Signs in as a browser does, with the cookie of a new session. */
export const withSession: Subject["enter"] = async (serving, origin) => {
  const password = newPassword()
  operatorWith(serving, password)
  const answer = await fetch(`${origin}/ui/login`, {
    method: "POST",
    body: new URLSearchParams({ username: operatorName, password }),
    redirect: "manual"
  })
  const [cookie] = answer.headers.getSetCookie()[0]?.split(";") ?? []
  if (cookie === undefined) throw new Error(`signing in was answered ${answer.status}`)
  return { cookie }
}
