import { describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { assert } from "vitest"
import { declaredKeys } from "../../src/engine/config/Key.ts"
import { variableOf } from "../../src/engine/config/KeyPath.ts"
import { table } from "../../src/settings/Table.ts"
import type { Sample } from "./Samples.ts"
import {
  accepted,
  booleans,
  envWith,
  fileWith,
  foundFor,
  integers,
  integersOrWords,
  minimal,
  others,
  refused,
  refusedFor,
  valueAt
} from "./Samples.ts"

const named = (key: string) => key.replace("<name>", "default")
const initials: Record<string, Sample> = {
  ...booleans,
  ...Object.fromEntries(
    Object.entries({ ...integers, ...integersOrWords }).map(([key, { initial }]) => [key, initial])
  ),
  ...Object.fromEntries(Object.entries(others).map(([key, { initial }]) => [key, initial]))
}

/** Returns a token, of which the tested key is a part. */
const roomOfToken = (key: string): Record<string, string> => {
  const others = {
    key_source: "pkcs11",
    "pkcs11.module_path": "/usr/lib/module.so",
    "pkcs11.pin_file": "/run/pin",
    ...key.endsWith(".token_label") ? {} : { "pkcs11.slot_id": 0 },
    [key.endsWith(".key_id") ? "pkcs11.key_label" : "pkcs11.key_id"]: "01"
  }
  return Object.assign(
    {},
    ...Object.entries(others).filter(([name]) => !key.endsWith(name)).map(([name, value]) =>
      envWith(`signer.local_ca.${name}`, value)
    )
  )
}

/** Returns a key of a Transit engine, of which the tested key is a part. */
const roomOfTransit = (key: string): Record<string, string> =>
  Object.assign(
    {},
    ...Object.entries({
      key_source: "transit",
      "transit.address": "https://bao.example.org",
      "transit.key": "ca",
      "transit.token_file": "/run/token"
    }).filter(([name]) => !key.endsWith(`.${name}`)).map(([name, value]) => envWith(`signer.local_ca.${name}`, value))
  )

/** Returns variables with which every valid value of the key is accepted, so that only the tested key matters. */
const room = (key: string): Record<string, string> => ({
  ...key === "server.request_timeout_ms"
    ? envWith("challenge.timeout_ms", 1)
    : envWith("server.request_timeout_ms", 2147483647),
  ...key === "database.read_url" ? envWith("database.url", "postgres://h/d") : {},
  ...key.startsWith("signer.local_ca.pkcs11.") ? roomOfToken(key) : {},
  ...key.startsWith("signer.local_ca.transit.") ? roomOfTransit(key) : {},
  ...key === "server.processes"
    ? { ...envWith("database.url", "postgres://h/d"), ...envWith("server.max_concurrent_requests", 256) }
    : {},
  ...key === "notify.expiry.to_contacts"
    ? {
      ...envWith("notify.enabled", ["email"]),
      ...envWith("notify.email.smtp_host", "localhost"),
      ...envWith("notify.email.from", "a@example.org"),
      ...envWith("notify.email.to", ["b@example.org"]),
      ...envWith("notify.expiry.lead_days", 1)
    }
    : {},
  ...key === "signer.backend" ?
    {
      ...envWith("signer.custom.script_path", "sign"),
      ...envWith("signer.relay.directory_url", "https://ca.example/directory")
    } :
    {}
})
/** Returns the range of a key that is usable here, because some timeouts must be below the request timeout. */
const usable = (key: string, [least, most]: readonly [number, number]): readonly [number, number] => [
  // -1 is no slot, and then a label is required.
  ["server.request_timeout_ms", "signer.local_ca.pkcs11.slot_id"].includes(key) ? least + 1 : least,
  /^(challenge\.(timeout|answer_wait)_ms|order\.finalize_wait_ms)$/.test(key) ? most - 1 : most
]

const same = (key: string, value: Sample) => {
  const env = room(key)
  const inFile = accepted({ fileText: fileWith(key, value), env })
  const inEnv = accepted({ env: { ...env, ...envWith(key, value) } })
  assert.deepStrictEqual(valueAt(inFile, key), value)
  assert.deepStrictEqual(valueAt(inEnv, key), value)
  assert.deepStrictEqual([inFile.sources.get(key), inEnv.sources.get(key)], ["file", "env"])
}

const bad = (key: string, value: Sample) => {
  // InUse.test.ts tests whether mistakes are refused, or only reported because their section is turned off.
  const inFile = foundFor({ fileText: fileWith(key, value), env: room(key) })
  const inEnv = foundFor({ env: { ...room(key), ...envWith(key, value) } })
  assert.strictEqual(inFile.key, key)
  assert.strictEqual(inEnv.key, key)
  assert.include(inEnv.message, `(${variableOf(key.split("."))})`)
}

describe("the values of the configuration", () => {
  it("have samples for exactly the declared keys", () => {
    const inherited = /^profiles\.<name>\..+\./
    const named =
      /^(?:admin\.)?(?:filter\.(?:check|rule)|notify\.(?:webhook|custom)|certificates\.kinds|signer\.local_ca\.others)\./
    const keys = declaredKeys(table).map(({ path }) => path.join(".")).filter((key) =>
      !inherited.test(key) && !named.test(key)
    )
    assert.deepStrictEqual(Object.keys(initials).sort(), keys.sort())
  })

  it("can be overridden by a profile only in certificates, order, renewal, limits, meta, signer, challenge, filter, ipam, notify, account and eab", () => {
    const keys = declaredKeys(table).map(({ path }) => path)
    const sections = keys.filter(([first]) => first === "profiles").map(([, , section]) => section)
    assert.deepStrictEqual([...new Set(sections)].sort(), [
      "account",
      "certificates",
      "challenge",
      "eab",
      "enabled",
      "filter",
      "ipam",
      "limits",
      "meta",
      "notify",
      "order",
      "renewal",
      "signer"
    ])
    for (
      const [first = "", ...rest] of keys.filter(([section = ""]) =>
        /^(certificates|order|renewal|meta|signer|challenge|filter|ipam|notify|account|eab)$/.test(section)
      )
    ) {
      assert.isTrue(keys.some((key) => key.join(".") === ["profiles", "<name>", first, ...rest].join(".")))
    }
  })

  it("are by default those of the documents", () => {
    const resolved = accepted({})
    for (const [key, initial] of Object.entries(initials)) {
      assert.deepStrictEqual(valueAt(resolved, named(key)), initial, key)
      assert.strictEqual(resolved.sources.get(named(key)), "default", key)
    }
    assert.deepStrictEqual([resolved.keysFromFile, resolved.keysFromEnv], [0, 0])
  })

  for (const [key, { range }] of Object.entries(integers)) {
    it(`are the same from the file and the environment for ${key}, and values outside its range are refused`, () => {
      const [min, max] = usable(key, range)
      fc.assert(fc.property(fc.integer({ min, max }), (value) => same(key, value)), {
        numRuns: 10,
        examples: [[min], [max]]
      })
      bad(key, range[0] - 1)
      bad(key, range[1] + 1)
      bad(key, "one")
      bad(key, 1.5)
      bad(key, true)
    })
  }

  for (const [key, { range: [min, max], word }] of Object.entries(integersOrWords)) {
    it(`are the same from the file and the environment for ${key}, which takes an integer of its range or ${word}`, () => {
      for (const value of [min, max, word]) same(key, value)
      for (const value of [min - 1, -1, max + 1, 1.5, "many", "", true]) {
        bad(key, value)
        assert.include(
          foundFor({ fileText: fileWith(key, value), env: room(key) }).message,
          `must be an integer, ${min} to ${max}, or "${word}"`
        )
      }
    })
  }

  for (const key of Object.keys(booleans).map(named)) {
    it(`are the same from the file and the environment for ${key}, and anything but true and false is refused`, () => {
      same(key, true)
      if (!key.startsWith("profiles.")) same(key, false)
      bad(key, "yes")
      bad(key, 1)
      bad(key, "")
    })
  }

  for (const [key, { bad: unfit, good }] of Object.entries(others)) {
    it(`are the same from the file and the environment for ${key}, and unsuitable values are refused`, () => {
      for (const value of good) same(key, value)
      for (const value of unfit) bad(key, value)
      assert.strictEqual(foundFor({ fileText: fileWith(key, 5) }).key, key)
      assert.strictEqual(foundFor({ fileText: fileWith(key, true) }).key, key)
    })
  }

  it("may be any text, which is read unchanged from the file and from the environment", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme-ascii" }), (value) => same("signer.local_ca.subject.state", value))
    )
  })

  it("may be any list of names, which is read unchanged from the file and from the environment", () => {
    fc.assert(fc.property(fc.array(fc.domain()), (value) => same("meta.caa_identities", value)))
  })

  it("are refused with the key if a number in the environment is malformed", () => {
    const notDigits = fc.string().filter((text) => !/^-?[0-9]+$/.test(text))
    fc.assert(fc.property(notDigits, (value) => bad("jobs.max_attempts", value)), {
      examples: [[""], [" 5"], ["5 "], ["+5"], ["0x5"], ["5.0"], ["5e1"], ["1_000"], ["-"]]
    })
  })

  it("keep their type in the file and are never converted", () => {
    const of = (line: string) => refusedFor({ fileText: `${line}\n${minimal}` })
    assert.deepStrictEqual(of("nonce.ttl_seconds = 5.0").message, "must be an integer")
    assert.deepStrictEqual(of("nonce.ttl_seconds = \"5\"").message, "must be an integer")
    assert.deepStrictEqual(of("nonce.ttl_seconds = 2020-01-01").message, "must be an integer")
    assert.deepStrictEqual(of("nonce.ttl_seconds = 99999999999999999999").message, "must be 1 to 2147483647")
    assert.deepStrictEqual(of("server.tls.enabled = \"true\"").message, "must be true or false")
    assert.deepStrictEqual(
      of("meta.caa_identities = \"a,b\"").message,
      "must be an array of strings, in brackets even if it is one"
    )
    assert.deepStrictEqual(
      of("meta.caa_identities = [\"a\", 1, 2]").message,
      "entry 2 must be a string; entry 3 must be a string"
    )
    assert.deepStrictEqual(
      of("[meta.caa_identities]\na = 1").message,
      "must be an array of strings, in brackets even if it is one"
    )
    assert.strictEqual(accepted({ fileText: `nonce.ttl_seconds = 0x10\n${minimal}` }).config.nonce.ttl_seconds, 16)
  })

  it("are refused with a list of the known words, which says which of them this build does not support", () => {
    const messageOf = (key: string, value: Sample) => refusedFor({ fileText: fileWith(key, value) }).message
    assert.strictEqual(
      messageOf("signer.backend", "acm"),
      "must be one of \"local_ca\", \"relay\", \"custom\", and not \"acm\""
    )
    assert.strictEqual(
      messageOf("challenge.enabled", ["dns-01", "x"]),
      "entry 2 must be one of \"http-01\", \"dns-01\", \"tls-alpn-01\", and not \"x\""
    )
  })

  it("may be words of a standard in any case, or DNS names with blanks around them", () => {
    const taken = (key: string, value: Sample) => valueAt(accepted({ fileText: fileWith(key, value) }), key)
    const dns01 = "signer.relay.dns01"
    assert.strictEqual(taken(`${dns01}.rfc2136.tsig_algorithm`, "HMAC-SHA512"), "hmac-sha512")
    assert.strictEqual(taken(`${dns01}.challenge_alias`, " acme.example.org "), "acme.example.org")
    assert.strictEqual(taken(`${dns01}.rfc2136.zone`, "example.org. "), "example.org.")
  })

  it("must give a CA at least one name, which need not be a common name", () => {
    const subject = "[signer.local_ca.subject]\ncommon_name = \"\"\n"
    assert.strictEqual(refusedFor({ fileText: `${subject}${minimal}` }).key, "signer.local_ca.subject.common_name")
    accepted({ fileText: `${subject}organization = "Example"\n${minimal}` })
  })

  it("are quoted in the normal form and without the user part if they are URLs", () => {
    const key = "signer.local_ca.crl_distribution_points"
    const [fault] = refused({ fileText: fileWith(key, ["HTTP://Crl.Example.org:80/a/../b"]) })
    assert.strictEqual(fault?.message, "entry 1 must be in normal form, which is http://crl.example.org/b")
    const [user] = refused({ fileText: fileWith(key, ["http://hunter2:swordfish@crl.example.org/"]) })
    assert.strictEqual(user?.message, "entry 1 must have no user part; the normal form is http://crl.example.org/")
  })
})
