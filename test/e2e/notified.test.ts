import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { whole } from "../../src/app/Commands.ts"
import type { NotificationBackend, NotificationFields, Payload } from "../../src/domain/Notification.ts"
import { messageKinds, operatorScope } from "../../src/domain/Notification.ts"
import { jobKinds } from "../../src/domain/words/JobKind.ts"
import { signedPatterns } from "../../src/surfaces/acme/AcmeRoutes.ts"
import { leavesOf } from "../../src/surfaces/cli/CommandTree.ts"
import { nouns } from "../../src/surfaces/operator/Nouns.ts"
import { builtServer, databases } from "../support/Databases.ts"
import { isFull } from "../support/Full.ts"
import type { Attempt } from "../support/Inbox.ts"
import { letterFaults } from "../support/Letters.ts"
import { patternsOf } from "../support/PanelRoutes.ts"
import { routes } from "../support/Roles.ts"
import { silent } from "../support/Silent.ts"
import type { Expected } from "../support/ToldStage.ts"
import { Stage } from "../support/ToldStage.ts"
import type { Way } from "../support/ToldWay.ts"
import { surfaces } from "../support/ToldWay.ts"
import { ways } from "../support/ToldWays.ts"

/*
 * Sends every event, caused in every way, through the built service to real receivers, and prints a table of the
 * backends that got each. `ACME_TEST_LETTERS` names a folder for the mails.
 */

const chosen = ways.filter(({ isShort }) => isFull || isShort)

const nameOf = ({ entry, event, says, surface, what }: Way): string =>
  [event, says, surface, entry, what].filter((part) => part !== undefined).join(" ")

const backendsOf = ({ event }: Pick<Expected, "event">): ReadonlyArray<NotificationBackend> =>
  event === "expiry_reminder" ? ["email"] : ["webhook", "email", "custom"]

/** Returns the members of this event except those that depend on the time, which are checked here. */
const membersOf = (
  { at, certificates, delivery_id: _id, generated_at, hook: _hook, profile: _profile, ...rest }: Payload
) => {
  if (certificates === undefined) return rest
  const listed = certificates as ReadonlyArray<{ readonly days_remaining: number; readonly not_after: number }>
  const generatedAt = Number(generated_at)
  // The list is read first, and the event is queued in the same transaction.
  assert.isTrue(at - 60 < generatedAt && generatedAt <= at, `generated at ${generatedAt}, told at ${at}`)
  return {
    ...rest,
    certificates: listed.map(({ days_remaining, ...one }) => {
      assert.strictEqual(days_remaining, Math.floor((one.not_after - generatedAt) / 86_400))
      return one
    })
  }
}

const sortedText = (value: unknown): string =>
  JSON.stringify(value, (_, one: unknown) =>
    typeof one === "object" && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).toSorted(([name], [other]) => name < other ? -1 : 1))
      : one)

/** Returns the variables of a program (docs/configure/notifications.md, "Programs"). */
const variablesOf = (fields: Payload): Readonly<Record<string, string>> => {
  const { account_id, cert_serial, client_ip, hook, identifiers, order_id, profile } = fields
  const isCertificate = hook === "certificate_issued" || hook === "certificate_revoked"
  return {
    ACME_NOTIFY_HOOK: hook,
    ACME_NOTIFY_PROFILE: profile,
    ACME_NOTIFY_CLIENT_IP: String(client_ip ?? ""),
    ACME_NOTIFY_ACCOUNT_ID: String(account_id ?? ""),
    ACME_NOTIFY_ORDER_ID: String(order_id ?? ""),
    ACME_NOTIFY_CERT_SERIAL: isCertificate ? String(cert_serial) : "",
    ACME_NOTIFY_IDENTIFIERS: hook === "certificate_issued" ? (identifiers as ReadonlyArray<string>).join(",") : ""
  }
}

describe("the table of notifications", () => {
  it("has a row for each act that causes a notification, and lists the other acts", async () => {
    // An act that only reads causes no notification, as a GET does not.
    const reading = new Set(
      nouns.flatMap(({ acts }) =>
        acts.flatMap(({ cli, http }) => cli !== undefined && http?.route.startsWith("GET ") ? [cli.command] : [])
      )
    )
    const commands = leavesOf(await Effect.runPromise(whole)).map(({ path }) => path.slice(1).join(" "))
      .filter((words) => !reading.has(words))
    const declared: Readonly<Record<Way["surface"], ReadonlyArray<string>>> = {
      ACME: signedPatterns,
      worker: jobKinds,
      API: routes.filter(({ method }) => method !== "GET").map(({ method, pattern }) => `${method} ${pattern}`),
      panel: patternsOf("POST").map((pattern) => `POST ${pattern}`),
      "command line": commands
    }
    for (const surface of surfaces) {
      const telling = new Set(ways.filter((way) => way.surface === surface).map(({ entry }) => entry))
      assert.deepStrictEqual([...telling, ...silent[surface]].toSorted(), [...declared[surface]].toSorted(), surface)
    }
  })

  it("has every event, with every outcome and every change, and no row twice", () => {
    const outcomes: Readonly<Record<NotificationFields["admin_sign_in"]["outcome"], true>> = {
      succeeded_from_new_address: true,
      second_factor_refused: true,
      step_up_failed: true,
      step_up_refused: true,
      password_guessed: true,
      locked_out: true
    }
    const changes: Readonly<Record<NotificationFields["admin_credential_changed"]["change"], true>> = {
      password: true,
      second_factor_enabled: true,
      second_factor_disabled: true,
      recovery_codes_regenerated: true,
      contact_address: true
    }
    assert.sameMembers([...new Set(ways.map(({ event }) => event))], [...messageKinds])
    const said = ways.flatMap(({ says }) => says ?? [])
    assert.sameMembers([...new Set(said)], [...Object.keys(outcomes), ...Object.keys(changes)])
    assert.lengthOf(new Set(ways.map(nameOf)), ways.length)
  })
})

describe.each(databases)("an event on $name", (backend) => {
  let stage: Stage
  let attempts: ReadonlyArray<Attempt> = []
  let ended = 0
  const subjects = new Map<Way, Expected>()
  const cells = new Map<Way, ReadonlyArray<string>>()
  /** The names of the events whose mail is already in the folder that `ACME_TEST_LETTERS` names. */
  const kept = new Set<string>()
  /** The id with which each expected event arrived. */
  const ids = new Map<Expected, string>()

  beforeAll(async () => {
    await builtServer()
    stage = await Stage.start(backend)
  })
  afterAll(() => stage?.stop())

  it.each(chosen.map((way) => [nameOf(way), way] as const))("can be caused by %s", async (_, way) => {
    subjects.set(way, await way.act(stage))
  })

  it("is taken from the queue and sent", async () => {
    await stage.quiet()
    attempts = stage.inbox.attempts()
    ended = Math.floor(Date.now() / 1000)
    assert.deepStrictEqual(Object.keys(await stage.deliveries()), ["done"])
  })

  const taken = (of: NotificationBackend, id: string) =>
    attempts.filter((one) => one.backend === of && one.id === id && !one.isRefused)
  const refused = (of: NotificationBackend, id: string) =>
    attempts.filter((one) => one.backend === of && one.id === id && one.isRefused).length

  /** Returns the id of the event that arrived as expected. */
  const found = (expected: Expected): string => {
    const { event, members, scope, since } = expected
    const fits = event === "expiry_reminder"
      ? attempts.filter(({ isRefused, mail }) =>
        !isRefused && mail?.recipients.join() === expected.to.join() &&
        mail.mail.subject?.includes("expires soon") === true
      )
      : attempts.filter(({ backend: of, fields, isRefused }) =>
        of === "webhook" && !isRefused && fields?.hook === event && fields.profile === scope
        && sortedText(membersOf(fields)) === sortedText(members)
      )
    const all = attempts.filter(({ fields }) => fields?.hook === event).map(({ fields }) => fields)
    assert.lengthOf(fits, 1, `${event} ${sortedText(members)} among ${sortedText(all)}`)
    const [{ fields, id } = assert.fail("nothing fits")] = fits
    if (fields !== undefined) {
      assert.isTrue(fields.at >= since && fields.at <= ended, `${fields.at} of ${since} to ${ended}`)
    }
    ids.set(expected, id)
    return id
  }

  const judge = (expected: Expected): ReadonlyArray<string> => {
    const id = found(expected)
    const section = expected.scope === operatorScope ? "operators" : "profiles"
    const [told] = taken("webhook", id)
    return backendsOf(expected).map((of) => {
      const once = taken(of, id)
      assert.lengthOf(once, 1, `${of} ${expected.event}`)
      const [{ fields, mail, section: by, variables } = assert.fail("nothing")] = once
      assert.strictEqual(by, section)
      assert.strictEqual(stage.logged(id, of), 1)
      if (of === "custom") {
        assert.deepStrictEqual(fields, told?.fields)
        assert.deepStrictEqual(variables, variablesOf(fields ?? assert.fail("no input")))
      }
      if (mail !== undefined) {
        assert.deepStrictEqual(letterFaults(mail), [])
        assert.deepStrictEqual(mail.recipients, expected.to)
        assert.strictEqual(
          mail.mail.messageId,
          `<${id}@${section === "operators" ? "xn--bcher-kva.example" : "example.org"}>`
        )
        if (told?.fields !== undefined) assert.deepStrictEqual(mail.mail.date, new Date(told.fields.at * 1000))
        if (expected.event !== "expiry_reminder") assert.include(mail.mail.text, `Delivery: ${id}\n`)
      }
      return refused(of, id) === 0 ? "once" : `once, by attempt ${refused(of, id) + 1}`
    })
  }

  it.each(chosen.map((way) => [nameOf(way), way] as const))("is sent once to each receiver after %s", (_, way) => {
    const expected = subjects.get(way) ?? assert.fail("it did not happen")
    cells.set(way, ["✗", "✗", "✗"])
    const done = judge(expected)
    cells.set(way, expected.event === "expiry_reminder" ? ["–", done[0] ?? "", "–"] : done)
    const [letter] = taken("email", ids.get(expected) ?? "")
    const folder = process.env["ACME_TEST_LETTERS"]
    if (folder === undefined || letter?.mail === undefined) return
    mkdirSync(folder, { recursive: true })
    const name = [way.event, way.says].filter((part) => part !== undefined).join(".")
    if (!kept.has(name)) writeFileSync(join(folder, `${name}.eml`), letter.mail.raw, "latin1")
    kept.add(name)
  })

  it("is sent only if it has happened", () => {
    for (const expected of stage.expected) if (!ids.has(expected)) judge(expected)
    assert.sameMembers([...new Set(attempts.map(({ id }) => id))], [...ids.values()])
  })

  it("is sent again with the same id if it was refused", () => {
    for (const  of of["webhook", "email"] as const) {
      const again = attempts.filter((one) => one.backend === of && one.isRefused)
      assert.isAtLeast(again.length, isFull ? 9 : 7, of)
      for (const { id, fields } of again) {
        const [then] = taken(of, id)
        assert.deepStrictEqual(then?.fields, fields)
      }
    }
  })

  it("is printed in the table", () => {
    const head = ["event", "", "by", "", "", "webhook", "mail", "program"]
    const lines = [
      head,
      ...chosen.toSorted((one, other) => messageKinds.indexOf(one.event) - messageKinds.indexOf(other.event)).map((
        way
      ) => [
        way.event,
        way.says ?? "",
        way.surface,
        way.entry,
        way.what ?? "",
        ...cells.get(way) ?? ["?", "?", "?"]
      ])
    ]
    const widths = head.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)))
    const table = lines.map((line) => line.map((word, at) => word.padEnd(widths[at] ?? 0)).join("  ").trimEnd()).join(
      "\n"
    )
    process.stdout.write(`\n${backend.name}\n${table}\n`)
    assert.notMatch(table, /[?✗]/)
  })
})
