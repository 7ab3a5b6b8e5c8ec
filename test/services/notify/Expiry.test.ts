import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { assert } from "vitest"
import { compileMessages } from "../../../src/services/notify/MessageTemplates.ts"
import { configOf } from "../../support/Graph.ts"
import { issued, payload } from "../../support/Notified.ts"

/* Tests the messages about certificates that expire. */

const day = 86_400
const at = 1_927_947_906

const certificate = (days: number, ...identifiers: ReadonlyArray<string>) => ({
  order_id: "o1",
  account_id: "a1",
  cert_serial: "0badcafe",
  identifiers,
  not_after: at + days * day,
  days_remaining: days
})
const replaced = {
  ...certificate(1, "b.example"),
  superseded_by: { order_id: "o2", cert_serial: "0c", not_after: at + 90 * day, via: "identifiers" }
}
const many = Array.from({ length: 12 }, (_, index) => `${index}.example`)

const compiled = compileMessages(configOf().notify, "notify", "localhost")

describe("the message about the expiry of a CA", () => {
  it.effect("contains the remaining days, and names the certificate of the chain that expires first", () =>
    Effect.gen(function*() {
      const { message } = yield* compiled
      const said = (days: number, chain_ends_with = "CN=CA") =>
        message(payload("authority_expiring", {
          issuer: "aa",
          subject: "CN=CA",
          chain_ends_with,
          not_after: at + days * day,
          days_remaining: Math.max(0, Math.floor(days))
        }))
      assert.strictEqual(yield* said(30), "[default] the CA CN=CA ends in 30 days, at 2031-03-06T05:05:06Z")
      assert.match(yield* said(1), /the CA CN=CA ends in 1 day, at /)
      assert.match(yield* said(0.5), /the CA CN=CA ends within a day, at /)
      assert.match(yield* said(-1), /the CA CN=CA has ended, at /)
      assert.match(yield* said(7, "CN=Upper"), /ends in 7 days, at \S+, with CN=Upper above it$/)
    }))
})

describe("the mail about an issued certificate", () => {
  it.effect("names every kind of certificate except the kind default, and events of earlier versions have none", () =>
    Effect.gen(function*() {
      const { letter } = yield* compiled
      const kindIn = (members: object) =>
        Effect.map(
          letter(issued(members as Readonly<Record<string, unknown>>)),
          ({ text }) => /^Kind: .*$/m.exec(text)?.[0]
        )
      assert.strictEqual(yield* kindIn({ kind: "mutual" }), "Kind: mutual")
      assert.isUndefined(yield* kindIn({ kind: "default" }))
      assert.isUndefined(yield* kindIn({}))
    }))
})

describe("the digest", () => {
  it.effect("says how many certificates expire, how many of them were replaced, and which expires first", () =>
    Effect.gen(function*() {
      const { letter, message } = yield* compiled
      const said = (total: number, superseded: number, ...certificates: ReadonlyArray<object>) =>
        message(payload("certificates_expiring", { lead_days: 14, total, superseded, certificates }))
      assert.strictEqual(
        yield* said(3, 0, certificate(2, "a.example")),
        "[default] 3 certificates expire within 14 days, first a.example in 2 days"
      )
      assert.strictEqual(
        yield* said(1, 0, certificate(1, "a.example", "b.example")),
        "[default] 1 certificate expires within 14 days, first a.example, b.example in 1 day"
      )
      assert.strictEqual(
        yield* said(3, 1, certificate(0, ...many), replaced),
        `[default] 3 certificates expire within 14 days, 1 of them replaced, first ${
          many.slice(0, 10).join(", ")
        } and 2 more in 0 days`
      )
      const certificates = [certificate(2, "a.example", "c.example"), replaced]
      const fields = payload("certificates_expiring", { lead_days: 14, total: 2, superseded: 1, certificates })
      const { subject, text } = yield* letter(fields)
      assert.strictEqual(
        subject,
        "ACME Service localhost: [default] 2 certificates expire within 14 days, 1 of them replaced, first a.example, c.example in 2 days"
      )
      assert.include(
        text,
        "2031-02-06T05:05:06Z (2 days): a.example, c.example\n  order o1, account a1, serial 0badcafe\n"
      )
      assert.include(
        text,
        "(1 day): b.example, followed by 0c\n  order o1, account a1, serial 0badcafe\n\nProfile: default\n"
      )
    }))

  it.effect("can be rendered with the largest number of certificates and names", () =>
    Effect.gen(function*() {
      const { letter } = yield* compiled
      const certificates = Array.from({ length: 1000 }, () => certificate(3, ...many))
      const { text } = yield* letter(
        payload("certificates_expiring", { lead_days: 14, total: 10_000, superseded: 0, certificates })
      )
      assert.isAbove(text.split("\n").length, 2000)
    }))
})

describe("a mail to a contact", () => {
  it.effect("names the certificates, the account and the endpoint", () =>
    Effect.gen(function*() {
      const { letter } = yield* compiled
      const certificates = [certificate(2, "a.example"), certificate(9, "b.example", "c.example")]
      const fields = payload("expiry_reminder", {
        account_id: "a1",
        total: 2,
        certificates,
        recipient: "a@example.org"
      })
      const { subject, text } = yield* letter(fields)
      assert.strictEqual(subject, "ACME Service localhost: 2 certificates expire soon, first a.example in 2 days")
      assert.include(text, "2031-02-06T05:05:06Z: a.example\n2031-02-13T05:05:06Z: b.example, c.example\n")
      assert.include(text, "a1 at the endpoint default")
      const alone = yield* letter(
        payload("expiry_reminder", { account_id: "a1", total: 1, certificates: certificates.slice(0, 1) })
      )
      assert.include(alone.text, "No other certificate has replaced it so far.")
    }))
})
