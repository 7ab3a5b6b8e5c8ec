import { Effect } from "effect"
import { assert, describe } from "vitest"
import type { Issuer, TimedIssuer } from "../../../src/services/signing/Issuers.ts"
import { Issuers } from "../../../src/services/signing/Issuers.ts"
import * as states from "../../../src/store/ProfileStateRows.ts"
import * as crls from "../../../src/store/revocation/Crls.ts"
import * as revocations from "../../../src/store/revocation/Revocations.ts"
import { databases, sqlite } from "../../support/Databases.ts"
import { sql } from "../../support/Graph.ts"
import { issuersOf } from "../../support/KnownIssuers.ts"
import { startsAt } from "../../support/Operators.ts"
import { entered, usePanel, wordsOf } from "../../support/Panel.ts"

/* The page of CAs and their revocation lists. */

const day = 86_400
const id = "ab".repeat(32)
const issuer: Issuer = {
  id,
  certificate: Buffer.from("certificate"),
  anchorPem: "",
  ledgerPath: "/nowhere",
  subject: "CN=<b>A CA</b>\u202e",
  sha256: "cd".repeat(32),
  keyType: "ecdsa-p256",
  keySource: "file",
  nameConstraints: [],
  notBefore: startsAt - day,
  notAfter: startsAt + 365 * day,
  firstToEnd: { notAfter: startsAt + 365 * day, subject: "CN=<b>A CA</b>\u202e" }
}
const endingWith = (subject: string, notAfter: number): Issuer => ({ ...issuer, firstToEnd: { subject, notAfter } })

const withCa = (ca: Issuer) =>
  Effect.provideService(Issuers, issuersOf((profile: string) => profile === "default" ? ca : undefined))

const list = (nextUpdate: number) =>
  crls.insert({ issuer: id, number: 7, der: Buffer.from("list"), thisUpdate: startsAt - day, nextUpdate })

describe.each(databases)("the page of authorities on $name", (backend) => {
  const { test } = usePanel(backend)

  test("says that the service has no CA of its own", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      assert.include(wordsOf(yield* panel.ask("/ui/authorities", held)), "This service has no CA of its own")
    }))

  test("says that no worker has started with a CA if the CA has no list yet", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const page = yield* withCa(issuer)(panel.ask("/ui/authorities", held))
      assert.include(wordsOf(page), "No worker has started with this CA yet.")
      assert.include(wordsOf(page), "missing")
      assert.include(wordsOf(page), "Key ecdsa-p256")
      assert.notMatch(page.text, /<b>A CA|\u202e/)
      assert.notInclude(page.text, "ca.crl")
      assert.notInclude(wordsOf(page), "What this CA signs cannot last longer.")
    }))

  test("says that a CA revokes nothing, and why", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      yield* list(startsAt + 6 * day)
      yield* sql(
        `INSERT INTO workers (owner, roles, version, started_at, last_seen_at) VALUES ('w', 'worker', '1', 0, ${startsAt})`
      )
      yield* states.report({
        profile: "default",
        owner: "w",
        trouble: "<b>ca.crl.issued cannot be used",
        since: startsAt,
        stoppedIssuer: id
      })
      const page = yield* withCa(issuer)(panel.ask("/ui/authorities", held))
      assert.include(wordsOf(page), "This CA revokes nothing and signs no revocation list.")
      assert.include(wordsOf(page), "ca.crl.issued cannot be used")
      assert.include(wordsOf(page), "stopped")
      assert.notInclude(page.text, "<b>ca.crl.issued")
    }))

  test("shows the number of the list and the revocations that are not yet on it", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      yield* list(startsAt + 6 * day)
      assert.include(
        wordsOf(yield* withCa(issuer)(panel.ask("/ui/authorities", held))),
        "List number 7 This update 1 day ago"
      )
      yield* revocations.insert({
        issuer: id,
        serial: "0badcafe",
        now: startsAt,
        reason: undefined,
        notAfter: startsAt + day
      })
      const due = wordsOf(yield* withCa(issuer)(panel.ask("/ui/authorities", held)))
      assert.include(due, "1 revocation will be on the next list")
      assert.include(due, "due")
    }))

  test("warns of a list that has expired and of a CA that expires within ninety days", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      yield* list(startsAt)
      const words = wordsOf(
        yield* withCa(endingWith("CN=Upper CA", startsAt + 89 * day))(panel.ask("/ui/authorities", held))
      )
      assert.include(words, "The revocation list is past its next update.")
      assert.include(words, "expiring expired")
      assert.include(words, "CN=Upper CA ends in 89 days. What this CA signs cannot last longer.")
      assert.match(words, /Chain ends .* with CN=Upper CA/)
      const later = wordsOf(
        yield* withCa(endingWith("CN=Upper CA", startsAt + 90 * day))(panel.ask("/ui/authorities", held))
      )
      assert.notInclude(later, "What this CA signs cannot last longer.")
      assert.notInclude(later, "Profiles that others sign for")
    }))

  test("says that the chain of a CA has expired", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      yield* list(startsAt + 6 * day)
      const ask = (at: number) => withCa(endingWith("CN=Upper CA", at))(panel.ask("/ui/authorities", held))
      const ended = yield* ask(startsAt - day)
      assert.include(wordsOf(ended), "CN=Upper CA ended 1 day ago. Nothing that this CA has signed is valid any more")
      assert.include(ended.text, "<b class=\"bad\">ended</b>")
      assert.notInclude(ended.text, ">ok</b>")
      assert.include((yield* ask(startsAt)).text, "<b class=\"wait\">expiring</b> <b class=\"good\">ok</b>")
    }))

  test("sends the certificate and the list as they are stored", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      yield* list(startsAt + 6 * day)
      const pem = yield* withCa(issuer)(panel.ask(`/ui/authorities/${id}/ca.pem`, held))
      assert.strictEqual(pem.status, 200)
      assert.strictEqual(pem.headers["content-type"], "application/x-pem-file")
      assert.include(pem.headers["content-disposition"], `filename="ca-${id.slice(0, 16)}.pem"`)
      assert.include(pem.text, Buffer.from("certificate").toString("base64"))
      const crl = yield* withCa(issuer)(panel.ask(`/ui/authorities/${id}/ca.crl`, held))
      assert.strictEqual(crl.headers["content-type"], "application/pkix-crl")
      assert.strictEqual(crl.text, "list")
      for (const file of ["ca.pem", "ca.crl"]) {
        assert.strictEqual((yield* withCa(issuer)(panel.ask(`/ui/authorities/ee/${file}`, held))).status, 404)
        assert.strictEqual((yield* panel.ask(`/ui/authorities/${id}/${file}`)).status, 303)
      }
    }))

  test("shows the steps by which a CA is replaced, and which of them are done", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      yield* list(startsAt + 6 * day)
      const next: Issuer = { ...issuer, id: "ba".repeat(32), subject: "CN=Next CA" }
      const asked = (cas: ReadonlyArray<TimedIssuer>, query = "?count=yes") =>
        Effect.provideService(Issuers, {
          ...issuersOf(() => undefined),
          all: (profile) => profile === "default" ? cas : []
        })(
          panel.ask(`/ui/authorities/${id}${query}`, held)
        )
      const present = { from: Number.NEGATIVE_INFINITY, issuer }
      const done = (page: { readonly text: string }) =>
        [...page.text.matchAll(/<li class="done"><h3>([^<]*) </g)].map(([, title]) => title)

      const begun = yield* asked([present])
      assert.include(wordsOf(begun), "Live certificates 0")
      assert.include(wordsOf(begun), "acme-svc ca rotate --profile default --to next.pem --at TIME --write")
      assert.deepStrictEqual(done(begun), [])
      assert.include(wordsOf(yield* asked([present], "")), "Live certificates count them")

      const waiting = yield* asked([present, { from: startsAt + day, issuer: next }])
      assert.include(wordsOf(waiting), "CN=Next CA is there.")
      assert.notInclude(wordsOf(waiting), "acme-svc ca rotate")
      assert.lengthOf(done(waiting), 2)

      const over = yield* asked([{ from: undefined, issuer }, { from: startsAt - day, issuer: next }])
      assert.lengthOf(done(over), 4)
      assert.strictEqual((yield* panel.ask("/ui/authorities/ee", held)).status, 404)
    }))

  test("shows a list whose CA no profile uses any more", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      yield* list(startsAt + 6 * day)
      const page = yield* panel.ask("/ui/authorities", { ...held, headers: { "hx-request": "true" } })
      assert.include(wordsOf(page), "A CA that no profile signs with")
      assert.notInclude(page.text, "ca.pem")
      assert.notInclude(page.text, "<html")
    }))
})

describe("the page of authorities if other services sign", () => {
  const script = "custom.script_path = \"sign\"\n"
  const { test } = usePanel(
    sqlite,
    `[profiles.far.signer]\nbackend = "custom"\n${script}` +
      `[profiles.off]\nenabled = false\n[profiles.off.signer]\nbackend = "custom"\n${script}`
  )

  test("names the profiles that are served", (panel) =>
    Effect.gen(function*() {
      const told = yield* panel.ask("/ui/authorities", yield* entered(panel, "vic", "viewer"))
      const named = [...told.text.replaceAll("&#x2f;", "/").matchAll(/href="\/ui\/profiles#([\w-]+)"/g)]
      assert.deepStrictEqual(named.map(([, name]) => name), ["far"])
    }))
})
