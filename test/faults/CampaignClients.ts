import { X509Certificate } from "node:crypto"
import { setTimeout as delay } from "node:timers/promises"
import type { AcmeSession } from "../support/AcmeSession.ts"
import { problemType, UnexpectedAnswer } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { renewalIdOf } from "../support/Openssl.ts"
import type { AccountEntry, Ledger } from "./Ledger.ts"
import { patienceMs } from "./Load.ts"
import { Tally } from "./Tally.ts"

/*
 * Clients with many certificates that ask for renewal information (RFC 9773) and replace what is due. They behave as
 * certbot and mod_md do, but ask every few seconds, because nobody waits for twelve hours here.
 */

/** A certificate of a client. */
interface Held {
  readonly name: string
  /** The certID of the certificate. */
  readonly id: string
  /** The window that was told last, and the time in it that the client chose, in epoch milliseconds. */
  readonly chosen?: { readonly window: string; readonly at: number }
}

/** What the renewal information of a certificate says. */
interface Told {
  readonly suggestedWindow: { readonly start: string; readonly end: string }
}

/** Clients with certificates. */
export interface CampaignClients {
  /** The number of certificates that were replaced. */
  readonly replaced: Tally
  /** Milliseconds since {@link CampaignClients.ask} began, for each certificate that was replaced. */
  readonly times: ReadonlyArray<number>
  /** Lets every client ask for and replace its certificates until each of them was replaced once. */
  readonly ask: () => Promise<void>
}

const octets = (serial: string): Buffer => Buffer.from(/^[89A-F]/.test(serial) ? `00${serial}` : serial, "hex")

/** Returns the certID of a chain whose CA has this part of it. */
const certIdOf = (authority: string, chain: string): string =>
  `${authority}.${octets(new X509Certificate(chain).serialNumber).toString("base64url")}`

/** Places an order, waits for its certificate, and records both. */
const issue = async (ledger: Ledger, account: AccountEntry, name: string, more: object): Promise<string> => {
  const { session } = account
  // If the answer to an earlier newOrder was lost, that order replaces the certificate; clients then order without it.
  const placed = await session.newOrder([name], more).catch((error: unknown) => {
    if (error instanceof UnexpectedAnswer && problemType(error.answer) === "alreadyReplaced") {
      return session.newOrder([name])
    }
    throw error
  })
  const entry = ledger.order(placed.url, name, account)
  await session.authorize(placed.body, new Map(), patienceMs)
  const finalized = await session.finalize(placed.body, makeCsr({ names: [name] }).csr)
  // If the answer to finalize was lost, the repeated request is answered with orderNotReady.
  if (finalized.status !== 200 && problemType(finalized) !== "orderNotReady") {
    throw new UnexpectedAnswer(name, finalized)
  }
  ledger.note(entry, { isFinalized: true })
  const done = await session.awaitOrder(placed.url, ["valid", "invalid"], patienceMs)
  if (done.certificate === undefined) throw new Error(`${name} got no certificate: ${JSON.stringify(done)}`)
  const chain = await session.download(done.certificate)
  ledger.note(entry, { chain })
  return chain
}

/** Registers the clients and issues `certificates` in all, at a profile that validates nothing. */
export const startCampaignClients = async (
  options: {
    readonly ledger: Ledger
    readonly sessions: ReadonlyArray<AcmeSession>
    readonly certificates: number
    /** Milliseconds between two times at which a client asks for all its certificates. */
    readonly pollMs: number
  }
): Promise<CampaignClients> => {
  const { certificates, ledger, pollMs, sessions } = options
  const replaced = new Tally()
  const times: Array<number> = []
  let begun = 0
  let authority = ""
  const clients = await Promise.all(sessions.map(async (session, client) => {
    const account = ledger.account(await session.register(), session)
    const held: Array<Held> = []
    for (let at = client; at < certificates; at += sessions.length) {
      const name = `h${at}.replaced.example`
      const chain = await issue(ledger, account, name, {})
      if (authority === "") [authority = ""] = renewalIdOf(chain).split(".")
      held.push({ name, id: certIdOf(authority, chain) })
    }
    return { account, held }
  }))

  /** Returns the window of a certificate. Undefined if the service did not answer, as certbot and mod_md take it. */
  const windowOf = async (session: AcmeSession, id: string): Promise<Told["suggestedWindow"] | undefined> => {
    const answer = await session.get(`${session.directory.renewalInfo}/${id}`).catch(() => undefined)
    if (answer === undefined || answer.status >= 500) return undefined
    if (answer.status !== 200) throw new UnexpectedAnswer(`renewal information of ${id}`, answer)
    return (answer.json as Told).suggestedWindow
  }

  /** Asks for one certificate, and replaces it if its time has come. Returns what is left of it, or undefined. */
  const look = async (account: AccountEntry, one: Held, keepsItsChoice: boolean): Promise<Held | undefined> => {
    const told = await windowOf(account.session, one.id)
    if (told === undefined) return one
    const [start, end] = [Date.parse(told.start), Date.parse(told.end)]
    const window = `${start} ${end}`
    const at = keepsItsChoice && one.chosen?.window === window ? one.chosen.at : start + Math.random() * (end - start)
    if (at > Date.now()) return { ...one, chosen: { window, at } }
    await issue(ledger, account, one.name, { replaces: one.id })
    replaced.add()
    times.push(performance.now() - begun)
    return undefined
  }

  const live = async ({ account, held }: (typeof clients)[number], index: number): Promise<void> => {
    let left: ReadonlyArray<Held> = held
    while (left.length > 0) {
      // Clients do not ask at the same time.
      await delay(pollMs * (0.5 + Math.random()))
      const next: Array<Held> = []
      // certbot chooses a time anew each time it runs, and mod_md keeps its choice while the window is the same.
      for (const one of left) {
        next.push(...[await look(account, one, index % 2 === 1)].filter((kept) => kept !== undefined))
      }
      left = next
    }
  }

  return {
    replaced,
    times,
    ask: async () => {
      begun = performance.now()
      await Promise.all(clients.map(live))
    }
  }
}
