import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { freePort } from "../../test/support/Ports.ts"
import { temporaryDirectory } from "./Cleanup.ts"
import type { Extent } from "./Load.ts"
import type { Peer, Placeholders } from "./PeersFile.ts"
import { filledIn } from "./PeersFile.ts"
import * as Procfs from "./Procfs.ts"
import { startProcess } from "./Service.ts"
import type { Burden, Ground, Side } from "./Turn.ts"
import { warmUpOf, windowOf } from "./Turn.ts"

const attempts = 6
const startMillis = 30_000
const warmUpIssuances = 100

/** A peer that runs now. */
interface Running {
  readonly pid: number
  readonly directoryUrl: string
  /** Fails if the process of a command has ended. */
  readonly check: () => void
  readonly stop: () => Promise<void>
}

/** Starts a peer by its command. A peer with a process runs already. */
const begin = async ({ directoryUrl, runs }: Peer, { proof }: Ground): Promise<Running> => {
  if ("pid" in runs) return { pid: runs.pid, directoryUrl, check: () => undefined, stop: () => Promise.resolve() }
  const values: Placeholders = {
    port: await freePort(),
    directory: temporaryDirectory(),
    resolver: proof.resolver,
    http_01_port: proof.httpPort
  }
  const [program = "", ...words] = runs.command.map((word) => filledIn(word, values))
  const server = startProcess(program, words, {
    cwd: runs.cwd,
    env: process.env,
    logFile: join(temporaryDirectory(), "log.txt")
  })
  return { pid: server.pid, directoryUrl: filledIn(directoryUrl, values), check: server.check, stop: server.stop }
}

type Window = (length: Extent, burden: Burden) => ReturnType<typeof windowOf>

const reasonOf = (error: unknown): string => error instanceof Error ? error.message : String(error)

/**
 * Makes another server a side of a comparison. A peer that is started by a command has a new process for every turn,
 * because some servers become slower with each order, or hang. Fails if the peer does not issue a certificate.
 */
export const peerSide = async (peer: Peer, ground: Ground): Promise<Side> => {
  const { loader, options: { extent }, progress } = ground
  const { binding, ca, name } = peer
  const isKept = "pid" in peer.runs

  /** Turns the load to the peer, as soon as the peer answers. */
  const turnTo = async ({ check, directoryUrl }: Running): Promise<void> => {
    const deadline = performance.now() + startMillis
    for (;;) {
      try {
        return await loader.call("targetPeer", { directoryUrl, ca, binding })
      } catch (error) {
        check()
        if (isKept || performance.now() > deadline) throw error
        await delay(20)
      }
    }
  }

  /** Runs the peer, and lets `use` run windows on it. */
  const withPeer = async <A>(use: (window: Window) => Promise<A>): Promise<A> => {
    const running = await begin(peer, ground)
    try {
      await turnTo(running)
      const read = () => ({ cpu: Procfs.cpuOfFamily(running.pid), database: undefined })
      return await use((length, burden) => windowOf(loader, length, burden, read, true))
    } finally {
      await running.stop()
    }
  }

  try {
    const { cpu } = await withPeer((window) =>
      window({ issuances: 1 }, { act: "issue", isProved: peer.isProved, concurrency: 1 })
    )
    if (cpu === 0) throw new Error("its process used no CPU while the server answered; is the pid right?")
  } catch (error) {
    throw new Error(`peers.${name}: ${reasonOf(error)}`, { cause: error })
  }

  return {
    name,
    bears: ({ act, isProved }) => act !== "issue" || isProved === peer.isProved,
    warmUp: async (burden) => {
      if (isKept) await withPeer((window) => window(warmUpOf(burden, extent), burden))
    },
    turn: async (burden) => {
      for (let attempt = 1; attempt <= (isKept ? 1 : attempts); attempt++) {
        try {
          return await withPeer(async (window) => {
            if (!isKept) await window({ issuances: extent.issuances ?? warmUpIssuances }, burden)
            return { floor: undefined, ...await window(extent, burden) }
          })
        } catch (error) {
          progress(`${name}: ${reasonOf(error).split("\n", 1)[0]}`)
        }
      }
      return undefined
    }
  }
}
