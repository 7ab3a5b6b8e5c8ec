import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { sha256 } from "../../../crypto/Digest.ts"
import { Entropy } from "../../../crypto/Entropy.ts"
import { BadRequest } from "../../../domain/OperatorError.ts"
import { LinkRefused, linkSeconds } from "../../../domain/PasswordLink.ts"
import { emit } from "../../../domain/words/Log.ts"
import { isLoopbackHost } from "../../../engine/net/SocketAddress.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { Passwords } from "../../../services/operators/Passwords.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import * as audit from "../../../store/AuditRows.ts"
import type { FoundLink } from "../../../store/operators/PasswordLinkRows.ts"
import * as links from "../../../store/operators/PasswordLinkRows.ts"
import * as sessions from "../../../store/operators/SessionRows.ts"
import * as users from "../../../store/operators/Users.ts"
import type { AtKeyboard, Operator } from "../../Operator.ts"
import { actorFields, actorOf } from "../../Operator.ts"
import * as guesses from "./Guesses.ts"
import type { Requester } from "./Identity.ts"
import type { SignInSettings } from "./LoginLimiter.ts"
import * as limiter from "./LoginLimiter.ts"
import type { PasswordSettings } from "./NewPassword.ts"
import { accepted } from "./NewPassword.ts"
import { credentialChanged } from "./Notices.ts"
import { changing } from "./OperatorChange.ts"
import * as operators from "./Operators.ts"

/*
 * Links with which operators set their passwords in a browser (docs/contribute/decisions/admin.md, "Password links").
 */

/** The token of a link. It is printed once, and only its hash is stored. */
type LinkToken = Redacted.Redacted<string>

const tokenForm = /^[A-Za-z0-9_-]{43}$/

/** Returns why no link can work with a configuration, or undefined if links work. */
export const faultOfLinks = ({ base_url, enabled }: Pick<Config["admin"], "base_url" | "enabled">) =>
  !enabled
    ? "admin.enabled is off, so that nothing serves the panel."
    : isLoopbackHost(new URL(base_url).hostname)
    ? undefined
    : `A link is good on the machine of the service alone, and admin.base_url is ${base_url}.`

/**
 * Makes a link for an operator, which replaces an earlier one. Only the command line and the start of the service call
 * this function: there, access to the database is the credential. The token is in the fragment of the URL, which no
 * browser sends, so that no log has it.
 */
export const make = Effect.fn("PasswordLinks.make")(function*(
  { admin }: Pick<Config, "admin">,
  operator: AtKeyboard,
  username: string
) {
  const fault = faultOfLinks(admin)
  if (fault !== undefined) {
    return yield* new BadRequest({ detail: `${fault} Use \`acme-svc admin user passwd ${username}\`.` })
  }
  const { token } = yield* Entropy
  const secret = yield* token
  const expiresAt = (yield* currentSeconds) + linkSeconds
  const target_username = yield* changing(operator, username, (target) =>
    Effect.gen(function*() {
      if (target.status !== "active") {
        return yield* new BadRequest({
          detail: `The operator ${target.username} is disabled; enable the operator first.`
        })
      }
      yield* links.put({ userId: target.id, tokenHash: sha256(secret), expiresAt })
      const detail = { target: target.username }
      yield* audit.insert({ event: "operator_password_link_created", ...actorOf(operator), detail })
      return target.username
    }))
  yield* emit("admin_password_link_created", { ...actorFields(operator), target_username })
  return { username: target_username, url: Redacted.make(`${admin.base_url}/ui/link#${secret}`), expiresAt }
}, Effect.uninterruptible)

/** The name of the operator that {@link createFirst} makes. */
const firstName = "admin"

/**
 * Creates the first operator, an admin whose password nobody knows, and stores that a link is owed. Returns the name,
 * or undefined if there is an operator already.
 */
export const createFirst = Effect.fn("PasswordLinks.createFirst")(function*(
  config: PasswordSettings,
  operator: AtKeyboard
) {
  if ((yield* users.count({ status: undefined, role: undefined })) > 0) return undefined
  const { token } = yield* Entropy
  const of = { username: firstName, role: "admin", contact: undefined, needsLink: true } as const
  const made = Effect.flatMap(
    token,
    (text) => operators.create(config, operator, { ...of, password: Redacted.make(text) })
  )
  // A random password may contain a short word that the rules refuse.
  return (yield* Effect.retry(made, { times: 9, while: ({ _tag }) => _tag === "WeakPassword" })).username
}, Effect.catchTag("NameTaken", () => Effect.undefined)) // Another process has made the operator meanwhile.

/** Returns the reason for which a link is not good now. */
const faultOf = (found: FoundLink, now: number) =>
  found.usedAt !== undefined
    ? "used"
    : found.expiresAt === undefined || found.expiresAt <= now
    ? "expired"
    : found.status !== "active"
    ? "disabled"
    : undefined

const refused = (reason: LinkRefused["reason"], { client }: Requester, username?: string) =>
  Effect.andThen(
    emit("admin_password_link_refused", { username, client_ip: client.ip, reason }),
    new LinkRefused({ reason, username })
  )

/** Refuses a request that did not come from a browser on the machine of the service. */
export const refuseFromElsewhere = (reason: "elsewhere" | "proxied", requester: Requester) => refused(reason, requester)

/**
 * Finds the operator of a token. The attempt counts like a sign-in from the same address. If the token is good, the
 * caller undoes this count with `release`. Every token is looked up by its hash, so that the answer takes equally long
 * for wrong and right tokens.
 */
const looked = Effect.fnUntraced(function*(settings: SignInSettings, token: LinkToken, requester: Requester) {
  const counted = yield* limiter.takeOf(settings, requester)
  const given = Redacted.value(token)
  const tokenHash = sha256(given)
  const found = yield* links.find(tokenHash)
  if (found === undefined || !tokenForm.test(given)) return yield* refused("unknown", requester)
  const fault = faultOf(found, yield* currentSeconds)
  if (fault !== undefined) return yield* refused(fault, requester, found.username)
  return { username: found.username, tokenHash, release: limiter.giveBack(counted) }
})

/** Returns the name of the operator to whom a link belongs, if the link is good. The link stays good. */
export const open = Effect.fn("PasswordLinks.open")(function*(
  settings: SignInSettings,
  token: LinkToken,
  requester: Requester
) {
  const { release, username } = yield* looked(settings, token, requester)
  yield* release
  return username
}, (attempt) => Effect.uninterruptible(Effect.catchTag(attempt, "StorageFailed", limiter.uncounted)))

/**
 * Sets the password of the operator to whom a link belongs, ends the operator's sessions, and uses the link up. If the
 * same link is used twice at once, exactly one of the requests sets the password. Returns the name of the operator.
 */
export const setPassword = Effect.fn("PasswordLinks.setPassword")(function*(
  config: PasswordSettings,
  { password, token }: { readonly password: Redacted.Redacted<string>; readonly token: LinkToken },
  requester: Requester
) {
  const { release, tokenHash, username } = yield* looked(config.admin, token, requester)
  const chosen = yield* Effect.tapError(Effect.fromResult(accepted(config, username, password)), () => release)
  const hash = yield* Effect.tapError(
    Effect.flatMap(Passwords, (passwords) => passwords.hash(Redacted.value(chosen))),
    () => release
  )
  const now = yield* currentSeconds
  const operator: Operator = { kind: "admin", id: username, client: requester.client, surface: requester.surface }
  const ended = yield* transaction(Effect.gen(function*() {
    const user = yield* users.lock(username)
    // Meanwhile the link was used or replaced, or its operator was disabled or deleted.
    if (user?.status !== "active" || (yield* links.use(tokenHash, now))?.userId !== user.id) return undefined
    yield* users.setPassword(user.id, hash, now)
    yield* guesses.forget(user)
    const ended = yield* sessions.endAllOf(user.id)
    const detail = { target: user.username, sessions_revoked: ended, via: "link" as const }
    yield* audit.insert({ event: "operator_password_changed", ...actorOf(operator), detail })
    yield* credentialChanged(operator, user, "password")
    yield* release
    return ended
  }))
  if (ended === undefined) {
    const found = yield* links.find(tokenHash)
    return yield* refused(found === undefined ? "unknown" : faultOf(found, now) ?? "unknown", requester, username)
  }
  yield* emit("admin_operator_password_changed", {
    ...actorFields(operator),
    target_username: username,
    sessions: ended
  })
  return username
}, (attempt) => Effect.uninterruptible(Effect.catchTag(attempt, "StorageFailed", limiter.uncounted)))

/** Returns the name of an operator who needs a link, because nobody knows the operator's password. */
export const owed = links.owed
