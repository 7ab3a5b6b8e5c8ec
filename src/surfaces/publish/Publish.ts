import * as Effect from "effect/Effect"
import type { AcmeError } from "../../domain/AcmeError.ts"
import { DeadlineExceeded, MethodNotAllowed, NoSuchPath, ServerInternal } from "../../domain/AcmeError.ts"
import type { ProxySettings } from "../../domain/ClientAddress.ts"
import { clientAddress } from "../../domain/ClientAddress.ts"
import { isAcmeError, problemOf, retryAfter } from "../../domain/Problem.ts"
import { tagged, unlessHeld } from "../../engine/http/EntityTag.ts"
import type { Shed } from "../../engine/http/HttpRefused.ts"
import { shed } from "../../engine/http/HttpRefused.ts"
import type { Answer, App, Request } from "../../engine/http/Message.ts"
import { unmatched } from "../../engine/http/Message.ts"
import type { FairSemaphore } from "../../engine/net/FairSemaphore.ts"
import { publications } from "../../operations/acme/Publications.ts"

type Publication = (typeof publications)[keyof typeof publications]

type Needs = Effect.Services<ReturnType<Publication["of"]>>
type Failure = Effect.Error<ReturnType<Publication["of"]>> | MethodNotAllowed | NoSuchPath | Shed

const known = new Map<string, Publication>(Object.entries(publications))

/**
 * Returns the served profile that a path names after `/profile/`, and the object that the profile publishes at the
 * path, with the id of a CA in the path.
 */
const placeOf = (profiles: ReadonlySet<string>, path: string) => {
  const [, profile, pattern] = /^\/profile\/([^/]+)(\/.+)$/.exec(path) ?? []
  if (profile === undefined || pattern === undefined || !profiles.has(profile)) return undefined
  const [, first = "", id = ""] = /^(\/[^/]+)\/([^/]+)$/.exec(pattern) ?? []
  const declared = id === "" ? pattern : `${first}/{id}`
  const publication = known.get(declared)
  return publication === undefined ? undefined : { profile, pattern: declared, id, publication }
}

/** Returns the same problem document as the ACME listener, so that both listeners answer a URL in the same way. */
const refusal = (error: AcmeError): Answer => {
  const problem = problemOf(error)
  const seconds = retryAfter(error)
  return {
    status: problem.status,
    headers: {
      "content-type": "application/problem+json",
      ...(seconds === undefined ? {} : { "retry-after": String(seconds) }),
      ...(error._tag === "MethodNotAllowed" ? { allow: error.allow } : {})
    },
    body: JSON.stringify(problem)
  }
}

/**
 * Serves GET and HEAD of the objects that profiles publish about their CAs, and nothing else. No credential is required
 * and no policy is applied, because access to the port is the permission.
 */
export const make = (profiles: ReadonlySet<string>, { proxies, slots, waitMillis }: {
  readonly proxies: ProxySettings
  /** Limits how many requests are handled at the same time. */
  readonly slots: FairSemaphore
  /** How long a request waits for a slot. */
  readonly waitMillis: number
}): App<Needs> => {
  const clientIp = clientAddress(proxies)
  const late = Effect.succeed(refusal(new DeadlineExceeded()))
  return {
    route: (received) => {
      const place = placeOf(profiles, received.path)
      const answered = (request: Request): Effect.Effect<Answer, Failure, Needs> => {
        if (place === undefined) return new NoSuchPath()
        if (request.method !== "GET" && request.method !== "HEAD") return new MethodNotAllowed({ allow: "GET, HEAD" })
        const { id, profile, publication: { mediaType, of } } = place
        return Effect.map(
          slots.takeWithin(waitMillis, of(profile, id), shed),
          (body) => unlessHeld(request, tagged(mediaType, body))
        )
      }
      return {
        facts: place === undefined ? {} : { profile: place.profile },
        pattern: place?.pattern ?? unmatched,
        clientIp: clientIp(received),
        handle: (request) =>
          Effect.catch(
            answered(request),
            (error) => Effect.succeed(refusal(isAcmeError(error) ? error : new ServerInternal({})))
          ),
        late: () => late
      }
    }
  }
}
