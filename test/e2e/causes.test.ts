import { createHash, randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { AcmeError } from "../../src/domain/AcmeError.ts"
import { explainEnd } from "../../src/domain/Explanation.ts"
import type { OperatorError } from "../../src/domain/OperatorError.ts"
import type { CauseRecord } from "../../src/domain/ProblemRecords.ts"
import { operatorRecords, recordsOf } from "../../src/domain/ProblemRecords.ts"
import type { ValidationReason } from "../../src/domain/ValidationCause.ts"
import type { OrderBody } from "../support/AcmeSession.ts"
import { AcmeSession, makeAcmeKey, problemType } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { builtServer } from "../support/Databases.ts"
import type { Ground } from "../support/Ground.ts"
import { startGround } from "../support/Ground.ts"
import type { HttpAnswer, HttpClient } from "../support/Http.ts"
import { makeHttpClient } from "../support/Http.ts"
import { freePort } from "../support/Ports.ts"
import { runToEnd } from "../support/Server.ts"

/*
 * The service does not tell clients and operators every cause in detail. For each cause, the log has the record that
 * docs/reference/errors.md names.
 */

let ground: Ground
let http: HttpClient
let session: AcmeSession
let admin: string

const config = (port: number): string =>
  `[challenge]
enabled = ["http-01", "dns-01"]
[profiles.default]
enabled = true
[profiles.small]
enabled = true
challenge.bypass = true
limits.orders_per_account = 1
[profiles.bound]
enabled = true
eab.enabled = true
[profiles.named]
enabled = true
filter.rules = ["ours"]
filter.rule.ours = { when = "suffix", then = "allow" }
filter.check.suffix = { type = "identifiers", allow = ["*.ours.example"] }
[profiles.far]
enabled = true
filter.rules = ["near"]
filter.rule.near = { when = "office", then = "allow" }
filter.check.office = { type = "allowed_ip", allow = ["192.0.2.0/24"] }
[admin]
enabled = true
bind_address = "127.0.0.1:${port}"
base_url = "http://127.0.0.1:${port}"
login_max_attempts = 50
`

const password = "Wrocław tramway, 4 stops"

beforeAll(async () => {
  await builtServer()
  const port = await freePort()
  admin = `http://127.0.0.1:${port}`
  ground = await startGround({ config: config(port), env: { ACME_SVC_LOGGING__FILTER: "debug" } })
  const { directory } = ground.server
  writeFileSync(join(directory, "password"), `${password}\n`, { mode: 0o600 })
  for (const [username, role] of [["olga", "operator"], ["vera", "viewer"]]) {
    const words = ["admin", "user", "create", String(username), "--role", String(role), "--password-file", "password"]
    assert.strictEqual((await runToEnd(words, { config: null, directory })).code, 0)
  }
  http = makeHttpClient()
  session = await AcmeSession.open(ground.server.directoryUrl, { http })
  await session.register()
})

afterAll(async () => {
  http?.close()
  await ground?.dispose()
})

/** The answer to an attempt, and what its record must contain, such as a name. */
interface Tried {
  readonly answer: HttpAnswer
  readonly holds?: string
}

type Told = Pick<CauseRecord, "event" | "by">

/** Registers another account at a profile. */
const at = async (profile: string): Promise<AcmeSession> => {
  const other = await AcmeSession.open(ground.server.profileUrl(profile), { http, key: await makeAcmeKey() })
  await other.register()
  return other
}

let names = 0
const freshName = (): string => `n${names++}-${randomBytes(3).toString("hex")}.example`

/** Validates a name after `prepare` has prepared the servers that the challenge needs. */
const validated = async (
  type: "http-01" | "dns-01",
  prepare: (name: string, token: string) => void
): Promise<{ readonly name: string; readonly order: OrderBody; readonly url: string }> => {
  const name = freshName()
  const { body, url } = await session.newOrder([name])
  const { challenges } = await session.authorization(body.authorizations[0] ?? "")
  const challenge = challenges.find((one) => one.type === type)
  prepare(name, challenge?.token ?? "")
  await session.trigger(challenge?.url ?? "")
  return { name, order: await session.awaitOrder(url, ["invalid"]), url }
}

const issued = async () => {
  const small = await at("small")
  const name = freshName()
  const { body, url } = await small.newOrder([name])
  await small.authorize(body, new Map())
  await small.finalize(body, makeCsr({ names: [name] }).csr)
  const { certificate = "" } = await small.awaitOrder(url, ["valid"])
  const [, der = ""] = /-----BEGIN CERTIFICATE-----([^-]+)-----END/.exec(await small.download(certificate)) ?? []
  const leaf = Buffer.from(der, "base64").toString("base64url")
  return {
    small,
    revoke: (reason: number) => small.postOnce(small.directory.revokeCert ?? "", { certificate: leaf, reason })
  }
}

/** The causes for which ACME requests are refused, each with its failure. */
const causes: ReadonlyArray<readonly [cause: string, AcmeError["_tag"], () => Promise<Tried>]> = [
  ["a request without a nonce", "BadNonce", async () => {
    const answer = await session.postOnce(session.directory.newOrder, {}, { nonce: null })
    return { answer, holds: "missing" }
  }],
  ["a nonce of another server", "BadNonce", async () => {
    const answer = await session.postOnce(session.directory.newOrder, {}, { nonce: "abc" })
    return { answer, holds: "unknown" }
  }],
  ["a nonce that was used", "BadNonce", async () => {
    const nonce = await session.nonce()
    await session.postOnce(session.kid ?? "", undefined, { nonce })
    return { answer: await session.postOnce(session.kid ?? "", undefined, { nonce }) }
  }],
  ["an order that does not exist", "NotFound", async () => ({
    answer: await session.postOnce(`${session.directoryUrl.replace("/directory", "/order/")}nothing`)
  })],
  ["a path that does not exist", "NoSuchPath", async () => ({
    answer: await http.send(session.directoryUrl.replace("/directory", "/nothing"))
  })],
  ["a method that the route does not accept", "MethodNotAllowed", async () => ({
    answer: await http.send(session.directoryUrl, { method: "DELETE" })
  })],
  ["a body of another type", "UnsupportedMediaType", async () => ({
    answer: await http.send(session.directory.newOrder, {
      method: "POST",
      body: "{}",
      headers: { "content-type": "text/plain" }
    })
  })],
  ["a name that no rule permits", "RejectedIdentifier", async () => {
    const named = await at("named")
    return {
      answer: await named.postOnce(named.directory.newOrder, {
        identifiers: [{ type: "dns", value: "theirs.example" }]
      }),
      holds: "theirs.example"
    }
  }],
  ["an address that no rule permits", "ClientRefused", async () => ({
    answer: await http.send(ground.server.profileUrl("far")),
    holds: "127.0.0.1"
  })],
  ["an account without a credential", "ExternalAccountRequired", async () => {
    const bound = await AcmeSession.open(ground.server.profileUrl("bound"), { http, key: await makeAcmeKey() })
    return { answer: await bound.postOnce(bound.directory.newAccount, { termsOfServiceAgreed: true }) }
  }],
  ["a contact that no mail can reach", "InvalidContact", async () => {
    const other = await AcmeSession.open(ground.server.directoryUrl, { http, key: await makeAcmeKey() })
    return { answer: await other.postOnce(other.directory.newAccount, { contact: ["mailto:admin@localhost"] }) }
  }],
  ["an order that is not ready", "OrderNotReady", async () => {
    const name = freshName()
    const { body } = await session.newOrder([name])
    return { answer: await session.finalize(body, makeCsr({ names: [name] }).csr), holds: "pending" }
  }],
  ["one order too many", "RateLimited", async () => {
    const small = await at("small")
    await small.newOrder([freshName()])
    return {
      answer: await small.postOnce(small.directory.newOrder, { identifiers: [{ type: "dns", value: freshName() }] }),
      holds: "orders_per_account"
    }
  }],
  ["a signing request for another name", "BadCsr", async () => {
    const small = await at("small")
    const { body } = await small.newOrder([freshName()])
    await small.authorize(body, new Map())
    return { answer: await small.finalize(body, makeCsr({ names: ["other.example"] }).csr) }
  }],
  ["a reason that does not exist", "BadRevocationReason", async () => {
    const { revoke } = await issued()
    return { answer: await revoke(7) }
  }],
  ["a certificate that is revoked", "AlreadyRevoked", async () => {
    const { revoke } = await issued()
    assert.strictEqual((await revoke(0)).status, 200)
    return { answer: await revoke(0) }
  }]
]

type Validation = readonly [
  reason: ValidationReason,
  AcmeError["_tag"],
  "http-01" | "dns-01",
  (name: string, token: string) => void
]

const digestOf = (token: string): string =>
  createHash("sha256").update(session.keyAuthorization(token)).digest("base64url")

/** The causes of failed validations: the reason in the record, the failure, and how to cause it. */
const validations: ReadonlyArray<Validation> = [
  ["body_mismatch", "ChallengeMismatched", "http-01", (_, token) => ground.responder.tokens.set(token, "another")],
  [
    "body_too_large",
    "ChallengeMismatched",
    "http-01",
    (_, token) => ground.responder.tokens.set(token, "x".repeat(1_000_000))
  ],
  ["status", "ChallengeMismatched", "http-01", () => {}],
  ["no_address", "ChallengeUnreachable", "http-01", (name) => ground.dns.zone.set(name, {})],
  ["resolve_failed", "ChallengeUnreachable", "http-01", (name) => ground.dns.zone.set(name, { rcode: "SERVFAIL" })],
  [
    "address_denied",
    "ChallengeUnreachable",
    "http-01",
    (name) => ground.dns.zone.set(name, { A: ["169.254.169.254"] })
  ],
  ["connect_failed", "ChallengeUnreachable", "http-01", (name) => ground.dns.zone.set(name, { A: ["127.0.0.9"] })],
  ["txt_absent", "TxtMismatched", "dns-01", () => {}],
  [
    "txt_mismatch",
    "TxtMismatched",
    "dns-01",
    (name) => ground.dns.zone.set(`_acme-challenge.${name}`, { TXT: ["another"] })
  ],
  [
    "txt_blanks",
    "TxtMismatched",
    "dns-01",
    (name, token) => ground.dns.zone.set(`_acme-challenge.${name}`, { TXT: [` ${digestOf(token)}`] })
  ],
  [
    "resolve_failed",
    "TxtLookupFailed",
    "dns-01",
    (name) => ground.dns.zone.set(`_acme-challenge.${name}`, { rcode: "REFUSED" })
  ]
]

const json = { "content-type": "application/json" }
const signIn = (username: string, secret: string) =>
  http.send(`${admin}/api/session`, {
    method: "POST",
    headers: json,
    body: JSON.stringify({ username, password: secret })
  })

const entered = async (username: string) => {
  const answer = await signIn(username, password)
  const cookie = String([answer.headers["set-cookie"]].flat()[0]).split(";")[0] ?? ""
  return { cookie, csrf: (answer.json as { readonly csrfToken: string }).csrfToken }
}

/** The causes for which requests of operators are refused, each with its refusal. */
const refusals: ReadonlyArray<readonly [cause: string, OperatorError["_tag"], () => Promise<Tried>]> = [
  ["an unknown name", "InvalidCredentials", async () => ({
    answer: await signIn("nobody", password),
    holds: "unknown_user"
  })],
  ["a wrong password", "InvalidCredentials", async () => ({
    answer: await signIn("vera", "a guess of no use"),
    holds: "wrong_password"
  })],
  ["no session", "SessionInvalid", async () => ({ answer: await http.send(`${admin}/api/orders`) })],
  ["an unknown token", "SessionInvalid", async () => ({
    answer: await http.send(`${admin}/api/orders`, { headers: { authorization: "Bearer acme_nothing" } }),
    holds: "malformed"
  })],
  ["a form of another site", "ForeignOrigin", async () => {
    const { cookie, csrf } = await entered("olga")
    const headers = { ...json, cookie, "x-csrf-token": csrf, origin: "https://elsewhere.example" }
    return { answer: await http.send(`${admin}/api/nonces/cleanup`, { method: "POST", headers, body: "{}" }) }
  }],
  ["a request without the token of its session", "CsrfFailed", async () => {
    const { cookie } = await entered("olga")
    return {
      answer: await http.send(`${admin}/api/nonces/cleanup`, {
        method: "POST",
        headers: { ...json, cookie },
        body: "{}"
      })
    }
  }],
  ["an act of another role", "InsufficientRole", async () => {
    const { cookie, csrf } = await entered("vera")
    const headers = { ...json, cookie, "x-csrf-token": csrf }
    return { answer: await http.send(`${admin}/api/nonces/cleanup`, { method: "POST", headers, body: "{}" }) }
  }]
]

/** Finds the log record about an answer by the id of the request. Fails if the log has none of the declared records. */
const recorded = async (answer: HttpAnswer, told: ReadonlyArray<Told>, holds = "") => {
  const id = String(answer.headers["x-request-id"])
  const events = new Set<string>(told.map(({ event }) => event))
  const record = await Promise.any([...events].map((event) =>
    ground.server.waitForEvent(event, {
      timeoutMs: 5000,
      where: ({ fields, span }) => span["request_id"] === id && JSON.stringify(fields).includes(holds)
    })
  ))
  const fits = told.filter(({ event }) => event === record.fields["event"]).some(({ by = "" }) =>
    by.split(", ").every((one) => {
      const [field = "", value] = one.split("=")
      return field === "" || (value === undefined ? record.fields[field] !== undefined : record.fields[field] === value)
    })
  )
  assert.isTrue(fits, JSON.stringify(record))
}

const declared = (of: ReadonlyArray<CauseRecord> | undefined): ReadonlyArray<Told> => of ?? []

describe("the log", () => {
  it.each(causes)(
    "has the documented record about a request that is refused because of %s",
    async (_, tag, provoke) => {
      const { answer, holds } = await provoke()
      const failure = problemType(answer) ?? "none"
      assert.isAtLeast(answer.status, 400, `${tag}: ${failure}`)
      await recorded(answer, recordsOf(tag), holds)
    }
  )

  it.each(validations)(
    "has the documented record about a validation that fails because of %s, which a client sees as %s",
    async (reason, tag, type, prepare) => {
      const { cookie } = await entered("vera")
      const { name, order, url } = await validated(type, prepare)
      const told = recordsOf(tag).find(({ cause }) => cause === reason)
      assert.isDefined(told, `${tag} has no cause ${reason}`)
      const record = await ground.server.waitForEvent(told?.event ?? "", {
        where: ({ fields }) => fields["identifier"] === name
      })
      assert.strictEqual(record.fields["reason"], reason)
      // A client gets the same text for all causes of a failure. An operator learns the cause from the log.
      assert.include(order.error?.detail ?? "", name)
      const detail = await http.send(`${admin}/api/orders/${url.split("/").at(-1)}`, { headers: { cookie } })
      const { challenges, explanation } = detail.json as {
        readonly explanation: { readonly summary: string }
        readonly challenges: ReadonlyArray<unknown>
      }
      const expected = explainEnd({
        orderError: order.error as never,
        challengeFailures: [{ error: order.error as never, cause: { reason, detail: "" } }],
        cause: undefined,
        requestId: undefined
      })
      assert.strictEqual(explanation.summary, expected?.summary, JSON.stringify(challenges))
    }
  )

  it.each(refusals)(
    "has the documented record about a request of an operator that is refused because of %s",
    async (_, tag, provoke) => {
      const { answer, holds } = await provoke()
      assert.isAtLeast(answer.status, 400, tag)
      await recorded(answer, declared(operatorRecords[tag]), holds)
    }
  )
})
