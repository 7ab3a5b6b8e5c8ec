import { Schema } from "effect"
import { assert, describe, it } from "vitest"
import {
  Cancelled,
  CertificateMissing,
  IssuerNotServed,
  JobFailure,
  ListNotSigned,
  ListsOvertaken,
  NotDelivered,
  ProfileNotServed,
  shown,
  SignerFailed,
  TargetNotServed,
  ValidationPostponed
} from "../../src/domain/JobFailure.ts"
import {
  AttemptsUsedUp,
  BudgetSpent,
  DatabaseFailed,
  DeadlinePassed,
  Panicked,
  PayloadUnreadable,
  RowUnreadable
} from "../../src/engine/queue/Outcome.ts"

const read = Schema.decodeUnknownSync(Schema.fromJsonString(JobFailure))

/*
 * Each failure with the text that the log and the lists show, and with the text in its row, which other versions read.
 */
const each: ReadonlyArray<readonly [failure: JobFailure, text: string, row: string]> = [
  [new DeadlinePassed(), "deadline passed", `{"_tag":"DeadlinePassed"}`],
  [new AttemptsUsedUp(), "the attempts are used up", `{"_tag":"AttemptsUsedUp"}`],
  [new PayloadUnreadable(), "the payload cannot be read", `{"_tag":"PayloadUnreadable"}`],
  [new BudgetSpent(), "the attempt took longer than its budget", `{"_tag":"BudgetSpent"}`],
  [
    new DatabaseFailed({ detail: "order_issue: disk I/O error" }),
    "order_issue: disk I/O error",
    `{"_tag":"DatabaseFailed","detail":"order_issue: disk I/O error"}`
  ],
  [new Panicked({ detail: "Error: boom" }), "Error: boom", `{"_tag":"Panicked","detail":"Error: boom"}`],
  [
    new ProfileNotServed({ profile: "other" }),
    "profile other is not mounted here",
    `{"_tag":"ProfileNotServed","profile":"other"}`
  ],
  [
    new SignerFailed({ cause: "script_failed", detail: "the HSM is away" }),
    "script_failed: the HSM is away",
    `{"_tag":"SignerFailed","cause":"script_failed","detail":"the HSM is away"}`
  ],
  [
    new SignerFailed({ cause: "upstream_refused", detail: "no", problemType: "rejectedIdentifier" }),
    "upstream_refused: rejectedIdentifier: no",
    `{"_tag":"SignerFailed","cause":"upstream_refused","detail":"no","problemType":"rejectedIdentifier"}`
  ],
  [new CertificateMissing(), "the order has no certificate", `{"_tag":"CertificateMissing"}`],
  [new Cancelled(), "cancelled by an operator", `{"_tag":"Cancelled"}`],
  [
    new ValidationPostponed({ detail: "no descriptor is left" }),
    "no descriptor is left",
    `{"_tag":"ValidationPostponed","detail":"no descriptor is left"}`
  ],
  [
    new IssuerNotServed({ issuer: "05ec0d" }),
    "no profile here signs with the CA 05ec0d",
    `{"_tag":"IssuerNotServed","issuer":"05ec0d"}`
  ],
  [
    new ListNotSigned({ detail: "the CA key did not sign" }),
    "the CA key did not sign",
    `{"_tag":"ListNotSigned","detail":"the CA key did not sign"}`
  ],
  [new ListsOvertaken(), "other workers stored their lists first", `{"_tag":"ListsOvertaken"}`],
  [
    new RowUnreadable({ detail: "deadline: holds number" }),
    "the row of the job cannot be read: deadline: holds number",
    `{"_tag":"RowUnreadable","detail":"deadline: holds number"}`
  ],
  [
    new NotDelivered({ detail: "answered 404: no", status: 404 }),
    "answered 404: no",
    `{"_tag":"NotDelivered","detail":"answered 404: no","status":404}`
  ],
  [new NotDelivered({ detail: "exit 1" }), "exit 1", `{"_tag":"NotDelivered","detail":"exit 1"}`],
  [
    new TargetNotServed({ scope: "default", target: "webhook/chat" }),
    "webhook/chat of default is not configured here",
    `{"_tag":"TargetNotServed","scope":"default","target":"webhook/chat"}`
  ]
]

describe("a failure of a job", () => {
  it("is in the list of this file, whatever its kind", () => {
    const known = JobFailure.members.map(({ fields }) => fields._tag.schema.literal)
    assert.sameMembers([...new Set(each.map(([failure]) => failure._tag))], known)
  })

  for (const [failure, text, row] of each) {
    it(`is stored, read and shown as ${row}`, () => {
      assert.strictEqual(failure.text, text)
      assert.strictEqual(failure.row, row)
      assert.deepStrictEqual(read(row), failure)
      assert.strictEqual(shown(row), text)
    })
  }

  it("is complete in the log, and is shortened where it is stored and shown", () => {
    const failure = new SignerFailed({ cause: "upstream_refused", detail: "\"long\" ".repeat(1000) })
    assert.lengthOf(failure.text, "upstream_refused: ".length + 7000)
    assert.strictEqual(shown(failure.row), failure.text.slice(0, 2000))
    assert.isBelow(failure.row.length, 3000)
  })

  it("can be stored even if its text contains characters that a database does not accept", () => {
    for (const detail of ["\u0000", `${"a".repeat(1999)}😀`, "\ud83d"]) {
      const { row, text } = new Panicked({ detail })
      assert.notMatch(row, /\p{Surrogate}|\0/u)
      assert.strictEqual(shown(row), text.slice(0, 2000))
    }
  })

  it("is shown unchanged if another version wrote it or if it is damaged", () => {
    for (
      const row of [
        "deadline passed",
        "upstream_refused: rejectedIdentifier: no such name",
        "script_failed: exit 1: {\"_tag\":\"Cancelled\"}",
        "",
        "null",
        "17",
        "\"DeadlinePassed\"",
        "{}",
        "[{\"_tag\":\"DeadlinePassed\"}]",
        "{\"_tag\":\"DeadlinePassed\"",
        "{\"_tag\":\"OfLater\",\"detail\":\"words\"}",
        "{\"_tag\":\"SignerFailed\",\"cause\":\"of_later\",\"detail\":\"words\"}",
        "{\"_tag\":\"SignerFailed\",\"cause\":\"script_failed\"}",
        "{\"_tag\":\"Panicked\",\"detail\":17}"
      ]
    ) assert.strictEqual(shown(row), row)
  })

  it("is read even if a newer version has added members", () => {
    assert.strictEqual(shown("{\"_tag\":\"DeadlinePassed\",\"by\":17}"), "deadline passed")
  })
})
