import { Effect } from "effect"
import { assert, describe } from "vitest"
import { finalize } from "../../../src/operations/acme/Finalize.ts"
import { detail } from "../../../src/operations/operator/OrderRecords.ts"
import { der, makeCsr, oid } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, configOf, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { useOwnCa, work } from "../../support/Issued.ts"

/* Tests extensions that a CSR contains and that its certificate lacks. */

describe.each(databases)("further extensions in a CSR on $name", (backend) => {
  const { records, test } = useOwnCa(backend)
  const config = configOf()

  const asked = (id: string, ...value: ReadonlyArray<Uint8Array>) => der(0x30, oid(id), der(0x04, ...value))
  const yes = der(0x01, Buffer.from([255]))
  const no = der(0x01, Buffer.from([0]))
  const usages = asked("2.5.29.15", der(0x03, Buffer.from([7, 128])))
  const mustStaple = asked("1.3.6.1.5.5.7.1.24", der(0x30, der(0x02, Buffer.from([5]))))

  test("are not granted, and the log and the order report them", () =>
    Effect.gen(function*() {
      const many = Array.from({ length: 40 }, (_, at) => `1.2.3.${at}`)
      const cases: ReadonlyArray<readonly [ReadonlyArray<Uint8Array>, ReadonlyArray<string> | undefined]> = [
        [[], undefined],
        [[usages, asked("2.5.29.19", der(0x30)), asked("2.5.29.37", der(0x30))], undefined],
        [[asked("2.5.29.19", der(0x30, no))], undefined],
        [[asked("2.5.29.19", der(0x30, yes)), mustStaple, usages, mustStaple], ["basicConstraints", "must-staple"]],
        [[asked("1.2.3.4", der(0x05))], ["1.2.3.4"]],
        [many.map((id) => asked(id, der(0x05))), many.slice(0, 10)]
      ]
      for (const [extensions, expected] of cases) {
        const caller = yield* callerAt(profileOf(config))
        const { id } = yield* orderOf(caller, "a.example")
        yield* sql("UPDATE authorizations SET status = 'valid' WHERE status = 'pending'")
        yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
        records.length = 0
        yield* finalize(caller, id, makeCsr({ names: ["a.example"], extensions }).csr.toString("base64url"))
        yield* work("signer_issue")
        const { notGranted, order: { certSerial }, status } = yield* detail(config, id)
        assert.deepStrictEqual<unknown>([status, notGranted], ["valid", expected])
        const said = records.flatMap(({ event, fields }) => event === "order_extensions_not_granted" ? [fields] : [])
        const record = { order_id: id, cert_serial: certSerial, extensions: expected }
        assert.deepStrictEqual<unknown>(said, expected === undefined ? [] : [record])
      }
    }))
})
