import { it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Tls from "node:tls"
import type { SMTPServerOptions } from "smtp-server"
import { afterAll, assert, beforeAll, describe, vi } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import { generateTlsPair } from "../../../src/crypto/x509/TlsPair.ts"
import { Deliveries } from "../../../src/services/notify/Deliveries.ts"
import { answering, mailServer } from "../../support/MailServer.ts"
import { deliver, deliveries, deliveryId, issued, payload } from "../../support/Notified.ts"
import { freePort } from "../../support/Ports.ts"
import { rawServer } from "../../support/RawServer.ts"

/* Tests mail over real SMTP. The library that reads the mail is not the library that writes it. */

const trustedByDefault = Tls.getCACertificates()
let pair: { readonly cert: string; readonly key: string }
beforeAll(async () => {
  const made = await Effect.runPromise(
    Effect.provide(
      generateTlsPair({ host: "localhost", serial: Uint8Array.of(1), now: Math.floor(Date.now() / 1000) }),
      Entropy.layer
    )
  )
  pair = { cert: made.certificatePem, key: made.privateKeyPem }
  Tls.setDefaultCACertificates([...trustedByDefault, pair.cert])
})
afterAll(() => Tls.setDefaultCACertificates([...trustedByDefault]))

const section = (port: number, more = "smtp_security = \"none\"") =>
  `[notify]\nenabled = ["email"]\n[notify.email]\nsmtp_host = "localhost"\nsmtp_port = ${port}\n`
  + `from = "ACME für alle <acme@example.org>"\nto = ["ops@example.org", "Two <two@example.org>"]\ntimeout_ms = 20000\n${more}\n`

const attempt = (toml: string, fields = issued()) => Effect.provide(deliver("email", "-", fields), deliveries(toml))

const refusal = (toml: string) =>
  Effect.map(
    Effect.flip(attempt(toml)),
    (failed) => failed._tag === "DeliveryRefused" ? failed : assert.fail("there was no target")
  )

describe("a mail", () => {
  it.live("contains what happened and the program that sent it, and goes to all recipients at once", () =>
    Effect.gen(function*() {
      const server = yield* mailServer()
      yield* attempt(section(server.port))
      const { mail, raw, recipients } = server.taken[0] ?? assert.fail("nothing was sent")
      assert.strictEqual(
        mail.subject,
        "ACME Service localhost: [default] certificate issued for a.example, b.example, valid until 2031-02-04T05:05:06Z"
      )
      assert.strictEqual(mail.from?.text, "\"ACME für alle\" <acme@example.org>")
      assert.deepStrictEqual(recipients, ["ops@example.org", "two@example.org"])
      assert.strictEqual(mail.messageId, `<${deliveryId}@example.org>`)
      assert.strictEqual(mail.headers.get("auto-submitted"), "auto-generated")
      assert.strictEqual(mail.headers.get("precedence"), "bulk")
      assert.deepStrictEqual(mail.date, new Date(1_927_947_906_000))
      assert.match(raw, /^Content-Transfer-Encoding: quoted-printable\r$/m)
      assert.match(raw, /^Content-Type: text\/plain; charset=utf-8\r$/m)
      assert.notMatch(raw, /X-Mailer/i)
      assert.strictEqual(
        mail.text,
        `[default] certificate issued for a.example, b.example, valid until 2031-02-04T05:05:06Z

Profile: default
Account: a1
Order: o1
Serial: 0badcafe
Names: a.example, b.example
Valid until: 2031-02-04T05:05:06Z
Client: 192.0.2.1
Time: 2031-02-04T05:05:06Z
Delivery: ${deliveryId}
`
      )
    }))

  it.live("gets no headers from its texts, and is complete whatever the texts contain", () =>
    Effect.gen(function*() {
      const server = yield* mailServer({ hide8BITMIME: true, hideSMTPUTF8: true })
      const nasty = "x\r\nBcc: evil@example.org\r\n\r\n.\r\nü 😀\u0000"
      yield* attempt(section(server.port), issued({ identifiers: [nasty, "y".repeat(10_000)], client_ip: nasty }))
      const { mail, raw, recipients } = server.taken[0] ?? assert.fail("nothing was sent")
      assert.isUndefined(mail.bcc)
      assert.lengthOf(recipients, 2)
      assert.include(mail.text ?? "", "ü 😀")
      assert.include(mail.text ?? "", "y".repeat(10_000))
      assert.isAtMost([...mail.subject ?? ""].length, 200)
      assert.match(mail.subject ?? "", /y \.\.\.$/)
      assert.notMatch(mail.subject ?? "", /\p{Cc}/u)
      // The message has only seven-bit characters, and no line that a server may wrap.
      assert.match(raw, /^[\t\r\n\x20-\x7e]*$/)
      assert.isAtMost(Math.max(...raw.split("\r\n").map((line) => line.length)), 998)
    }))

  it.live("goes to the operator, the admins and the recipients of the section if it is about an attack on an operator's account", () =>
    Effect.gen(function*() {
      const server = yield* mailServer()
      const toml = `[admin]\nenabled = true\n${section(server.port).replaceAll("[notify", "[admin.notify")}`
      const of = { username: "vera", client_ip: "192.0.2.7", admins: ["jane@example.org", "vera@example.org"] }
      const guessed = { ...of, outcome: "password_guessed", failures: 20, recipient: "vera@example.org" }
      yield* Effect.provide(
        Effect.forEach(
          [guessed, { ...of, outcome: "step_up_refused" }],
          (fields) => deliver("email", "-", payload("admin_sign_in", fields), "__admin__")
        ),
        deliveries(toml)
      )
      const general = ["ops@example.org", "two@example.org"]
      assert.deepStrictEqual(server.taken.map(({ mail, recipients }) => [recipients, mail.subject]), [
        [
          ["vera@example.org", "jane@example.org", ...general],
          "ACME Service localhost: operator vera: 20 wrong passwords in a row"
        ],
        [
          ["jane@example.org", "vera@example.org", ...general],
          "ACME Service localhost: operator vera: session ended after wrong passwords"
        ]
      ])
      assert.include(server.taken[0]?.mail.text ?? "", "\nWrong passwords: 20\n")
    }))

  it.live("contains no text of a stranger's User-Agent if it goes to an operator", () =>
    Effect.gen(function*() {
      const server = yield* mailServer()
      const toml = `[admin]\nenabled = true\n${section(server.port).replaceAll("[notify", "[admin.notify")}`
      const bait = "Your account is locked. Sign in at https://evil.example/unlock (Windows) Firefox/140.0"
      const [refused, changed] = [{ outcome: "locked_out" }, { change: "password", by_self: true }]
      const told = [["admin_sign_in", refused], ["admin_credential_changed", changed]] as const
      yield* Effect.provide(
        Effect.forEach(told, ([event, fields]) =>
          deliver("email", "-", payload(event, { username: "jane", user_agent: bait, ...fields }), "__admin__")),
        deliveries(toml)
      )
      for (const { mail, raw } of server.taken) {
        assert.include(mail.text ?? "", "\nProgram: Firefox on Windows\n")
        assert.notMatch(raw, /evil|locked\. Sign/)
      }
      assert.lengthOf(server.taken, told.length)
    }))

  it.live("goes to the operator's own address, or to the previous address if the address was changed", () =>
    Effect.gen(function*() {
      const server = yield* mailServer()
      const toml = `[admin]\nenabled = true\n${section(server.port).replaceAll("[notify", "[admin.notify")}`
      const changed = payload("admin_credential_changed", {
        username: "jane",
        change: "contact_address",
        by_self: true,
        recipient: "new@example.org",
        previous_recipient: "old@example.org"
      })
      const first = payload("admin_credential_changed", {
        username: "jane",
        change: "contact_address",
        by_self: true,
        recipient: "thief@example.org"
      })
      const signedIn = payload("admin_sign_in", {
        username: "jane",
        outcome: "succeeded_from_new_address",
        recipient: "jane@example.org",
        client_ip: "192.0.2.7"
      })
      const nobodys = payload("admin_sign_in", { username: "jane", outcome: "locked_out" })
      yield* Effect.forEach([changed, first, signedIn, nobodys], (fields) => deliver("email", "-", fields, "__admin__"))
        .pipe(
          Effect.provide(deliveries(toml))
        )
      assert.deepStrictEqual(
        server.taken.map(({ mail, recipients }) => [
          recipients.join(),
          mail.subject
        ]),
        [
          ["old@example.org", "ACME Service localhost: operator jane: contact address changed"],
          ["ops@example.org,two@example.org", "ACME Service localhost: operator jane: contact address changed"],
          ["jane@example.org", "ACME Service localhost: operator jane: signed in from a new address 192.0.2.7"],
          ["ops@example.org,two@example.org", "ACME Service localhost: operator jane: sign-in locked"]
        ]
      )
      for (const { raw } of server.taken) assert.match(raw, /^Content-Transfer-Encoding: quoted-printable\r$/m)
      assert.strictEqual(server.connections(), 1, "one connection for all of a batch")
    }))
})

describe("the connection to a mail server", () => {
  const secure: SMTPServerOptions = {
    authOptional: false,
    onAuth: ({ password, username }, _, done) =>
      username === "acme" && password === "hunter22" ? done(null, { user: "acme" }) : done(answering(535, "bad login"))
  }
  const login = (password = "hunter22") => `smtp_username = "acme"\nsmtp_password = "${password}"`

  it.live.each<readonly ["starttls" | "tls", boolean]>([["starttls", false], ["tls", true]])(
    "signs in over TLS (%s) and verifies the certificate",
    ([security, fromTheStart]) =>
      Effect.gen(function*() {
        const server = yield* mailServer({ ...secure, ...pair, secure: fromTheStart })
        yield* attempt(section(server.port, `smtp_security = "${security}"\n${login()}`))
        assert.deepInclude(server.taken[0]?.session ?? {}, { secure: true, user: "acme" })
        // The certificate is only for localhost.
        const toml = section(server.port, `smtp_security = "${security}"`).replace("localhost", "127.0.0.1")
        const failed = yield* refusal(toml)
        assert.deepInclude({ ...failed }, { hope: "retry" })
        assert.lengthOf(server.taken, 1)
      })
  )

  it.live("is not used if the server does not offer TLS", () =>
    Effect.gen(function*() {
      const server = yield* mailServer()
      const failed = yield* refusal(section(server.port, "smtp_security = \"starttls\""))
      assert.deepInclude({ ...failed }, { hope: "retry" })
      assert.lengthOf(server.taken, 0)
    }))

  it.live("is tried again if the password was refused, and the error does not contain the password", () =>
    Effect.gen(function*() {
      const server = yield* mailServer({ ...secure, ...pair })
      const failed = yield* refusal(section(server.port, `smtp_security = "starttls"\n${login("swordfish")}`))
      assert.deepInclude({ ...failed }, { hope: "retry", status: 535 })
      assert.notInclude(failed.detail, "swordfish")
    }))
})

describe("a mail", () => {
  it.live.each<readonly [string, SMTPServerOptions, "retry" | "never", number]>([
    ["the sender, permanently", { onMailFrom: (_, _1, done) => done(answering(550)) }, "never", 550],
    ["the sender, temporarily", { onMailFrom: (_, _1, done) => done(answering(450)) }, "retry", 450],
    ["every recipient, permanently", { onRcptTo: (_, _1, done) => done(answering(550)) }, "never", 550],
    ["every recipient, temporarily", { onRcptTo: (_, _1, done) => done(answering(451)) }, "retry", 451],
    [
      "the message, permanently",
      {
        onData: (stream, _, done) => stream.resume().on("end", () => done(answering(554)))
      },
      "never",
      554
    ],
    [
      "the message, temporarily",
      {
        onData: (stream, _, done) => stream.resume().on("end", () => done(answering(452)))
      },
      "retry",
      452
    ],
    ["the connection", { onConnect: (_, done) => done(answering(554)) }, "retry", 554]
  ])("is given up or tried again if the server refuses %s", ([, options, hope, status]) =>
    Effect.gen(function*() {
      const server = yield* mailServer(options)
      assert.deepInclude({ ...yield* refusal(section(server.port)) }, { hope, status })
    }))

  it.live("is not sent again to an accepted recipient if another recipient was refused", () =>
    Effect.gen(function*() {
      const server = yield* mailServer({
        onRcptTo: ({ address }, _, done) => address.startsWith("two") ? done(answering(550)) : done()
      })
      const failed = yield* refusal(section(server.port))
      const detail = "1 of 2 recipients refused, the others taken"
      assert.deepInclude({ ...failed }, { hope: "ended", left: [], detail })
      assert.lengthOf(server.taken, 1)
    }))

  it.live("is sent again only to a recipient whom the server has greylisted while it took the others", () =>
    Effect.gen(function*() {
      const met = new Set<string>()
      const server = yield* mailServer({
        onRcptTo: ({ address }, _, done) => {
          const isKnown = !address.startsWith("two") || met.has(address)
          met.add(address)
          return isKnown ? done() : done(answering(450))
        }
      })
      const failed = yield* refusal(section(server.port))
      const detail = "1 of 2 recipients refused, the others taken; 1 of the refused may be taken later"
      assert.deepInclude({ ...failed }, { hope: "ended", left: ["two@example.org"], detail })
      const again = { scope: "default", backend: "email", entry: "-", fields: issued(), to: failed.left } as const
      yield* Effect.provide(Effect.flatMap(Deliveries, (all) => all.deliver(again)), deliveries(section(server.port)))
      assert.deepStrictEqual(
        server.taken.map(({ recipients }) => recipients),
        [["ops@example.org"], ["two@example.org"]]
      )
    }))

  it.live("is tried again if the server does not answer, disconnects or does not exist", () =>
    Effect.gen(function*() {
      const hanging = yield* rawServer(() => {})
      const greeted = yield* rawServer(() => {}, { greeting: "220 here\r\n" })
      const dropping = yield* mailServer({ socketTimeout: 100, onData: (stream) => void stream.resume() })
      const gone = yield* Effect.promise(freePort)
      for (const port of [hanging.port, greeted.port, gone]) {
        const failed = yield* refusal(section(port).replace("20000", "500"))
        assert.deepInclude({ ...failed }, { hope: "retry" }, String(port))
      }
      assert.deepInclude({ ...yield* refusal(section(dropping.port)) }, { hope: "retry" })
    }))
})

/** Starts a mail server that has each message before it answers. `held` has the answer to each of them. */
const holding = Effect.gen(function*() {
  const held: Array<() => void> = []
  const server = yield* mailServer({
    onData: (stream, _, done) => {
      stream.resume()
      stream.on("end", () => held.push(() => done(null, "taken")))
    }
  })
  const holds = (count: number) => Effect.promise(() => vi.waitFor(() => assert.lengthOf(held, count)))
  return { held, holds, port: server.port }
})

describe("a mail that the server has received", () => {
  it.effect("is not sent again if the server accepts it ten minutes later", () =>
    Effect.gen(function*() {
      const { held, holds, port } = yield* holding
      const sent = yield* Effect.forkChild(attempt(section(port)))
      yield* holds(1)
      yield* TestClock.adjust("10 minutes")
      for (const answer of held.splice(0)) answer()
      assert.deepStrictEqual(yield* Fiber.join(sent), { answer: "250 taken" })
    }))

  it.effect("is sent again if the server does not accept it within ten minutes", () =>
    Effect.gen(function*() {
      const { holds, port } = yield* holding
      const sent = yield* Effect.forkChild(refusal(section(port)))
      yield* holds(1)
      yield* TestClock.adjust("11 minutes")
      assert.deepInclude({ ...yield* Fiber.join(sent) }, {
        hope: "retry",
        detail: "sent, but not accepted within 600 s"
      })
    }))
})

describe("several mails at once", () => {
  it.effect("have the whole time limit each, because the wait for a connection is not part of it", () =>
    Effect.gen(function*() {
      const { held, holds, port } = yield* holding
      const three = yield* Effect.forkChild(
        Effect.provide(
          Effect.all([1, 2, 3].map(() => deliver("email", "-", issued())), { concurrency: "unbounded" }),
          deliveries(section(port))
        )
      )
      yield* holds(2)
      yield* TestClock.adjust("15 seconds")
      for (const answer of held.splice(0)) answer()
      yield* holds(1)
      yield* TestClock.adjust("15 seconds")
      for (const answer of held.splice(0)) answer()
      assert.lengthOf(yield* Fiber.join(three), 3)
    }))
})
