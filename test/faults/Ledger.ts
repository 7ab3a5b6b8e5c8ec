import type { AcmeSession } from "../support/AcmeSession.ts"
import { Tally } from "./Tally.ts"

/** The facts that a client knows about its account. A fact is set when the answer that contains it arrives. */
export interface AccountEntry {
  readonly url: string
  /** The session with the present key of the account. */
  session: AcmeSession
  keyChanges: number
  isDeactivated: boolean
  /** Whether a request that was never answered may have changed this account. */
  isHearsay: boolean
}

/** The facts that a client knows about one order. */
export interface OrderEntry {
  readonly url: string
  readonly name: string
  readonly account: AccountEntry
  /** Challenges whose trigger was answered. */
  readonly challenges: Array<string>
  isFinalized: boolean
  /** The chain that was downloaded. */
  chain: string | undefined
  isRevoked: boolean
}

/**
 * Everything that clients learned, recorded as the answers arrive. The service must not lose any recorded fact. A fact
 * that is not recorded may be true or false.
 */
export class Ledger {
  readonly accounts: Array<AccountEntry> = []
  readonly orders: Array<OrderEntry> = []
  /** The number of answers that acknowledged something. */
  readonly acknowledged = new Tally()

  account(url: string, session: AcmeSession): AccountEntry {
    const entry = { url, session, keyChanges: 0, isDeactivated: false, isHearsay: false }
    this.accounts.push(entry)
    this.acknowledged.add()
    return entry
  }

  order(url: string, name: string, account: AccountEntry): OrderEntry {
    const entry: OrderEntry = {
      url,
      name,
      account,
      challenges: [],
      isFinalized: false,
      chain: undefined,
      isRevoked: false
    }
    this.orders.push(entry)
    this.acknowledged.add()
    return entry
  }

  /** Writes a fact into an entry. */
  note<E extends AccountEntry | OrderEntry>(entry: E, facts: Partial<E>): void {
    Object.assign(entry, facts)
    this.acknowledged.add()
  }

  challenge(entry: OrderEntry, url: string): void {
    entry.challenges.push(url)
    this.acknowledged.add()
  }
}
