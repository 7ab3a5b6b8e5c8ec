import * as Effect from "effect/Effect"
import type { AcmeError } from "../../domain/AcmeError.ts"
import { problemOf } from "../../domain/Problem.ts"
import { isRefusalTold, refusalWord } from "../../domain/ProblemRecords.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Request } from "../../engine/http/Message.ts"
import { peerOf } from "../../engine/net/Peer.ts"
import { lifeMillis } from "../../engine/Time.ts"

/*
 * Records in the log why requests are refused (docs/contribute/decisions/log-and-metrics.md, "Each refusal has a
 * record").
 */

const minuteMillis = 60_000
const mostOfHost = 20
const mostOfNetwork = 80
const mostCounted = 1000

/** Counts the records of the current minute for each of the last thousand hosts or networks. */
const counting = (most: number) => {
  const counts = new Map<string, { readonly since: number; told: number }>()
  return (who: string, now: number): boolean => {
    const before = counts.get(who)
    const current = before === undefined || now - before.since >= minuteMillis ? { since: now, told: 0 } : before
    if (current !== before) {
      counts.delete(who)
      counts.set(who, current)
      if (counts.size > mostCounted) counts.delete(counts.keys().next().value ?? "")
    }
    if (current.told >= most) return false
    current.told++
    return true
  }
}

/** Removes the query from a sentence that quotes the URL of a request, because the query may contain anything. */
const withoutQuery = (detail: string): string => detail.replace(/\?\S+/g, "?***")

/**
 * Records refusals as `request_refused`: at most twenty per minute for a host, and eighty for its network. A stale
 * nonce has its own record, because it is not the client's fault. A failure of the service is logged where it occurs.
 */
export const recording = () => {
  const [ofHost, ofNetwork] = [counting(mostOfHost), counting(mostOfNetwork)]
  return (error: AcmeError, { clientIp }: Request): Effect.Effect<void> => {
    if (!isRefusalTold(error)) return Effect.void
    const { detail = "" } = problemOf(error)
    return Effect.flatMap(lifeMillis, (now) => {
      const { host, network } = peerOf(clientIp)
      return ofHost(host, now) && ofNetwork(network, now)
        ? emit("request_refused", { reason: refusalWord(error), detail: withoutQuery(detail) })
        : Effect.void
    })
  }
}
