import type { Ask } from "../support/Asked.ts"
import type { Around } from "../support/RunCommand.ts"
import { apiToken, csrfToken, sessionToken } from "./Ground.ts"

/* A play is a request to the API, a request of the panel, or a command line. */

/** The nouns by which plays are grouped. Each group begins with the same database. */
export const nouns = [
  "nonces",
  "credentials",
  "scopes",
  "blocks",
  "trials",
  "jobs",
  "alike",
  "workers",
  "accounts",
  "audit",
  "chain",
  "campaigns",
  "orders",
  "expiring",
  "upstream",
  "certificates",
  "profiles",
  "kinds",
  "configuration",
  "authorities",
  "compromise",
  "attention",
  "links",
  "notifications",
  "operators",
  "tokens",
  "session",
  "service"
] as const

export type Noun = typeof nouns[number]

export type { Person } from "./Ground.ts"

/** A request, with a name that no other of its group has. */
export interface RequestPlay extends Ask {
  readonly name: string
  readonly target: string
  /** The name of the caller's seat. */
  readonly by: string
  /** The parts of the answer that are recorded on separate lines. */
  readonly parts?: (text: string) => ReadonlyArray<readonly [name: string, text: string]>
}

/** A play of one command line. */
export interface CommandPlay {
  readonly name: string
  readonly words: ReadonlyArray<string>
  readonly around?: Around
  /** Files in the directory of the play, which the command reads. */
  readonly files?: Readonly<Record<string, string>>
}

/** The plays of a noun on a surface. In a strict group, a second factor is required. */
export type Group =
  & { readonly noun: Noun; readonly isStrict?: boolean }
  & (
    | { readonly surface: "api" | "panel"; readonly plays: ReadonlyArray<RequestPlay> }
    | { readonly surface: "cli"; readonly plays: ReadonlyArray<CommandPlay> }
  )

/** Returns the name of a group's recording. */
export const groupName = ({ isStrict = false, noun, surface }: Pick<Group, "isStrict" | "noun" | "surface">): string =>
  `${noun}${isStrict ? "-strict" : ""}.${surface}`

/** Returns the credentials of a session. */
export const session = (seat: string): Pick<RequestPlay, "by" | "cookie" | "csrf"> => ({
  by: seat,
  cookie: sessionToken(seat),
  csrf: csrfToken(seat)
})

/** Returns the credentials of a token for programs. */
export const bearer = (seat: string): Pick<RequestPlay, "by" | "headers"> => ({
  by: `token of ${seat}`,
  headers: { authorization: `Bearer ${apiToken(seat)}` }
})

/** No credentials. */
export const nobody = { by: "nobody" } as const

/** A role, with the seat of an operator who has it. */
export const seatOf = { viewer: "vera", operator: "olga", admin: "anna" } as const

/** Returns the plays of a list with different names. A repeated name gets a number. */
export const distinct = <P extends { readonly name: string }>(plays: ReadonlyArray<P>): ReadonlyArray<P> => {
  const seen = new Map<string, number>()
  return plays.map((play) => {
    const count = (seen.get(play.name) ?? 0) + 1
    seen.set(play.name, count)
    return count === 1 ? play : { ...play, name: `${play.name} #${count}` }
  })
}
