import { Effect, Result } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { whole } from "../../../src/app/Commands.ts"
import { readWords } from "../../../src/app/commands/Usage.ts"
import { auditEvents } from "../../../src/domain/Audit.ts"
import { operatorCodes } from "../../../src/domain/OperatorProblem.ts"
import { problemRows } from "../../../src/domain/Problem.ts"
import { fields } from "../../../src/domain/words/EventField.ts"
import { events } from "../../../src/domain/words/Log.ts"
import { adminMeanings } from "../../../src/domain/words/meanings/AdminMeanings.ts"
import { auditMeanings } from "../../../src/domain/words/meanings/AuditMeanings.ts"
import { challengeMeanings } from "../../../src/domain/words/meanings/ChallengeMeanings.ts"
import { databaseMeanings } from "../../../src/domain/words/meanings/DatabaseMeanings.ts"
import type { EveryMeaning } from "../../../src/domain/words/meanings/EventMeaning.ts"
import { issuanceMeanings } from "../../../src/domain/words/meanings/IssuanceMeanings.ts"
import { notifyMeanings } from "../../../src/domain/words/meanings/NotifyMeanings.ts"
import { orderMeanings } from "../../../src/domain/words/meanings/OrderMeanings.ts"
import { policyMeanings } from "../../../src/domain/words/meanings/PolicyMeanings.ts"
import { processMeanings } from "../../../src/domain/words/meanings/ProcessMeanings.ts"
import { queueMeanings } from "../../../src/domain/words/meanings/QueueMeanings.ts"
import { requestMeanings } from "../../../src/domain/words/meanings/RequestMeanings.ts"
import { revocationMeanings } from "../../../src/domain/words/meanings/RevocationMeanings.ts"
import { upstreamMeanings } from "../../../src/domain/words/meanings/UpstreamMeanings.ts"
import { series } from "../../../src/domain/words/Series.ts"
import { declaredKeys } from "../../../src/engine/config/Key.ts"
import { variableOf } from "../../../src/engine/config/KeyPath.ts"
import { everyWord, nearestNames, wordsNamed, wordsWith } from "../../../src/operations/operator/Catalogue.ts"
import { table } from "../../../src/settings/Table.ts"
import { repository, text } from "../../support/Documents.ts"

const all = everyWord()
const root = await Effect.runPromise(whole)
const keys = declaredKeys(table).map(({ path }) => path)
const dottedKeys = new Set(keys.map((path) => path.join(".")))

/** Words in backticks that are neither keys nor events: values, members of requests and headers. */
const others = new Set([
  ...Object.keys(fields),
  "--agree-tos",
  "--log-level",
  "Allow",
  "Content-Type: application/json",
  "RUST_LOG",
  "ACME_SVC_CONFIG",
  "Retry-After",
  "certificates_expiring",
  "chmod 0600",
  "full",
  "mailto:",
  "none",
  "renewal_info",
  "replaces",
  "request_id",
  "retryable",
  "revoke",
  "x-request-id"
])

/** Every sentence of the words whose sentences are written for the catalogue. */
const sentences = all.filter(({ kind }) => kind !== "key" && kind !== "metric").flatMap(({ meaning, name, remedy }) =>
  [meaning, remedy ?? []].flat().map((sentence) => ({ name, sentence }))
)

const quotedIn = (sentence: string): ReadonlyArray<string> =>
  [...sentence.matchAll(/`([^`]+)`/g)].map(([, quoted = ""]) => quoted)

/** Returns the slug that a heading has as an anchor. */
const anchorsOf = (document: string): ReadonlyArray<string> =>
  [...text(document).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading.toLowerCase().replaceAll(/[^\w -]/g, "").replaceAll(" ", "-")
  )

describe("the catalogue", () => {
  it("has every event, error, key and metric, each of them once", () => {
    const names = (kind: string) => all.filter((word) => word.kind === kind).map(({ name }) => name)
    assert.deepStrictEqual(names("event"), Object.keys(events))
    assert.sameMembers(names("problem"), [...new Set(problemRows.flatMap(({ type }) => type ?? []))])
    assert.sameMembers(names("code"), [...new Set(operatorCodes.map(({ code }) => code))])
    assert.deepStrictEqual(names("audit_event"), [...auditEvents])
    assert.deepStrictEqual(names("metric"), Object.keys(series))
    const inherited = (path: ReadonlyArray<string>) => path[0] === "profiles" && dottedKeys.has(path.slice(2).join("."))
    assert.sameMembers(names("key"), keys.filter((path) => !inherited(path)).map((path) => path.join(".")))
  })

  it("says for every failure and advisory what to do, and for every error", () => {
    const lacking = all.filter(({ kind, outcome = "", remedy }) =>
      remedy === undefined && (["failure", "advisory"].includes(outcome) || kind === "problem" || kind === "code")
    )
    assert.deepStrictEqual(lacking.map(({ name }) => name), [])
  })

  it("declares the meaning of an event in one file alone", () => {
    const files: ReadonlyArray<Partial<EveryMeaning>> = [
      adminMeanings,
      auditMeanings,
      challengeMeanings,
      databaseMeanings,
      issuanceMeanings,
      notifyMeanings,
      orderMeanings,
      policyMeanings,
      processMeanings,
      queueMeanings,
      requestMeanings,
      revocationMeanings,
      upstreamMeanings
    ]
    assert.sameMembers(files.flatMap((file) => Object.keys(file)), Object.keys(events))
  })

  it("is written in sentences", () => {
    const wrong = sentences.filter(({ sentence }) => !/^[A-Z`].*[.]$/.test(sentence) || /\s{2}|\.\.|;;/.test(sentence))
    assert.deepStrictEqual(wrong, [])
    for (const { meaning, name } of all) assert.isNotEmpty(meaning, name)
  })

  it("names only commands that exist, with flags that they take", () => {
    let found = 0
    for (const { name, sentence } of sentences) {
      for (const quoted of quotedIn(sentence).filter((one) => one.startsWith("acme-svc "))) {
        const read = readWords(root, quoted.split(" ").slice(1))
        // A sentence may leave out what every use of the command has to say.
        if (Result.isFailure(read)) assert.match(read.failure, /^[a-z -]+ needs (?:--|<)/, `${name}: ${quoted}`)
        found++
      }
      assert.notMatch(sentence.replaceAll(/`[^`]*`/g, ""), /acme-svc [a-z]/, name)
    }
    assert.isAbove(found, 50)
  })

  it("names only keys, sections, events and words that exist", () => {
    const last = new Set(keys.map((path) => path.at(-1)))
    const isKnown = (quoted: string): boolean =>
      quoted.startsWith("acme-svc ") || dottedKeys.has(quoted) || quoted in events || last.has(quoted) ||
      others.has(quoted) || (/^\[[a-z_.]+\]$/.test(quoted) && [...dottedKeys].some((key) =>
        key.startsWith(`${quoted.slice(1, -1)}.`)
      ))
    const unknown = sentences.flatMap(({ name, sentence }) =>
      quotedIn(sentence).filter((quoted) => !isKnown(quoted)).map((quoted) => `${name}: ${quoted}`)
    )
    assert.deepStrictEqual(unknown, [])
    const said = new Set(sentences.flatMap(({ sentence }) => quotedIn(sentence)))
    assert.deepStrictEqual([...others].filter((other) => !(other in fields) && !said.has(other)), [])
  })

  it("names only documents and headings that exist", () => {
    const named = [
      ...all.flatMap(({ pages }) => pages),
      ...sentences.flatMap(({ sentence }) => sentence.match(/\bdocs\/[\w./-]+\w/g) ?? [])
    ]
    for (const page of new Set(named)) {
      const [document = "", anchor] = page.split("#")
      assert.isTrue(existsSync(join(repository, document)), page)
      if (anchor !== undefined) assert.include(anchorsOf(document), anchor, page)
    }
  })
})

describe("a word", () => {
  it("of the catalogue is found by its name", () => {
    for (const word of all) assert.deepInclude(wordsNamed(word.name), word)
  })

  it("is found by its URN, its variable, the key of a profile or of an entry, and in other letters", () => {
    const found = (given: string) => wordsNamed(given).map(({ name }) => name)
    assert.deepStrictEqual(found("urn:ietf:params:acme:error:rateLimited"), ["rateLimited"])
    assert.deepStrictEqual(found("ACME_SVC_ORDER__FINALIZE_WAIT_MS"), ["order.finalize_wait_ms"])
    assert.deepStrictEqual(found("profiles.web.order.finalize_wait_ms"), ["order.finalize_wait_ms"])
    assert.deepStrictEqual(found("profiles.web.enabled"), ["profiles.<name>.enabled"])
    assert.deepStrictEqual(found("notify.webhook.ops.url"), ["notify.webhook.<name>.url"])
    assert.deepStrictEqual(found("ACME_SVC_NOTIFY__WEBHOOK__ON_CALL__URL"), ["notify.webhook.<name>.url"])
    assert.deepStrictEqual(found("BADCSR"), ["badCSR"])
  })

  it("of the configuration is found by each of its keys, and by each variable", () => {
    for (const path of keys) {
      const written = path.map((part) => part === "<name>" ? "web-1" : part)
      assert.lengthOf(wordsNamed(written.join(".")), 1, written.join("."))
      assert.lengthOf(wordsNamed(variableOf(written)), 1, variableOf(written))
    }
  })

  it.each([
    "",
    ".",
    "profiles",
    "profiles..order.finalize_wait_ms",
    "profiles.web.database.url",
    "notify.webhook..url",
    "ACME_SVC_",
    "urn:ietf:params:acme:error:",
    "__proto__",
    "constructor",
    "toString"
  ])(
    "is not found by %j",
    (given) => {
      assert.deepStrictEqual(wordsNamed(given), [])
      assert.lengthOf(nearestNames(given), 3)
    }
  )

  it("has the facts of its kind", () => {
    const [event] = wordsNamed("job_run_abandoned")
    assert.deepInclude(event, { kind: "event", level: "error", outcome: "failure", target: "acme_svc.job" })
    assert.deepStrictEqual(event?.fields, ["kind", "job_id", "attempts", "error"])
    const [problem] = wordsNamed("serverInternal")
    assert.deepStrictEqual(problem?.statuses, [500, 503])
    assert.includeMembers([...problem?.events ?? []], ["db_statement_failed", "profile_degraded"])
    const [code] = wordsNamed("busy")
    assert.deepStrictEqual([code?.statuses, code?.events], [[503], ["db_statement_failed", "db_pool_timeout"]])
    const [key] = wordsNamed("order.finalize_wait_ms")
    assert.deepInclude(key, { default: "0", variable: "ACME_SVC_ORDER__FINALIZE_WAIT_MS", isPerProfile: true })
    assert.deepInclude(wordsNamed("database.url")[0], { isPerProfile: false })
    const [metric] = wordsNamed("acme_svc_jobs")
    assert.deepInclude(metric, { type: "gauge" })
    assert.deepStrictEqual(metric?.labels, ["kind", "status"])
  })

  it("is found by a part of its name, its meaning or its remedy", () => {
    const names = wordsWith("STANDBY").map(({ name }) => name)
    assert.includeMembers(names, ["db_standby_left", "database.read_url", "acme_svc_database_standby_reads_total"])
    assert.include(wordsWith("acme-svc migrate").map(({ name }) => name), "server_schema_behind")
    assert.deepStrictEqual(wordsWith("no word says this"), [])
  })

  it("that is unknown has three neighbours, the nearest first", () => {
    assert.deepStrictEqual(nearestNames("job_run_abandond")[0], "job_run_abandoned")
    assert.lengthOf(new Set(nearestNames("job_run_abandond")), 3)
  })
})
