import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Dns from "node:dns"
import * as Fs from "node:fs"
import { exhaustion } from "../host/Exhausted.ts"
import type { Nameserver } from "./Address.ts"
import { familyOf } from "./Address.ts"

/* The queries of one look-up, and the resolver objects that send them. */

/** One query, as a call of a resolver object. */
export type Question<A> = (
  resolver: Dns.Resolver,
  reply: (error: NodeJS.ErrnoException | null, answers: ReadonlyArray<A> | undefined) => void
) => void

/** The outcome of one query. */
export interface Reply<A> {
  /** The records of the requested type. The list is empty if there are none, or if the query failed. */
  readonly answers: ReadonlyArray<A>
  /** The code of the failure, as `ResolveFailed` has it. `undefined` if there was none. */
  readonly code: string | undefined
}

/** The queries of one look-up. All of them leave from one socket, which no other look-up uses. */
export interface Lookup<A> {
  /** The outcomes so far, in the order of the questions. An outcome that is missing is `undefined`. */
  readonly replies: ReadonlyArray<Reply<A> | undefined>
  /** Whether every query has an outcome. */
  readonly isOver: () => boolean
  /** Sends the queries, if they are not sent yet, and waits until all have an outcome, or one of them is enough. */
  readonly until: (isEnough: (reply: Reply<A>) => boolean) => Effect.Effect<void>
  /** Cancels the queries that have no outcome yet. Must be called in the end. */
  readonly end: () => void
}

/** Makes look-ups that ask the same name servers. */
export type Lookups = <A>(questions: ReadonlyArray<Question<A>>) => Lookup<A>

/** The most resolver objects that wait for their next look-up. */
const mostIdle = 64

/** The codes of a server's answer. After any other failure, the resolver object is not used again. */
const answered: ReadonlySet<string | undefined> = new Set([undefined, Dns.NOTFOUND])

/**
 * The codes that mean that no server answered. The resolver also uses these codes if it could not open a socket for the
 * query.
 */
const unanswered: ReadonlySet<string | undefined> = new Set([Dns.CONNREFUSED, Dns.TIMEOUT, Dns.NOMEM, Dns.FILE])

const codeOf = (error: NodeJS.ErrnoException): string | undefined => {
  const code = (unanswered.has(error.code) ? exhaustion() : undefined) ?? error.code ?? "unknown"
  return code === Dns.NODATA ? undefined : code
}

/** Returns text that changes when the system's list of name servers is written. */
const systemVersion = (): string => {
  try {
    const { ctimeNs, dev, ino, mtimeNs, size } = Fs.statSync("/etc/resolv.conf", { bigint: true })
    return [dev, ino, mtimeNs, ctimeNs, size].join(" ")
  } catch {
    return "" // Without this file, c-ares has defaults.
  }
}

/**
 * Lends resolver objects. They are kept, because making one costs as much as sending a query. A resolver object has
 * only one look-up at a time. When none of its queries is open, it has no socket. So each look-up has a new socket,
 * with a port that the system chooses at random (RFC 5452 section 9.2).
 */
const makeResolvers = (server: Option.Option<Nameserver>, listVersion: () => string) => {
  const servers = Option.map(
    server,
    ({ address, port }) => [familyOf(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`]
  )
  const make = () => {
    // c-ares makes the queries, and never getaddrinfo. So nothing is cached, no thread of the pool waits, and neither
    // the hosts file nor the search list is read. A query without an answer is repeated for minutes.
    const resolver = new Dns.Resolver({ timeout: 1000, tries: 8 })
    if (Option.isSome(servers)) resolver.setServers(servers.value)
    return resolver
  }
  let version = ""
  let idle: Array<Dns.Resolver> = []
  return () => {
    // A resolver object reads the system's list only when it is made.
    const now = Option.isSome(servers) ? "" : listVersion()
    if (now !== version) [version, idle] = [now, []]
    const home = idle
    const resolver = home.pop() ?? make()
    return { resolver, giveBack: () => void (home.length < mostIdle && home.push(resolver)) }
  }
}

/**
 * Makes look-ups that ask the given server, or the name servers of the system. `listVersion` returns text that changes
 * with the system's list.
 */
export const makeLookups = (server: Option.Option<Nameserver>, listVersion = systemVersion): Lookups => {
  const borrow = makeResolvers(server, listVersion)
  return <A>(questions: ReadonlyArray<Question<A>>): Lookup<A> => {
    const replies = Array<Reply<A> | undefined>(questions.length).fill(undefined)
    const used: Array<Dns.Resolver> = []
    const isOver = () => !replies.includes(undefined)
    let isEnded = false
    let giveBack = () => {}
    let told = (_reply: Reply<A>) => {}
    const ask = (resolver: Dns.Resolver, at: number, mayRepeat: boolean) =>
      questions[at]?.(resolver, (error, answers = []) => {
        if (isEnded) return
        const code = error === null ? undefined : codeOf(error)
        // This code may be the result of a shortage of descriptors that is already over, and nothing else would show
        // that. So the query is repeated once.
        if (code === Dns.CONNREFUSED && mayRepeat) return ask(lend(), at, false)
        const reply = { answers, code }
        replies[at] = reply
        told(reply)
      })
    const lend = () => {
      const { resolver, giveBack: back } = borrow()
      used.push(resolver)
      giveBack = back
      return resolver
    }
    return {
      replies,
      isOver,
      until: (isEnough) =>
        Effect.callback((resume) => {
          told = (reply) => {
            if (isOver() || isEnough(reply)) resume(Effect.void)
          }
          if (isOver()) return resume(Effect.void)
          if (used.length > 0) return
          const resolver = lend()
          for (const at of questions.keys()) ask(resolver, at, true)
        }),
      end: () => {
        isEnded = true
        if (isOver() && replies.every((reply) => answered.has(reply?.code))) giveBack()
        else for (const resolver of used) resolver.cancel()
      }
    }
  }
}
