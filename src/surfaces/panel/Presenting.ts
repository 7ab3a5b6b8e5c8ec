import * as Effect from "effect/Effect"
import { sha256 } from "../../crypto/Digest.ts"
import type { OperatorError } from "../../domain/OperatorError.ts"
import type { OperatorProblem } from "../../domain/OperatorProblem.ts"
import { operatorProblemOf } from "../../domain/OperatorProblem.ts"
import { permits } from "../../domain/OperatorRole.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Answer, Request } from "../../engine/http/Message.ts"
import { header } from "../../engine/http/Message.ts"
import type { Unreadable } from "../../engine/sql/Unreadable.ts"
import { saidOfCode } from "../../operations/operator/Catalogue.ts"
import type { Sender } from "../operator/gate/OperatorChecks.ts"
import { isChange } from "../operator/gate/OperatorChecks.ts"
import { urlOf } from "./Listing.ts"
import { placesFor } from "./Navigation.ts"
import type { Rendering } from "./Rendering.ts"
import type { Page, Reply } from "./Route.ts"
import type { Statics } from "./Statics.ts"

/*
 * Fragments that reload themselves while their content can still change (docs/contribute/decisions/panel.md, "Live
 * refresh").
 */

const quickPolls = 30
const polls = 210
const steadySeconds = 15

/** A poll of a fragment: its number, and the tag of the fragment that the browser has. */
export interface Poll {
  readonly count: number
  readonly tag: string
}

/** Returns the poll in a request, if the request is a poll. */
const pollOf = (query: URLSearchParams): Poll | undefined => {
  const [count, tag] = [query.get("poll"), query.get("tag")]
  return count === null || !/^\d{1,3}$/.test(count) ? undefined : { count: Number(count), tag: tag ?? "" }
}

/**
 * Returns a digest of the data that a fragment shows. Words such as `3 minutes ago` are added later and do not change
 * the digest.
 */
const tagOf = (data: unknown): string => sha256(JSON.stringify(data)).slice(0, 16)

const othersOf = (query: URLSearchParams) =>
  Object.fromEntries([...query].filter(([name]) => name !== "poll" && name !== "tag"))

/**
 * Returns the next poll of a fragment: its URL, and the number of seconds until it. With `isOver`, the page shows a
 * button instead. The polls of a steady page have the number 0 and never end.
 */
const nextPoll = (path: string, query: URLSearchParams, tag: string, isSteady: boolean) => {
  const count = pollOf(query)?.count ?? 0
  if (isSteady) {
    return { isOver: false as const, url: urlOf(path, { ...othersOf(query), poll: "0", tag }), seconds: steadySeconds }
  }
  if (count >= polls) return { isOver: true as const }
  return {
    isOver: false as const,
    url: urlOf(path, { ...othersOf(query), poll: String(count + 1), tag }),
    seconds: count < quickPolls ? 2 : 10
  }
}

/*
 * Turns replies into answers: whole pages, fragments of pages, and refusals at the place where the reader expects them.
 */

/** Returns whether only the fragment is requested. A browser that goes back to an earlier page needs the whole page. */
const isFragment = (request: Request): boolean =>
  header(request, "hx-request") === "true" && header(request, "hx-history-restore-request") !== "true"

/** Returns whether the script of a page sent the request, for a form or a link. */
const isScripted = (request: Request): boolean => header(request, "hx-request") === "true"

/** Returns whether a fragment sent the request to reload itself. */
const isRefresh = (request: Request): boolean => header(request, "x-panel-refresh") === "1"

const html = (status: number, body: string, headers: Answer["headers"] = {}): Answer => ({
  status,
  headers: { "content-type": "text/html; charset=utf-8", ...headers },
  body
})

/**
 * Returns the path to return to after a sign-in. Only a page of the panel is accepted, so that no text can redirect to
 * another host.
 */
export const ownPath = (text: string | null | undefined): string | undefined =>
  text !== null && text !== undefined && /^\/ui\/(?!login)[A-Za-z0-9._~:@/?&=%+-]{0,1000}$/.test(text) &&
    !/\/[./]/.test(text)
    ? text
    : undefined

const currentPath = (request: Request): string | undefined => {
  if (!isScripted(request)) return request.method === "GET" ? request.target : undefined
  const shown = header(request, "hx-current-url")
  return shown !== undefined && URL.canParse(shown) ? new URL(shown).pathname + new URL(shown).search : undefined
}

const goTo = (request: Request, to: string, headers: Answer["headers"] = {}): Answer =>
  isScripted(request)
    ? { status: 204, headers: { ...headers, "hx-redirect": to } }
    : { status: 303, headers: { ...headers, location: to } }

/**
 * Redirects a sender without a complete session to the sign-in page. Returns undefined if signing in would not resolve
 * the error.
 */
export const bounce = (request: Request, error: OperatorError): Answer | undefined => {
  switch (error._tag) {
    case "SessionInvalid":
    case "SessionExpired":
    case "SessionIdle": {
      if (isRefresh(request)) return { status: 401, headers: {} }
      const to = urlOf("/ui/login", {
        next: ownPath(currentPath(request)),
        why: error._tag === "SessionInvalid" ? undefined : "ended"
      })
      return goTo(request, to)
    }
    case "MfaPending":
      return goTo(request, "/ui/login/verify")
    default:
      return undefined
  }
}

/** Returns whether a refusal says that the record has changed since its page was shown. */
export const isConflict = (error: OperatorError): boolean => operatorProblemOf(error).status === 409

/** The parameters for messages that a page shows only once. */
const saidOnce = ["done", "removed", "due", "refused", "remaining"]

/**
 * Returns a request for the page from which a form was sent. Returns undefined if no script sent the form, because then
 * the page is not known.
 */
export const pageOfForm = (request: Request): Request | undefined => {
  const shown = isScripted(request) && isChange(request.method) ? ownPath(currentPath(request)) : undefined
  if (shown === undefined) return undefined
  const [path = "", query = ""] = shown.split("?")
  const parameters = [...new URLSearchParams(query)].filter(([name]) => !saidOnce.includes(name))
  return {
    ...request,
    method: "GET",
    path,
    target: urlOf(path, Object.fromEntries(parameters)),
    headers: { ...request.headers, "hx-request": undefined }
  }
}

/** Returns the path of the last page of a list, if a later page was requested. */
const lastPageOf = ({ data: { list } }: Page): string | undefined =>
  typeof list === "object" && list !== null && "last" in list && typeof list.last === "string" ? list.last : undefined

/** How the data of a page was read. */
export interface ReadFacts {
  /** The rows that the page should show but that cannot be read correctly. */
  readonly unreadable: ReadonlyArray<Unreadable>
  /** How old the data may be, in seconds, if a standby has answered. */
  readonly lagSeconds: number | undefined
}

/** Returns a lag in words, for the page. */
const lagWords = (seconds: number | undefined): string | undefined => {
  if (seconds === undefined) return undefined
  return seconds < 1 ? "less than a second" : `at most ${Math.ceil(seconds)} s`
}

/** Turns replies and refusals into answers. */
export interface Presenting {
  /** Makes the answer from a reply. */
  readonly answer: (request: Request, reply: Reply, sender: Sender, read: ReadFacts) => Effect.Effect<Answer>
  /**
   * Makes the answer to a refused form: the page with the form in its present state, and the refusal above the form.
   */
  readonly conflict: (request: Request, page: Page, error: OperatorError, sender: Sender) => Effect.Effect<Answer>
  readonly refusal: (request: Request, error: OperatorError, sender: Sender) => Effect.Effect<Answer>
  /**
   * Makes a page that reloads itself once. The second request then comes from this site, so the browser sends the
   * cookie with it.
   */
  readonly arrival: (request: Request) => Effect.Effect<Answer>
}

const shellOf = (request: Request, sender: Sender, statics: Statics, version: string) => ({
  statics: statics.urls,
  version,
  path: request.path,
  ...(sender?.kind === "session"
    ? {
      user: { username: sender.username, role: sender.role },
      csrf: sender.csrfToken,
      canWrite: permits(sender.role, "operator"),
      isAdmin: sender.role === "admin",
      places: placesFor(sender.role, request.path),
      search: new URLSearchParams(request.target.slice(request.path.length)).get("q") ?? ""
    }
    : {})
})

/** Returns the functions that make answers from templates. Every page shows `version`, the version of the service. */
export const makePresenting = (rendering: Rendering, statics: Statics, version: string): Presenting => {
  const plainly = (status: number, message: string) =>
    html(status, `<!doctype html><html lang="en"><title>acme-svc</title><p>${message}</p></html>`)

  const rendered = (
    request: Request,
    { data, headers, isLive = false, status = 200, template, title }: Page,
    sender: Sender,
    { lagSeconds, refused, unreadable = [] }: Partial<ReadFacts> & { readonly refused?: OperatorProblem } = {}
  ) => {
    let live: ReturnType<typeof nextPoll> | undefined
    if (isLive) {
      const tag = tagOf(data)
      const query = new URLSearchParams(request.target.slice(request.path.length))
      if (isRefresh(request) && pollOf(query)?.tag === tag) return Effect.succeed<Answer>({ status: 204, headers: {} })
      live = nextPoll(request.path, query, tag, isLive === "steady")
    }
    const values = {
      ...data,
      ...(live === undefined ? {} : { live }),
      shell: shellOf(request, sender, statics, version),
      title,
      ...(refused === undefined ? {} : { refused }),
      ...(unreadable.length === 0 ? {} : { unreadable }),
      ...(lagSeconds === undefined ? {} : { lag: lagWords(lagSeconds) }),
      layout: isFragment(request) ? "fragment.html" : "layout.html"
    }
    return rendering.render(template, values).pipe(
      Effect.map((text) => html(status, text, headers)),
      Effect.catch((fault) =>
        Effect.as(
          emit("request_handler_panicked", { error: fault.message }),
          plainly(500, "This page cannot be shown: its template failed. The log says where.")
        )
      )
    )
  }

  const refusal: Presenting["refusal"] = (request, error, sender) => {
    const { code, message, retryAfter, status } = operatorProblemOf(error)
    const more = {
      ...(retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }),
      ...(error._tag === "MethodRefused" ? { allow: error.allow.join(", ") } : {})
    }
    if (isRefresh(request)) return Effect.succeed({ status, headers: more })
    const link = error._tag === "ForeignOrigin" ? { link: error.panel } : {}
    const problem = { status, code, message, requestId: request.id, ...link }
    // A refusal is shown beside its form. A link or a filter has no place for a refusal, and a failure of the service
    // replaces the whole page.
    const isBeside = isScripted(request) && isChange(request.method) && status < 500
    const place = isBeside ? "find .refusal" : status < 500 ? "#main" : "body"
    const placed = isScripted(request) ? { "hx-retarget": place, "hx-reswap": "innerHTML" } : {}
    const view: Page = {
      _tag: "Page",
      template: isBeside ? "refusal" : "error",
      title: status === 404 ? "Not found" : "Refused",
      data: { problem, said: saidOfCode(code) },
      status,
      headers: { ...placed, ...more }
    }
    return rendered(request, view, sender)
  }

  return {
    refusal,
    arrival: (request) => {
      const view: Page = { _tag: "Page", template: "arrival", title: "Opening", data: { target: request.target } }
      return rendered(request, view, undefined)
    },
    conflict: (request, page, error, sender) => {
      const problem = operatorProblemOf(error)
      const placed = { "hx-retarget": "#main", "hx-reselect": "#main", "hx-reswap": "outerHTML" }
      return rendered(request, { ...page, status: problem.status, headers: placed }, sender, { refused: problem })
    },
    answer: (request, reply, sender, read) => {
      switch (reply._tag) {
        case "Page": {
          const last = lastPageOf(reply)
          return last === undefined
            ? rendered(request, reply, sender, read)
            : Effect.succeed(goTo(request, last))
        }
        case "Moved":
          return Effect.succeed(goTo(request, reply.to, reply.headers))
        case "Sent":
          return Effect.succeed(reply.answer)
      }
    }
  }
}
