import { Effect, Option } from "effect"
import type { Answer, Request } from "../../src/engine/http/Message.ts"
import type { AcmeKey, ProblemBody } from "../support/AcmeSession.ts"
import { bindingOf } from "../support/Binding.ts"
import { posted, requestOf, signed, urlOf } from "../support/Handle.ts"
import type { Authorities } from "./Authorities.ts"
import type { Asking, Grants } from "./Grants.ts"
import { accountKeyNamed } from "./Keys.ts"
import type { Ledger } from "./Ledger.ts"
import type { Random } from "./Random.ts"
import type { Handed, ScopeOperator } from "./ScopeOperator.ts"
import type { World } from "./World.ts"

/** The environment of a client. */
export interface Surroundings {
  readonly name: string
  readonly random: Random
  readonly world: World
  readonly ledger: Ledger
  readonly grants: Grants
  /** Makes the credentials with which accounts are bound. Absent if no account needs one. */
  readonly operator: ScopeOperator | undefined
  /** The names of the kinds of certificates that the service offers. */
  readonly kinds: ReadonlyArray<string>
  /** Sends a request to any process. Returns nothing if no answer arrived. */
  readonly send: (request: Request) => Effect.Effect<Answer | undefined>
  readonly note: (line: string) => void
  readonly violated: (what: string) => void
  /** How often the client repeats requests, disconnects and loses its state. */
  readonly mischief: number
  /** The certificate of the CA, in PEM. */
  readonly authorities: Authorities
}

/** The number of times that an unanswered request is sent again. */
export const patience = 60
/** The number of credentials that a client tries. */
const mostCredentials = 12
/** How often the operator changes or deletes a credential while a request of one of its accounts runs. */
const meddling = 0.2
/** Returns the id at the end of a URL. */
export const idOf = (url: string): string => url.split("/").at(-1) ?? ""
/** Returns the path of a URL. */
export const pathOf = (url: string): string => new URL(url).pathname
/** Returns the body of an answer. */
export const jsonOf = <A>(answer: Answer): A => JSON.parse(String(answer.body)) as A

/** Returns the last part of the type of a problem, with its detail. */
const refusalOf = (answer: Answer) => {
  const { detail = "", type = "" } = jsonOf<ProblemBody>(answer)
  return { type: type.split(":").at(-1) ?? "", detail }
}

/** An account that signs and sends requests, keeps nonces, and repeats requests whose answers were lost. */
export class Session {
  protected readonly at: Surroundings
  readonly #profile: string
  protected key: AcmeKey
  protected kid: string | undefined
  #keys = 0
  #nonce: string | undefined

  constructor(surroundings: Surroundings) {
    this.at = surroundings
    this.#profile = surroundings.random.pick(["default", "other"])
    this.key = this.nextKey()
  }

  /** Returns a key that the account has not used before. */
  protected nextKey(): AcmeKey {
    return accountKeyNamed(`${this.at.name}/${this.#keys++}`)
  }

  /** Returns the URL of a resource in its profile. */
  protected target(path: string): string {
    return `/profile/${this.#profile}${path}`
  }

  /** Waits a random time, from `least` to `most` milliseconds. */
  protected readonly pause = (least: number, most: number) =>
    Effect.suspend(() => Effect.sleep(this.at.random.between(least, most)))

  /** Keeps the nonce of an answer, for any request. */
  #heard(answer: Answer | undefined): void {
    const { ledger, violated } = this.at
    const nonce = answer?.headers["replay-nonce"]
    if (typeof nonce !== "string") return
    if (ledger.nonces.has(nonce)) violated(`the nonce ${nonce} was handed out twice`)
    ledger.nonces.add(nonce)
    this.#nonce = nonce
  }

  private readonly freshNonce = Effect.gen({ self: this }, function*() {
    for (let tries = 0; tries < patience; tries++) {
      const kept = this.#nonce
      this.#nonce = undefined
      if (kept !== undefined) return kept
      this.#heard(yield* this.at.send(requestOf("HEAD", this.target("/newNonce"))))
      if (this.#nonce === undefined) yield* this.pause(200, 2000)
    }
    return undefined
  })

  /** Sends one request with the given signer. Returns nothing if no answer arrived. */
  #once(request: Request, nonce: string) {
    const { ledger, mischief, note, random, send, violated } = this.at
    const judged = Effect.map(send(request), (answer) => {
      if (answer === undefined) return undefined
      this.#heard(answer)
      const isStale = String(answer.body).includes("acme:error:badNonce")
      note(`${this.at.name} ${request.path.replace(/[^/]{20,}/, "*")} ${answer.status}${isStale ? " badNonce" : ""}`)
      // A request that is refused may have been refused before the nonce was checked.
      if (answer.status < 300) {
        if (ledger.spent.has(nonce)) violated(`the nonce ${nonce} was accepted twice`)
        ledger.spent.add(nonce)
      }
      return answer
    })
    if (random.chance(mischief)) {
      // Sends the same bytes twice. Whatever the second answer is, the request must take effect only once.
      return Effect.map(Effect.all([judged, judged], { concurrency: 2 }), ([one, other]) => {
        const isGood = (answer: Answer | undefined) => answer !== undefined && answer.status < 300
        return isGood(one) ? one : isGood(other) ? other : one ?? other
      })
    }
    if (random.chance(mischief)) {
      return Effect.map(Effect.timeoutOption(judged, random.between(0, 40)), Option.getOrUndefined)
    }
    return judged
  }

  /** Sends a signed request until there is an answer that is neither badNonce nor a 5xx. */
  protected post(
    path: string,
    payload: object | undefined,
    by: { readonly key: AcmeKey; readonly kid: string | undefined } = { key: this.key, kid: this.kid },
    asking?: Asking
  ): Effect.Effect<Answer | undefined> {
    return Effect.gen({ self: this }, function*() {
      for (let tries = 0; tries < patience; tries++) {
        const nonce = yield* this.freshNonce
        if (nonce === undefined) return undefined
        const header = by.kid === undefined ? { jwk: by.key.jwk } : { kid: by.kid }
        const body = signed(by.key, { ...header, url: urlOf(path), nonce }, payload)
        const answered = asking === undefined ? undefined : this.at.grants.asked(asking)
        const answer = yield* this.#once(posted(path, body), nonce)
        if (answer !== undefined) {
          answered?.({
            status: answer.status,
            ...answer.status < 400 || answer.status >= 500 ? {} : { refusal: refusalOf(answer) }
          })
        }
        if (answer !== undefined && answer.status < 500 && !String(answer.body).includes("acme:error:badNonce")) {
          if (answer.status < 300 && by.kid !== undefined && this.at.ledger.deactivated.has(idOf(by.kid))) {
            this.at.violated(`the deactivated account ${by.kid} was served at ${path}`)
          }
          return answer
        }
        yield* this.pause(100, 3000)
      }
      return undefined
    })
  }

  /** Sends a request whose verdict depends on what the credential of the account permits. */
  protected order(
    path: string,
    payload: object,
    wanted: { readonly names: ReadonlyArray<string>; readonly kind: string | undefined },
    order?: string
  ): Effect.Effect<Answer | undefined> {
    const { operator, random } = this.at
    const account = idOf(this.kid ?? "")
    const sent = this.post(path, payload, undefined, { by: account, subject: order ?? account, wanted })
    if (operator === undefined || !random.chance(meddling)) return sent
    const meddle = operator.meddle(account, order === undefined ? 0.1 : 0.5)
    return Effect.map(Effect.all([sent, meddle], { concurrency: 2 }), ([answer]) => answer)
  }

  /** Registers an account for a key. Returns its URL, or undefined if the service refuses. */
  readonly #registered = (key: AcmeKey, credential: Handed | undefined) =>
    Effect.gen({ self: this }, function*() {
      const path = this.target("/newAccount")
      const payload = {
        termsOfServiceAgreed: true,
        ...credential && { externalAccountBinding: bindingOf(credential, key.jwk, urlOf(path)) }
      }
      const isAccepted = credential !== undefined && [undefined, this.#profile].includes(credential.profile)
      const asking = isAccepted ? { by: credential.kid, subject: credential.kid, wanted: undefined } : undefined
      const answer = yield* this.post(path, payload, { key, kid: undefined }, asking)
      const location = answer?.headers["location"]
      if (answer === undefined || answer.status > 201 || typeof location !== "string") return undefined
      if (credential !== undefined && !isAccepted) {
        this.at.violated(`the account ${location} was bound with a credential of another profile`)
      }
      this.at.ledger.accounts.add(idOf(location))
      return location
    })

  /** Registers an account, unless the service refuses. Tries several credentials if the service needs one. */
  protected readonly register = Effect.gen({ self: this }, function*() {
    const { operator, random } = this.at
    if (operator === undefined) {
      this.kid = yield* this.#registered(this.key, undefined)
      return this.kid !== undefined
    }
    for (let tries = 0; tries < mostCredentials; tries++) {
      yield* this.pause(0, 3000)
      if (operator.handed.length === 0) continue
      const credential = random.pick(operator.handed)
      // Other machines may register with the same credential at the same moment.
      const others = Array.from({ length: random.pick([0, 0, 1, 3]) }, () => this.nextKey())
      const [own] = yield* Effect.forEach([this.key, ...others], (key) => this.#registered(key, credential), {
        concurrency: "unbounded"
      })
      this.kid = own
      if (own !== undefined) return true
    }
    return false
  })
}
