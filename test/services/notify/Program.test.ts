import { it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { assert, describe } from "vitest"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { isFull } from "../../support/Full.ts"
import { configOf, profileOf } from "../../support/Graph.ts"
import { longEnough } from "../../support/LongEnough.ts"
import { deliver, deliveries, deliveryId, issued, payload } from "../../support/Notified.ts"
import { shellScript } from "../../support/Script.ts"

const { order } = profileOf(configOf())

const section = (path: string, more = "") =>
  `[notify]\nenabled = ["custom"]\ncustom_enabled = ["tell"]\n[notify.custom.tell]\nscript_path = "${path}"\n`
  + `timeout_ms = 20000\n${more}\n`

const told = (body: string, fields = issued(), more = "") =>
  Effect.provide(deliver("custom", "tell", fields), deliveries(section(shellScript(body), more)))

/** Waits until a process has ended or is a zombie. */
const gone = (pid: number) =>
  Effect.promise(async () => {
    while (existsSync(`/proc/${pid}`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))) await delay(20)
  })

describe("a program", () => {
  it.live("gets its data through standard input and variables, and no other variable of the service", () =>
    Effect.gen(function*() {
      const to = freshDirectory()
      yield* told(
        `cat > ${to}/in; env -0 | sort -z > ${to}/env; echo "$@" > ${to}/args`,
        issued(),
        `args = ["a b", "c"]`
      )
      assert.deepStrictEqual(JSON.parse(readFileSync(join(to, "in"), "utf8")), issued())
      assert.strictEqual(readFileSync(join(to, "args"), "utf8"), "a b c\n")
      const variables = readFileSync(join(to, "env"), "utf8").split("\0").filter((one) =>
        !/^(?:PATH|PWD|_|SHLVL|OLDPWD)?(?:=|$)/.test(one)
      )
      assert.deepStrictEqual(variables, [
        "ACME_NOTIFY_ACCOUNT_ID=a1",
        "ACME_NOTIFY_CERT_SERIAL=0badcafe",
        "ACME_NOTIFY_CLIENT_IP=192.0.2.1",
        "ACME_NOTIFY_HOOK=certificate_issued",
        "ACME_NOTIFY_IDENTIFIERS=a.example,b.example",
        "ACME_NOTIFY_ORDER_ID=o1",
        "ACME_NOTIFY_PROFILE=default"
      ])
    }))

  it.live("gets every variable for every event, and a variable without a value is empty", () =>
    Effect.gen(function*() {
      const to = freshDirectory()
      const digest = payload("certificates_expiring", { certificates: [], account_id: "x", order_id: "y" })
      yield* told(`env | grep ACME_NOTIFY_ | sort > ${to}/env`, digest)
      assert.deepStrictEqual(readFileSync(join(to, "env"), "utf8").trim().split("\n"), [
        "ACME_NOTIFY_ACCOUNT_ID=",
        "ACME_NOTIFY_CERT_SERIAL=",
        "ACME_NOTIFY_CLIENT_IP=",
        "ACME_NOTIFY_HOOK=certificates_expiring",
        "ACME_NOTIFY_IDENTIFIERS=",
        "ACME_NOTIFY_ORDER_ID=",
        "ACME_NOTIFY_PROFILE=default"
      ])
    }))

  describe("about a certificate with many names", () => {
    const longest = (count: number) =>
      Array.from({ length: count }, (_, number) => `${number}.${"x".repeat(253)}`.slice(0, 253))
    const toldOf = (identifiers: ReadonlyArray<string>) =>
      Effect.gen(function*() {
        const to = freshDirectory()
        const records: Array<Record> = []
        const script = `cat > ${to}/in; printf %s "\${ACME_NOTIFY_IDENTIFIERS-unset}" > ${to}/names`
        yield* Effect.provide(told(script, issued({ identifiers })), layerMemory(records))
        const input = JSON.parse(readFileSync(join(to, "in"), "utf8")) as { readonly identifiers: unknown }
        assert.deepStrictEqual(input.identifiers, identifiers, "the input has all names")
        return { names: readFileSync(join(to, "names"), "utf8"), records }
      })

    it.live.each([order.max_identifiers, 258])(
      "gets %i names of the maximum length in its variable",
      (count) =>
        Effect.gen(function*() {
          const { names, records } = yield* toldOf(longest(count))
          assert.strictEqual(names, longest(count).join())
          assert.deepStrictEqual(records, [])
        })
    )

    it.live.each([259, 520, 5000])(
      "is started with an empty variable for %i names, and the log reports the omission",
      (count) =>
        Effect.gen(function*() {
          const { names, records } = yield* toldOf(longest(count))
          assert.strictEqual(names, "")
          assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields]), [
            ["notify_names_omitted", {
              profile: "default",
              entry: "tell",
              hook: "certificate_issued",
              delivery_id: deliveryId,
              total: count
            }]
          ])
        })
    )
  })

  it.live.each([["never", ""], ["retry", "retry = true"]] as const)(
    "has the outcome %s with \"%s\" if it fails through its exit status, a signal or its timeout",
    ([hope, more]) =>
      Effect.gen(function*() {
        const failing = (script: string, toml = more) =>
          Effect.provide(Effect.flip(deliver("custom", "tell")), deliveries(section(shellScript(script), toml)))
        assert.deepInclude({ ...yield* failing("echo broken >&2; exit 7") }, {
          hope,
          exitCode: 7,
          detail: "exit 7: broken"
        })
        assert.deepInclude({ ...yield* failing("kill -9 $$") }, { hope, detail: "exit SIGKILL" })
        const late = Effect.provide(
          Effect.flip(deliver("custom", "tell")),
          deliveries(section(shellScript("sleep 300"), more).replace("20000", "50"))
        )
        assert.deepInclude({ ...yield* late }, { hope, detail: "did not end within 50 ms" })
      })
  )

  it.live.each([["never", ""], ["retry", "retry = true"]] as const)(
    "has the outcome %s with \"%s\" if it is removed after its start and before its interpreter opens it",
    ([hope, more]) =>
      Effect.gen(function*() {
        const interpreter = shellScript("rm \"$1\"; exec /bin/sh \"$1\"")
        const path = join(freshDirectory(), "tell")
        writeFileSync(path, `#!${interpreter}\nexit 0\n`, { mode: 0o755 })
        const failed = yield* Effect.provide(Effect.flip(deliver("custom", "tell")), deliveries(section(path, more)))
        assert.deepInclude({ ...failed }, { _tag: "DeliveryRefused", hope })
        assert.match(String("detail" in failed ? failed.detail : ""), new RegExp(`^exit \\d+: .*${path}`))
      })
  )

  it.live("is tried again if it does not exist, and is killed with its whole process group if it does not end", () =>
    Effect.gen(function*() {
      const pid = join(freshDirectory(), "pid")
      const stuck = shellScript(`sleep 300 & echo $! > ${pid}.new; mv ${pid}.new ${pid}; sleep 300`)
      const started = yield* longEnough(1000, (millis) =>
        Effect.gen(function*() {
          const failed = yield* Effect.provide(
            Effect.flip(deliver("custom", "tell")),
            deliveries(section(stuck).replace("20000", `${millis}`))
          )
          assert.deepInclude({ ...failed }, { hope: "never", detail: `did not end within ${millis} ms` })
          return existsSync(pid) ? Number(readFileSync(pid, "utf8")) : undefined
        }))
      yield* gone(started)
      const absent = yield* Effect.provide(
        Effect.flip(deliver("custom", "tell")),
        deliveries(section("/nowhere/script"))
      )
      assert.deepInclude({ ...absent }, {
        hope: "retry",
        detail: "could not be started: there is no /nowhere/script (ENOENT)"
      })
    }))

  it.live.runIf(isFull)(
    "ends normally if it prints more than is read or reads nothing of a long input",
    () =>
      Effect.gen(function*() {
        const much = issued({ user_agent: "x".repeat(1_000_000) })
        const receipt = yield* told("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2", much)
        assert.include(receipt.answer, "exit 0")
      })
  )
})
