import { it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import type { Scope } from "effect"
import { TestClock } from "effect/testing"
import { once } from "node:events"
import type { IncomingHttpHeaders, ServerResponse } from "node:http"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe } from "vitest"
import { Scripts } from "../../../../src/engine/host/Scripts.ts"
import { JsonGet } from "../../../../src/engine/net/JsonGet.ts"
import { Resolver } from "../../../../src/engine/net/Resolver.ts"
import type { Record as LogRecord } from "../../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../../src/engine/telemetry/EventLog.ts"
import { Policies } from "../../../../src/services/policy/Policies.ts"
import type { Decision } from "../../../../src/services/policy/Policy.ts"
import { configOf } from "../../../support/Graph.ts"
import { ordering, policiesOf } from "../../../support/Policies.ts"
import { fine, receiver } from "../../../support/Receiver.ts"
import { shellScript } from "../../../support/Script.ts"
import { selfSigned } from "../../../support/Shown.ts"

/* Tests the inventory with real servers that answer as NetBox and phpIPAM do. */

type Served = string | object | ((response: ServerResponse) => void)

interface Inventory {
  readonly url: string
  readonly asked: Array<{ readonly target: string; readonly headers: IncomingHttpHeaders }>
}

/** Starts a server that answers each target as the table says, and with 404 if the target is not in the table. */
const inventory = (table: { readonly [target: string]: Served }): Effect.Effect<Inventory, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const asked: Inventory["asked"] = []
      const server = createServer(({ headers, url = "" }, response) => {
        asked.push({ target: url, headers })
        const served = table[url]
        if (served === undefined) response.writeHead(404).end("{\"success\":false,\"code\":404}")
        else if (typeof served === "function") served(response)
        else response.end(typeof served === "string" ? served : JSON.stringify(served))
      })
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )

const status = (code: number) => (response: ServerResponse) =>
  void response.writeHead(code, { location: "/" }).end("{}")

const shown = (decision: Decision): string =>
  decision._tag === "Denied"
    ? `Denied: ${decision.detail}`
    : decision._tag === "Undecided"
    ? `Undecided: ${decision.error}`
    : "Allowed"

const records: Array<LogRecord> = []

const owning = (ipam: string) =>
  configOf(`filter.rules = ["own"]
filter.check.owned = { type = "ipam" }
filter.rule.own = { when = "owned", then = "allow" }
[ipam]
${ipam}`)

const policy = (ipam: string) => {
  records.length = 0
  return policiesOf(owning(ipam))
}

const ask = (names: ReadonlyArray<string>, ip = "192.0.2.7") =>
  Effect.map(ordering(ip, names), shown).pipe(Effect.provide(layerMemory(records)))

/** Makes an answer of the form `{ count, next, results }`. */
const page = (...results: ReadonlyArray<object>) => ({ count: results.length, next: null, previous: null, results })
const noRecord = (ip = "192.0.2.7") => `Denied: the client address ${ip} has no inventory record`
const foreign = (names: string, ip = "192.0.2.7") => `Denied: the client address ${ip} is not associated with ${names}`

describe("netbox", () => {
  const addresses = "/netbox/api/ipam/ip-addresses/?"
  const first = `${addresses}address=192.0.2.7&limit=200`
  const record = {
    id: 1,
    address: "192.0.2.7/24",
    dns_name: "Host.Example.",
    role: null,
    custom_fields: { acme_domains: ["a.example", "*.w.example"], other: 5 },
    assigned_object_type: "dcim.interface",
    assigned_object_id: 9,
    assigned_object: { id: 9, name: "eth0", device: { id: 4, name: "sw" } }
  }
  const bare = { ...record, custom_fields: { acme_domains: null } }
  const over = (
    table: { readonly [target: string]: Served },
    body: (inventory: Inventory) => Effect.Effect<void, unknown, Effect.Services<ReturnType<typeof ask>>>,
    more = "",
    token = " t0ken "
  ) =>
    Effect.gen(function*() {
      const served = yield* inventory(table)
      yield* Effect.provide(
        body(served),
        policy(`backend = "netbox"\nnetbox.url = "${served.url}/netbox/"\nnetbox.token = "${token}"\n${more}`)
      )
    })

  it.live("allows exactly the names that dns_name and the custom field of the address contain", () =>
    over({ [first]: page(record) }, ({ asked }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* ask(["host.example", "a.example", "*.w.example", "cn:anything"]), "Allowed")
        assert.strictEqual(yield* ask(["b.w.example", "a.example", "x.a.example"]), foreign("b.w.example, x.a.example"))
        assert.deepStrictEqual([...new Set(asked.map(({ target }) => target))], [first])
        assert.strictEqual(asked[0]?.headers.authorization, "Token t0ken")
        assert.strictEqual(asked.length, 2, "nothing is kept, and the device is not asked")
      })))

  it.live("tells operators where the address was looked up and which names it has", () =>
    over(
      { [first]: page(record), [`${addresses}address=192.0.2.8&limit=200`]: page() },
      ({ url }) =>
        Effect.gen(function*() {
          const finding = (ip: string) =>
            Effect.map(ordering(ip, ["b.example"]), (decision) => decision._tag === "Denied" ? decision.finding : "")
          const at = `NetBox at ${url}/netbox/api/ipam/ip-addresses/?address=192.0.2.`
          assert.strictEqual(
            yield* finding("192.0.2.7"),
            `the client address 192.0.2.7 is not associated with b.example (${at}7 has Host.Example., a.example, *.w.example)`
          )
          assert.strictEqual(
            yield* finding("192.0.2.8"),
            `the client address 192.0.2.8 has no inventory record (${at}8)`
          )
        })
    ))

  it.live("allows names that are all common names (CN) without a look-up, and denies other names if the client address is not known", () =>
    over({ [first]: page(record) }, ({ asked }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* ask(["cn:a"]), "Allowed")
        assert.strictEqual(yield* ask(["a.example"], ""), "Denied: the client address is not known")
        assert.strictEqual(asked.length, 0)
      })))

  it.live("refuses an address without a record, even if there are records of other addresses", () =>
    over(
      { [first]: page(), [`${addresses}address=192.0.2.8&limit=200`]: page(record) },
      () =>
        Effect.gen(function*() {
          assert.strictEqual(yield* ask(["a.example"]), noRecord())
          assert.strictEqual(yield* ask(["a.example"], "192.0.2.8"), noRecord("192.0.2.8"))
        })
    ))

  it.live("uses the device only if the address itself has no custom field", () =>
    over({
      [first]: page(bare),
      "/netbox/api/dcim/devices/4/": { id: 4, custom_fields: { acme_domains: "device.example" } }
    }, ({ asked }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* ask(["device.example", "host.example"]), "Allowed")
        assert.strictEqual(yield* ask(["a.example"]), foreign("a.example"))
        assert.strictEqual(asked.length, 4)
      })))

  it.live("uses the device although the address has a custom field if that field is not a source", () =>
    over({
      [first]: page(record),
      "/netbox/api/dcim/devices/4/": { id: 4, custom_fields: { acme_domains: "device.example" } }
    }, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* ask(["device.example", "host.example"]), "Allowed")
        assert.strictEqual(yield* ask(["a.example"]), foreign("a.example"))
      }), "netbox.sources = [\"dns_name\", \"device\"]"))

  it.live("uses the custom field of a virtual machine", () =>
    over({
      [first]: page({ ...bare, assigned_object: { virtual_machine: { id: 6 } } }),
      "/netbox/api/virtualization/virtual-machines/6/": { id: 6, custom_fields: { acme_domains: ["vm.example"] } }
    }, () => Effect.map(ask(["vm.example"]), (answer) => assert.strictEqual(answer, "Allowed"))))

  it.live("allows the names of virtual addresses only if their role and their device match", () => {
    const vip = (dns_name: string, role: string | null, device: number) => ({
      ...record,
      dns_name,
      address: "192.0.2.100/24",
      role: role === null ? null : { value: role, label: role },
      custom_fields: {},
      assigned_object: { device: { id: device } }
    })
    return over({
      [first]: page(record),
      [`${addresses}device_id=4&role=vip&role=carp&limit=200`]: page(
        vip("vip.example", "vip", 4),
        vip("secondary.example", "secondary", 4),
        vip("plain.example", null, 4),
        vip("foreign.example", "vip", 5)
      )
    }, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* ask(["vip.example"]), "Allowed")
        assert.strictEqual(
          yield* ask(["secondary.example", "plain.example", "foreign.example"]),
          foreign("secondary.example, plain.example, foreign.example")
        )
      }), "netbox.sources = [\"vip\"]\nnetbox.vip_roles = [\"vip\", \"carp\"]")
  })

  it.live("reads every page of each query by offset, and never follows a link of the server", () => {
    const vips = Array.from({ length: 51 }, (_, index) => ({
      ...record,
      dns_name: `vip${index}.example`,
      role: { value: "vip" },
      custom_fields: {}
    }))
    const groups = Array.from({ length: 51 }, (_, index) => ({
      interface_type: "dcim.interface",
      interface_id: 9,
      group: { id: index }
    }))
    // This server returns at most fifty records, whatever the request says, and its links point to another host.
    const paged = (target: string, all: ReadonlyArray<object>) => ({
      [`${target}&limit=200`]: { count: all.length, next: "http://192.0.2.1/", results: all.slice(0, 50) },
      [`${target}&limit=200&offset=50`]: { count: all.length, next: null, results: all.slice(50) }
    })
    const ofGroup = (id: number) => ({
      ...record,
      dns_name: `group${id}.example`,
      assigned_object_type: "ipam.fhrpgroup",
      assigned_object_id: id
    })
    return over(
      {
        [first]: page(record),
        ...paged(`${addresses}device_id=4&role=vip`, vips),
        ...paged("/netbox/api/ipam/fhrp-group-assignments/?interface_type=dcim.interface&interface_id=9", groups),
        ...Object.fromEntries(
          groups.map((_, id) => [`${addresses}fhrpgroup_id=${id}&limit=200`, page(ofGroup(id))])
        )
      },
      () =>
        Effect.gen(function*() {
          assert.strictEqual(yield* ask(["vip50.example", "group50.example"]), "Allowed")
        }),
      "netbox.sources = [\"vip\", \"fhrp\"]\nnetbox.vip_roles = [\"vip\"]\ntimeout_ms = 60000"
    )
  })

  it.live("reads at most ten thousand records, because a server that does not know a filter returns all of them", () => {
    const endless = Array.from({ length: 2500 }, () => record)
    return over(
      Object.fromEntries(
        [0, 2500, 5000, 7500, 10_000].map((offset) => [
          `${first}${offset === 0 ? "" : `&offset=${offset}`}`,
          { next: "http://x/", results: endless.map(({ address }) => ({ address })) }
        ])
      ),
      ({ asked, url }) =>
        Effect.gen(function*() {
          assert.strictEqual(
            yield* ask(["a.example"]),
            `Undecided: NetBox at ${url}${first}&offset=7500 has more than 10000 records`
          )
          assert.strictEqual(asked.length, 4)
        }),
      "timeout_ms = 60000"
    )
  })

  it.live("uses only the redundancy groups of the client's own interface", () => {
    const assignment = (interface_id: number, group: number, interface_type = "dcim.interface") => ({
      interface_type,
      interface_id,
      group: { id: group }
    })
    const ofGroup = (dns_name: string, id: number) => ({
      ...record,
      dns_name,
      custom_fields: {},
      assigned_object_type: "ipam.fhrpgroup",
      assigned_object_id: id,
      assigned_object: { id }
    })
    return over({
      [first]: page(record),
      "/netbox/api/ipam/fhrp-group-assignments/?interface_type=dcim.interface&interface_id=9&limit=200": page(
        assignment(9, 1),
        assignment(10, 2),
        assignment(9, 3, "virtualization.vminterface")
      ),
      [`${addresses}fhrpgroup_id=1&limit=200`]: page(ofGroup("group.example", 1), ofGroup("other.example", 2))
    }, ({ asked }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* ask(["group.example"]), "Allowed")
        assert.strictEqual(yield* ask(["other.example"]), foreign("other.example"))
        assert.strictEqual(asked.length, 6)
      }), "netbox.sources = [\"fhrp\"]")
  })

  it.live("sends newer tokens as bearer tokens", () =>
    over(
      { [first]: page(record) },
      ({ asked }) =>
        Effect.map(ask(["a.example"]), () =>
          assert.strictEqual(asked[0]?.headers.authorization, "Bearer nbt_key.secret")),
      "",
      "nbt_key.secret"
    ))

  const refusing = (code: number, body: string) => (response: ServerResponse) =>
    void response.writeHead(code, { location: "/" }).end(body)
  const silence = ": no answer within 300 ms (ipam.timeout_ms)"
  const elsewhere = "is ipam.netbox.url right?"
  const failures: ReadonlyArray<readonly [string, Served, string]> = [
    [
      "an error",
      refusing(500, `Traceback:\n t0ken ${"x".repeat(182)} t0ken`),
      ` answers with status 500: Traceback: *** ${"x".repeat(182)} **`
    ],
    [
      "a refused token",
      refusing(403, "{\"detail\":\"Invalid token\"}"),
      " answers with status 403: {\"detail\":\"Invalid token\"}; "
      + "look at ipam.netbox.token: it was sent as Token, since it does not begin with nbt_"
    ],
    ["404", refusing(404, ""), ` answers with status 404; ${elsewhere}`],
    ["a redirect", refusing(302, ""), ` answers with status 302; ${elsewhere}`],
    ["no JSON", "<html>", ` answers with something that is not JSON: <html>; ${elsewhere}`],
    [
      "another form",
      { results: [{ address: 5 }] },
      " answers in a form that is not expected: {\"results\":[{\"address\":5}]}"
    ],
    [
      "an empty page that is not the last",
      { ...page(), next: "http://x/" },
      " gave a page without records that is not the last"
    ],
    ["a page that lacks records", { ...page(record), count: 2 }, " has 2 records and gave 1"],
    ["a megabyte", JSON.stringify("x".repeat(1_048_576)), " answers with more than 1048576 bytes"],
    ["silence", () => {}, silence]
  ]
  it.live.each(failures)(
    "is undecided after %s",
    ([, served, detail]) =>
      over({ [first]: served }, ({ url }) =>
        Effect.gen(function*() {
          const target = detail === silence ? first.replace("&limit=200", "") : first
          const error = `NetBox at ${url}${target}${detail}`
          assert.strictEqual(yield* ask(["a.example"]), `Undecided: ${error}`)
          assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields]), [
            ["ipam_lookup_failed", { backend: "netbox", error }]
          ])
          assert.notInclude(JSON.stringify(records), "t0ken")
        }), detail === silence ? "timeout_ms = 300" : "")
  )
})

describe("netbox over TLS", () => {
  it.live("names the key to set if the certificate is not trusted", () =>
    Effect.gen(function*() {
      const { port } = yield* receiver(fine, yield* selfSigned("localhost"))
      const told = yield* ask(["a.example"]).pipe(
        Effect.provide(
          policy(`backend = "netbox"\nnetbox.url = "https://localhost:${port}"\nnetbox.token = "t0ken"`)
        )
      )
      assert.match(
        told,
        /^Undecided: NetBox at https:\/\/localhost:\S+ self-signed certificate; ipam\.netbox\.ca_cert_path may/
      )
    }))
})

describe("phpipam", () => {
  const first = "/api/acme/addresses/search/192.0.2.7/"
  const found = (...data: ReadonlyArray<object>) => ({ code: 200, success: true, data })
  const record = {
    id: "1",
    ip: "192.0.2.7",
    hostname: "host.example",
    deviceId: "4",
    custom_acme_domains: "a.example, B.example ,,"
  }
  const over = (
    table: { readonly [target: string]: Served },
    body: (inventory: Inventory) => Effect.Effect<void, unknown, Effect.Services<ReturnType<typeof ask>>>,
    more = ""
  ) =>
    Effect.gen(function*() {
      const served = yield* inventory(table)
      yield* Effect.provide(
        body(served),
        policy(`backend = "phpipam"
phpipam.url = "${served.url}"
phpipam.token = "c0de"
timeout_ms = 2000
${more}`)
      )
    })

  it.live("allows the names of the address, from the host name and the custom field", () =>
    over({ [first]: found(record) }, ({ asked }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* ask(["host.example", "a.example", "b.example"]), "Allowed")
        assert.strictEqual(yield* ask(["c.example"]), foreign("c.example"))
        assert.strictEqual(asked[0]?.headers.token, "c0de")
        assert.strictEqual(asked.length, 2)
      })))

  it.live("uses the phpipam device only if the address itself has no custom field", () =>
    over({
      [first]: found({ ...record, custom_acme_domains: null }),
      "/api/acme/devices/4/": { code: 200, success: true, data: { custom_acme_domains: "device.example" } }
    }, () => Effect.map(ask(["device.example"]), (answer) => assert.strictEqual(answer, "Allowed"))))

  it.live("uses the phpipam device although the address has a custom field if that field is not a source", () =>
    over({
      [first]: found(record),
      "/api/acme/devices/4/": { code: 200, success: true, data: { custom_acme_domains: "device.example" } }
    }, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* ask(["device.example", "host.example"]), "Allowed")
        assert.strictEqual(yield* ask(["a.example"]), foreign("a.example"))
      }), "phpipam.sources = [\"dns_name\", \"device\"]"))

  it.live("treats 404 and the record of another address as no record, and the id 0 as no device", () =>
    over({
      "/api/acme/addresses/search/192.0.2.8/": found(record),
      "/api/acme/addresses/search/192.0.2.9/": found({ ip: "192.0.2.9", hostname: null, deviceId: "0" }),
      "/api/acme/addresses/search/2001%3Adb8%3A%3A1/": found({ ...record, ip: "2001:DB8:0::1" })
    }, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* ask(["a.example"]), noRecord())
        assert.strictEqual(yield* ask(["a.example"], "192.0.2.8"), noRecord("192.0.2.8"))
        assert.strictEqual(yield* ask(["a.example"], "192.0.2.9"), foreign("a.example", "192.0.2.9"))
        assert.strictEqual(yield* ask(["a.example"], "2001:db8::1"), "Allowed")
      })))

  it.live("reads custom fields within custom_fields, columns that are lists, and ids with blanks", () =>
    over({
      [first]: found({
        ip: "192.0.2.7",
        deviceId: " 3 ",
        hostname: null,
        custom_fields: { custom_acme_domains: null }
      }),
      "/api/acme/devices/3/": {
        code: 200,
        success: true,
        data: { custom_fields: { custom_acme_domains: ["a.example", "b.example,c.example", 5] } }
      }
    }, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* ask(["a.example", "b.example", "c.example"]), "Allowed")
        assert.strictEqual(yield* ask(["d.example"]), foreign("d.example"))
      })))

  it.live.each<readonly [string, Served, string]>([
    ["an empty list", { code: 200, success: true, data: [] }, noRecord()],
    ["nothing", { code: 200, success: true }, noRecord()],
    ["its own 404 with status 200", { code: 404, success: 0, message: "Address not found" }, noRecord()],
    ["one record", { code: 200, success: true, data: record }, "Allowed"],
    ["a list with gaps", { code: 200, success: true, data: { 0: { ip: "192.0.2.70" }, 2: record } }, "Allowed"]
  ])("reads data that PHP writes in another form: %s", ([, served, expected]) =>
    over(
      { [first]: served },
      () => Effect.map(ask(["a.example"]), (answer) => assert.strictEqual(answer, expected))
    ))

  it.live("finds no names at a device without data", () =>
    over({
      [first]: found({ ...record, hostname: null, custom_acme_domains: null }),
      "/api/acme/devices/4/": { code: 200, success: true, data: [] }
    }, () => Effect.map(ask(["a.example"]), (answer) => assert.strictEqual(answer, foreign("a.example")))))

  it.live.each<readonly [string, string]>([
    ["of a web server", "<html>Not Found</html>"],
    ["of a gateway", "{\"code\":404,\"message\":\"no route\"}"],
    ["without a body", ""]
  ])("is undecided after a 404 %s, for an address and for its device", ([, body]) => {
    const absent = (response: ServerResponse) => void response.writeHead(404).end(body)
    const said = `answers with status 404${body === "" ? "" : `: ${body}`}; is ipam.phpipam.url right?`
    return Effect.gen(function*() {
      yield* over(
        { [first]: absent },
        ({ url }) =>
          Effect.map(
            ask(["a.example"]),
            (answer) => assert.strictEqual(answer, `Undecided: phpIPAM at ${url}${first} ${said}`)
          )
      )
      const device = "/api/acme/devices/4/"
      yield* over(
        { [first]: found({ ...record, custom_acme_domains: null }), [device]: absent },
        ({ url }) =>
          Effect.map(
            ask(["a.example"]),
            (answer) => assert.strictEqual(answer, `Undecided: phpIPAM at ${url}${device} ${said}`)
          )
      )
    })
  })

  const unfit = "answers in a form that is not expected: "
  it.live.each<readonly [string, Served]>([
    [
      "answers with status 401: {}; look at ipam.phpipam.token: it was sent as the code of the app acme",
      status(401)
    ],
    ["answers with status 500: {}", status(500)],
    ["answers with status 301: {}; is ipam.phpipam.url right?", status(301)],
    [
      "says that it failed: {\"success\":false,\"code\":500,\"message\":\"Invalid ***\"}",
      { success: false, code: 500, message: "Invalid c0de" }
    ],
    [`${unfit}[]`, "[]"],
    [unfit, { ...found(record), code: "x" }],
    [unfit, { ...found(record), code: "" }],
    [unfit, { ...found(record), code: " " }],
    ["answers with something that is not JSON", ""]
  ])(
    "is undecided and says that phpIPAM %s (%j)",
    ([detail, served]) =>
      over({ [first]: served }, ({ url }) =>
        Effect.map(ask(["a.example"]), (answer) => {
          const said = `Undecided: phpIPAM at ${url}${first} ${detail}`
          if (detail === unfit) assert.isTrue(answer.startsWith(`${said}{"code":`), answer)
          else assert.strictEqual(answer, said)
        }))
  )
})

describe("custom", () => {
  const over = (body: string, more = "timeout_ms = 20000", path = shellScript(body)) =>
    policy(`backend = "custom"\ncustom.script_path = "${path}"\n${more}\ncustom.args = ["x y"]`)

  it.live("reads one name from each line", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* ask(["a.example", "b.example"]), "Allowed")
      assert.strictEqual(yield* ask(["c.example"]), foreign("c.example"))
    }).pipe(Effect.provide(over("printf 'A.example.\\r\\n\\n  b.example  \\n'"))))

  it.live("gives the script the address in the environment and the input, and the arguments", () =>
    Effect.map(
      ask(["names_for-192.0.2.7", "x y", "{\"hook\":\"names_for\",\"client_ip\":\"192.0.2.7\"}"]),
      (answer) => assert.strictEqual(answer, "Allowed")
    ).pipe(
      Effect.provide(over("echo $ACME_IPAM_HOOK-$ACME_IPAM_CLIENT_IP; echo \"$1\"; cat"))
    ))

  it.live.each([
    ["exit 0", foreign("a.example")],
    ["echo a.example; exit 3", noRecord()],
    ["echo a.example; exit 1", "Undecided: the script PATH ended with 1: a.example"],
    ["echo a.example; echo '  no route' >&2; exit 2", "Undecided: the script PATH ended with 2: no route"],
    ["kill -KILL $$", "Undecided: the script PATH ended with SIGKILL"],
    [
      "exec sleep 100",
      "Undecided: the script PATH: no answer within 300 ms (ipam.timeout_ms)",
      "timeout_ms = 300"
    ],
    ["echo a.example; head -c 1048570 /dev/zero | tr '\\0' x", "Undecided: the script PATH printed too much"]
  ])(
    "runs the script %s with the result %s",
    ([body, expected, more]) => {
      const path = shellScript(body ?? "")
      return Effect.map(
        ask(["a.example"]),
        (answer) => assert.strictEqual(answer, expected?.replace("PATH", path))
      ).pipe(Effect.provide(over("", more, path)))
    }
  )

  it.effect("may wait for its turn as long as it may then run", () =>
    Effect.gen(function*() {
      const names = Buffer.from("a.example")
      const scripts = Scripts.layerScripted(({ timeoutMillis }) =>
        Effect.delay(Effect.succeed({ exit: 0, stdout: names, stderr: Buffer.alloc(0) }), 2 * timeoutMillis - 1)
      )
      const { profiles } = owning(`backend = "custom"\ncustom.script_path = "x"`)
      const layer = Policies.layer(profiles).pipe(
        Layer.provide(Layer.mergeAll(scripts, Layer.mock(JsonGet, {}), Resolver.layerStatic({}))),
        Layer.orDie
      )
      const asked = yield* Effect.forkChild(Effect.provide(ask(["a.example"]), layer), { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* Fiber.join(asked), "Allowed")
    }))
})
