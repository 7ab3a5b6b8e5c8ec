import { generate } from "otplib"
import type { Held } from "./Client.ts"
import { check, clientOf, done, given, refused, sendRaw } from "./Client.ts"
import { otherReads, records } from "./Records.ts"

/*
 * An operator's program, which prints a line for each step and records every answer. The run compares the answers with
 * the document.
 */

const { password } = given
const held: Held = {}
const admin = clientOf(held)

const signIn = { username: "ann", password }
let secret = ""

const signingIn = async () => {
  const body = await done(admin.POST("/api/session", { body: signIn }))
  held.csrf = body.csrfToken
  return body
}

const session = async () => {
  await refused(admin.GET("/api/session"), 401, "session_invalid")
  const wrong = { ...signIn, password: "not hers at all" }
  await refused(admin.POST("/api/session", { body: wrong }), 401, "invalid_credentials")
  const body = await signingIn()
  check("user" in body && body.user.role === "admin", "ann is no admin")
  const label = { body: { label: "interop" } }
  await refused(admin.POST("/api/eab", { ...label, headers: { "x-csrf-token": "x" } }), 403, "csrf_failed")
  const sessions = await done(admin.GET("/api/account/sessions"))
  check(sessions.items.some(({ current }) => current === true), "no session is this one")
}

/** Returns the code of a time step that has not been used yet. The service also accepts the next step. */
const codeIn = (seconds: number) => generate({ secret, epoch: Math.floor(Date.now() / 1000) + seconds })

const secondFactor = async () => {
  await refused(admin.POST("/api/mfa/totp", { body: { password: "not hers at all" } }), 403, "step_up_failed")
  const begun = await done(admin.POST("/api/mfa/totp", { body: { password } }))
  secret = begun.secret
  await refused(admin.POST("/api/mfa/totp/confirm", { body: { code: "abcdef" } }), 400, "invalid_code")
  const { recoveryCodes } = await done(admin.POST("/api/mfa/totp/confirm", { body: { code: await codeIn(0) } }))
  check(recoveryCodes.length === 10, "there are not ten recovery codes")
  await refused(admin.DELETE("/api/mfa/totp", { body: { password: "not hers at all" } }), 403, "step_up_failed")
  await done(admin.DELETE("/api/session"))
  const body = await signingIn()
  check("mfaRequired" in body && body.step === "verify", "no second factor was asked for")
  await refused(admin.GET("/api/orders"), 401, "mfa_pending")
  check((await done(admin.GET("/api/session/mfa"))).step === "verify", "another step is asked for")
  await done(admin.DELETE("/api/session/mfa"))
  await refused(admin.GET("/api/session/mfa"), 401, "session_invalid")
  await signingIn()
  const whole = await done(admin.POST("/api/session/mfa", { body: { code: await codeIn(30) } }))
  held.csrf = whole.csrfToken
  const codes = await done(admin.POST("/api/mfa/recovery-codes", { body: { password } }))
  check((await done(admin.GET("/api/mfa"))).totpEnabled, "no factor is in force")
  await done(admin.DELETE("/api/session", { params: { query: { all: "true" } } }))
  await signingIn()
  const [code = ""] = codes.recoveryCodes
  held.csrf = (await done(admin.POST("/api/session/mfa", { body: { code } }))).csrfToken
  await done(admin.DELETE("/api/mfa/totp", { body: { password } }))
}

const tokens = async () => {
  const wanted = { password, name: "backup", role: "viewer" as const, expiresInDays: 1 }
  const minted = await done(admin.POST("/api/tokens", { body: wanted }))
  await refused(admin.POST("/api/tokens", { body: wanted }), 409, "name_taken")
  const program = clientOf({ token: minted.token })
  await done(program.GET("/api/orders"))
  await refused(program.POST("/api/eab", { body: { label: "no" } }), 403, "insufficient_role")
  await refused(program.GET("/api/session"), 403, "insufficient_role")
  check((await done(admin.GET("/api/tokens"))).items.some(({ id }) => id === minted.id), "the token is not listed")
  await done(admin.POST("/api/tokens/{id}/revoke", { params: { path: { id: minted.id } } }))
  await refused(program.GET("/api/orders"), 401, "session_invalid")
  const working = await done(admin.POST("/api/tokens", { body: { ...wanted, name: "deploy", role: "operator" } }))
  return clientOf({ token: working.token })
}

const operators = async () => {
  const params = { path: { username: "otto" } }
  const step = { params, body: { password } }
  check((await done(admin.GET("/api/operators"))).total === 3, "there are not three operators")
  await done(admin.GET("/api/operators/{username}", { params }))
  await done(admin.POST("/api/operators/{username}/role", { params, body: { password, role: "viewer" } }))
  await done(
    admin.POST("/api/operators/{username}/contact", { params, body: { password, contact: "otto@corp.example" } })
  )
  const sessions = await done(
    admin.GET("/api/operators/{username}/sessions", { params: { path: { username: "ann" } } })
  )
  const id = sessions.items[0]?.id ?? ""
  await refused(
    admin.POST("/api/operators/{username}/sessions/{id}/revoke", {
      params: { path: { ...params.path, id } },
      body: { password }
    }),
    404,
    "not_found"
  )
  await done(admin.POST("/api/operators/{username}/sessions/revoke", step))
  await done(admin.POST("/api/operators/{username}/totp/reset", step))
  await done(admin.POST("/api/operators/{username}/disable", step))
  await done(admin.POST("/api/operators/{username}/enable", step))
  const own = { params: { path: { username: "ann" } }, body: { password } }
  await refused(admin.POST("/api/operators/{username}/disable", own), 409, "self_target")
  await campaign(admin)
  const nobodys = { params: { path: { issuer: "0".repeat(64) } }, body: { password } }
  await refused(admin.POST("/api/cas/{issuer}/compromise", nobodys), 404, "not_found")
}

/** Starts a campaign that matches nothing, and does everything with it. */
const campaign = async (admin: ReturnType<typeof clientOf>) => {
  const filter = { profile: "default", name: "nothing.example" }
  const counted = await done(admin.POST("/api/campaigns/preview", { body: filter }))
  check(counted.matched === 0, "a certificate of nobody was counted")
  const revokeAt = "2099-01-01T00:00:00Z"
  const { id } = await done(admin.POST("/api/campaigns", { body: { ...filter, reason: "a test", revokeAt } }))
  const params = { path: { id } }
  await done(admin.GET("/api/campaigns"))
  await done(admin.GET("/api/campaigns/{id}", { params }))
  await done(admin.GET("/api/campaigns/{id}/silent", { params }))
  await done(admin.POST("/api/campaigns/{id}/confirm", { params, body: { password } }))
  await done(admin.POST("/api/campaigns/{id}/pause", { params }))
  await refused(admin.POST("/api/campaigns/{id}/pause", { params }), 409, "campaign_state")
  await done(admin.POST("/api/campaigns/{id}/resume", { params }))
  await done(admin.POST("/api/campaigns/{id}/end", { params }))
}

const ownAccount = async () => {
  const elsewhere: Held = {}
  const other = clientOf(elsewhere)
  await done(other.POST("/api/session", { body: signIn }))
  const sessions = await done(admin.GET("/api/account/sessions"))
  const id = sessions.items.find(({ current }) => current !== true)?.id ?? ""
  await done(admin.POST("/api/account/sessions/{id}/revoke", { params: { path: { id } } }))
  await refused(other.GET("/api/session"), 401, "session_invalid")
  await done(admin.POST("/api/account/contact", { body: { password, contact: "ann@corp.example" } }))
  const weak = { currentPassword: password, newPassword: "aaaaaaaaaaaaaa" }
  await refused(admin.POST("/api/account/password", { body: weak }), 400, "weak_password")
  await done(
    admin.POST("/api/account/password", { body: { currentPassword: password, newPassword: `${password}, again` } })
  )
}

/** Causes one error of each status that a client can cause by itself. */
const errors = async () => {
  const params = { path: { id: "01890a5d-ac96-774b-bcce-b302099a8057" } }
  await refused(admin.GET("/api/orders", { params: { query: { since: "yesterday" } } }), 400, "bad_request")
  await refused(clientOf({}).GET("/api/orders"), 401, "session_invalid")
  await refused(admin.GET("/api/orders/{id}", { params }), 404, "not_found")
  const put = await sendRaw("PUT", "/api/orders", held)
  check(put.status === 405 && put.headers.get("allow") === "HEAD, GET", "PUT was not refused")
  await refused(admin.POST("/api/eab", { body: { label: "x".repeat(70_000) } }), 413, "body_too_large")
  const headers = { "content-type": "text/plain" }
  await refused(admin.POST("/api/eab", { body: { label: "x" }, headers }), 415, "unsupported_media_type")
  const wrong = { username: "nobody", password: "nobody's" }
  for (let tries = 0; tries < 5; tries++) {
    const { response } = await admin.POST("/api/session", { body: wrong })
    if (response.status === 429) break
  }
  await refused(admin.POST("/api/session", { body: wrong }), 429, "rate_limited")
}

/** Signs in while a second factor is required of every operator. */
const forcedEnrolment = async () => {
  const half: Held = {}
  const viewer = clientOf(half)
  const body = await done(viewer.POST("/api/session", { body: { username: "vera", password } }))
  check("mfaRequired" in body && body.step === "enrol", "no factor was demanded")
  half.csrf = body.csrfToken
  await refused(viewer.POST("/api/session/mfa/totp/confirm", { body: { code: "123456" } }), 409, "mfa_not_pending")
  const begun = await done(viewer.POST("/api/session/mfa/totp"))
  const code = await generate({ secret: begun.secret })
  const whole = await done(viewer.POST("/api/session/mfa/totp/confirm", { body: { code } }))
  check(whole.recoveryCodes.length === 10, "there are not ten recovery codes")
  half.csrf = whole.csrfToken
  await refused(viewer.DELETE("/api/mfa/totp", { body: { password } }), 409, "mfa_required")
}

/** Signs in while another process holds the database. */
const busy = () => refused(clientOf({}).POST("/api/session", { body: signIn }), 503, "busy")

const step = async <A>(name: string, play: () => Promise<A>): Promise<A> => {
  const begun = performance.now()
  const tell = (error?: string) => {
    const told = { name, milliseconds: performance.now() - begun, ...error === undefined ? {} : { error } }
    process.stdout.write(`${JSON.stringify(told)}\n`)
  }
  try {
    const answer = await play()
    tell()
    return answer
  } catch (error) {
    tell(error instanceof Error ? error.stack : String(error))
    throw error
  }
}

const main = async () => {
  if (process.argv[2] === "busy") return step("503 while the database is held", busy)
  if (process.argv[2] === "forced") return step("second factor that is demanded", forcedEnrolment)
  await step("sign-in and CSRF token", session)
  await step("second factor", secondFactor)
  const program = await step("token", tokens)
  for (const [name, play] of Object.entries(records)) await step(name, () => play(program))
  await step("whatever else is read", () => otherReads(admin))
  await step("operators", operators)
  await step("own account", ownAccount)
  await step("400 401 404 405 413 415 429", errors)
}

main().then(undefined, () => {
  process.exitCode = 1
})
