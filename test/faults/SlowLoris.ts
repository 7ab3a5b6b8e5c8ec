import type { Raw } from "../support/RawClient.ts"
import { drip, open } from "../support/RawClient.ts"
import type { Fault, Means, Stage } from "./Stage.ts"
import { siteOn, under } from "./Stage.ts"

// The beginning of a TLS 1.2 ClientHello that announces 512 octets.
const hello = "\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003"

interface Attack {
  /** Opens a connection that never completes its request. */
  readonly begin: (port: number, path: string) => Raw
  /** The answer of the service before it closes the connection. */
  readonly answered: RegExp
}

const post = (path: string): string => `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/jose+json\r\n`

const attacks = {
  heads: {
    begin: (port, path) => drip(open(port, `${post(path)}X-Slow: `)),
    answered: /^(?:HTTP\/1\.1 408 |$)/
  },
  bodies: {
    begin: (port, path) => drip(open(port, `${post(path)}Content-Length: 1000\r\n\r\n{`)),
    answered: /^HTTP\/1\.1 408 [^]*"urn:ietf:params:acme:error:malformed"/
  },
  handshakes: { begin: (port) => drip(open(port, hello)), answered: /^(?:$|\P{L})/u }
} as const satisfies Record<string, Attack>

/**
 * Opens all connections of a wave at once, and waits until the service has closed every one of them. Honest clients
 * must not be affected.
 */
const wave =
  (attack: Attack) => async ({ load, means: { clients, rounds }, site: { acme } }: Stage): Promise<number> => {
    const path = new URL(`${acme.profileUrl("default")}/../newOrder`).pathname
    const [broken, failures] = [load.broken.value, load.failures.value]
    const slow = Array.from({ length: rounds }, () => attack.begin(acme.port, path))
    const [said] = await Promise.all([
      Promise.all(slow.map(({ ended }) => ended)),
      load.ledger.acknowledged.more(3 * clients)
    ])
    for (const text of said) {
      if (!attack.answered.test(text)) throw new Error(`a slow client was told: ${text.slice(0, 300)}`)
    }
    const unserved = load.broken.value - broken + load.failures.value - failures
    if (unserved > 0) throw new Error(`${unserved} requests of honest clients were not served`)
    return rounds
  }

const attacking = (attack: Attack, tls: boolean) => async (means: Means) =>
  under(means, { ...await siteOn(means), tls }, wave(attack))

/** The header fields of requests arrive at the rate of one octet a second. */
export const slowHeads: Fault = {
  name: "slow-loris on heads",
  databases: ["SQLite"],
  rounds: 200,
  isSize: true,
  run: attacking(attacks.heads, false)
}

/** The bodies of requests arrive at the rate of one octet a second. */
export const slowBodies: Fault = {
  name: "slow-loris on bodies",
  databases: ["SQLite"],
  rounds: 200,
  isSize: true,
  run: attacking(attacks.bodies, false)
}

/** The handshakes arrive at the rate of one octet a second. */
export const slowHandshakes: Fault = {
  name: "slow-loris on handshakes",
  databases: ["SQLite"],
  rounds: 200,
  isSize: true,
  run: attacking(attacks.handshakes, true)
}
