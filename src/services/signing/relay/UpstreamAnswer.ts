import type { Subproblem } from "../../../domain/JobFailure.ts"
import type { Identifier } from "../../../domain/ProblemDocument.ts"
import type { UpstreamResult } from "../../../domain/words/Series.ts"
import { oneLine } from "../../../engine/HiddenText.ts"
import type { WebAnswer } from "../../../engine/net/Web.ts"
import type { UpstreamRefused } from "./UpstreamFailed.ts"

/* Reads answers of an upstream. Their content may be anything. */

/** A JSON object from an upstream. */
export type Members = { readonly [member: string]: unknown }

/** An answer whose status is a success. */
export interface UpstreamAnswer {
  readonly status: number
  /** The body as a JSON object; `undefined` if the body is not a JSON object. */
  readonly json: Members | undefined
  /** The body as JSON of any kind; `undefined` if the body is not JSON, for example because the body was cut off. */
  readonly value: unknown
  readonly text: string
  /** The URL of the Location header, if it may be used. */
  readonly location: string | undefined
  /** The URL of the next part of a list, from the Link header. */
  readonly next: string | undefined
  /** The URLs of alternate chains, from the Link header, not yet checked. */
  readonly alternates: ReadonlyArray<string>
  /**
   * The number of seconds that the upstream asks the client to wait, for whatever reason; `undefined` if the upstream
   * does not ask for a wait.
   */
  readonly retryAfter: number | undefined
}

const longestText = 2000
const longestType = 100
const longestPart = 300

/** Parses a body as JSON of any kind. Returns `undefined` if the body is not JSON. */
export const parsed = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString("utf8"))
  } catch {
    return undefined
  }
}

/** Returns a JSON value as an object, or `undefined` if the value is not an object. */
export const objectOf = (value: unknown): Members | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value as Members : undefined

/** Returns a JSON value as text, or `undefined` if the value is not a string. */
export const textOf = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

const longestExcerpt = 200

/** Returns the beginning of a body, on one line and without HTML tags. Returns undefined if nothing is left to show. */
export const excerptOf = (body: Buffer): string | undefined => {
  const text = oneLine(
    body.subarray(0, 4096).toString("utf8").replaceAll(/<(?:style|script)[^]*?<\/(?:style|script)>|<[^<>]*>/gi, " ")
  )
  return text === "" ? undefined : text.slice(0, longestExcerpt)
}

/** Returns remote text without the characters that a terminal or a log would interpret. */
export const plain = (text: string): string => oneLine(text).slice(0, longestText)

const urn = /^urn:ietf:params:acme:error:/

const typeOf = (members: Members): string => plain(textOf(members["type"]) ?? "").replace(urn, "").slice(0, longestType)

const identifierOf = (members: Members): Identifier | undefined => {
  const { type = "dns", value } = objectOf(members["identifier"]) ?? {}
  return typeof type === "string" && typeof value === "string" ? { type: plain(type), value: plain(value) } : undefined
}

const mostSubproblems = 10

/**
 * Turns a problem document into a failure. In the detail of the failure, the text of each subproblem follows its
 * identifier.
 */
export const problemIn = (
  problem: unknown,
  status: number | undefined
): Pick<UpstreamRefused, "type" | "detail" | "identifier" | "subproblems"> => {
  const members = objectOf(problem) ?? {}
  const own = textOf(members["detail"]) ?? ""
  const parts = Array.isArray(members["subproblems"]) ? members["subproblems"] as ReadonlyArray<unknown> : []
  const subproblems = parts.slice(0, mostSubproblems).map((part): Subproblem => {
    const members = objectOf(part) ?? {}
    return {
      type: typeOf(members),
      detail: plain(textOf(members["detail"]) ?? "?").slice(0, longestPart),
      identifier: identifierOf(members) ?? { type: "dns", value: "?" }
    }
  })
  const more = subproblems.map(({ detail, identifier }) => `${identifier.value}: ${detail}`)
  return {
    type: typeOf(members),
    detail: plain([own === "" ? `status ${status ?? "?"}` : own, ...more].join("; ")),
    ...subproblems.length === 0 ? {} : { subproblems },
    identifier: identifierOf(members)
  }
}

/** Ten years, in seconds. No wait is that long, and a date that lies so far ahead can still be computed. */
const longestWait = 315_360_000

/** Reads a Retry-After header (RFC 9110 section 10.2.3). Its value is a number of seconds, or a date. */
export const retryAfterOf = (text: string | undefined, now: number): number | undefined => {
  if (text === undefined) return undefined
  const seconds = /^-?\d+$/.test(text) ? Number(text) : (Date.parse(text) - now) / 1000
  return Number.isFinite(seconds) ? Math.min(Math.max(0, seconds), longestWait) : undefined
}

/**
 * Returns whether the members are a problem document (RFC 9457). Either the media type or a problem type of RFC 8555
 * shows this.
 */
export const isProblem = (members: Members, mediaType = ""): boolean =>
  /^application\/problem\+json\s*(?:;|$)/i.test(mediaType) || urn.test(textOf(members["type"]) ?? "")

/** Returns the word that the metrics use for an answer. */
export const resultOf = ({ body, headers, status }: WebAnswer): UpstreamResult => {
  if (status < 400) return status >= 200 && status < 300 ? "ok" : "failed"
  const members = objectOf(parsed(body))
  const type = members !== undefined && isProblem(members, headers["content-type"]) ? typeOf(members) : ""
  if (status === 429 || type === "rateLimited") return "limited"
  if (type === "badNonce") return "bad_nonce"
  return status < 500 ? "refused" : "failed"
}

/**
 * Returns the URLs with a relation that a Link header names (RFC 8288). Node.js joins several headers with commas.
 */
export const linkedBy = (
  relation: "next" | "alternate",
  links: ReadonlyArray<string> | string | undefined
): ReadonlyArray<string> => {
  const text = typeof links === "string" ? links : links?.join(", ") ?? ""
  const pattern = new RegExp(`<([^<>]*)>\\s*;\\s*rel="?${relation}"?(?=\\s*[;,]|\\s*$)`, "gi")
  return [...text.matchAll(pattern)].map(([, url = ""]) => url)
}
