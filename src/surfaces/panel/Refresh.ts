import { sha256 } from "../../crypto/Digest.ts"
import { urlOf } from "./Listing.ts"

/* Fragments that ask for themselves again while what they show can still change (docs/decisions/panel.md, "Live refresh"). */

const quickPolls = 30
const polls = 210

/** A poll of a fragment: its number, and the tag of the fragment that the browser has. */
export interface Poll {
  readonly count: number
  readonly tag: string
}

/** The poll that a request is, if it is one. */
export const pollOf = (query: URLSearchParams): Poll | undefined => {
  const [count, tag] = [query.get("poll"), query.get("tag")]
  return count === null || !/^\d{1,3}$/.test(count) ? undefined : { count: Number(count), tag: tag ?? "" }
}

/** A digest of the data that a fragment shows. Words such as `3 minutes ago` are made later and do not change it. */
export const tagOf = (data: unknown): string => sha256(JSON.stringify(data)).slice(0, 16)

/** The next poll of a fragment: its URL, and the seconds until then. With `isOver`, the page shows a button instead. */
export const nextPoll = (path: string, query: URLSearchParams, tag: string) => {
  const count = pollOf(query)?.count ?? 0
  if (count >= polls) return { isOver: true as const }
  const others = Object.fromEntries([...query].filter(([name]) => name !== "poll" && name !== "tag"))
  return {
    isOver: false as const,
    url: urlOf(path, { ...others, poll: String(count + 1), tag }),
    seconds: count < quickPolls ? 2 : 10
  }
}
