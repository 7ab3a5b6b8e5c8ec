import { describe, it } from "@effect/vitest"
import { assert } from "vitest"
import type { Sample } from "./Samples.ts"
import { accepted, envWith, refused, refusedFor } from "./Samples.ts"

/* Tests which settings of a relay are refused. */

type Keys = { readonly [key: string]: Sample }

const secret = Buffer.from("0123456789abcdef").toString("base64")
const directory = "https://ca.example/directory"

/** A relay that proves names by dns-01, with every key that dns-01 needs. */
const sound: Keys = {
  backend: "relay",
  "relay.directory_url": directory,
  "relay.challenge_strategy": "dns01",
  "relay.dns01.rfc2136.server": "192.0.2.1:53",
  "relay.dns01.rfc2136.zone": "example.org.",
  "relay.dns01.rfc2136.tsig_key_name": "acme-key.",
  "relay.dns01.rfc2136.tsig_key_secret": secret
}

const lines = (keys: Keys) =>
  Object.entries(keys).map(([key, value]) =>
    `${key} = ${typeof value === "object" ? JSON.stringify([...value]) : JSON.stringify(value)}`
  ).join("\n")

/** Returns a file in which profiles have these `signer` sections. */
const fileOf = (profiles: { readonly [name: string]: Keys }) =>
  Object.entries(profiles).map(([name, keys]) => `[profiles.${name}.signer]\n${lines(keys)}\n`).join("")

/** Returns a file as {@link fileOf} does, with a `signer` section that every profile inherits. */
const withDefaults = (keys: Keys, profiles: { readonly [name: string]: Keys } = { a: {} }) =>
  `[signer]\n${lines(keys)}\n${fileOf(profiles)}`

const delaying = { "relay.dns01.propagation.mode": "delay" }
const rfc2136 = "relay.dns01.rfc2136"

/** A change to a valid relay, the key that is refused, and the message. */
const refusals: ReadonlyArray<readonly [what: string, change: Keys, key: string, says: RegExp]> = [
  ["no directory", { "relay.directory_url": "" }, "relay.directory_url", /^must be set while \S+backend is "relay"$/],
  ["a directory that is no URL", { "relay.directory_url": "ca.example" }, "relay.directory_url", /http or https URL/],
  [
    "a directory whose URL is not http or https",
    { "relay.directory_url": "ftp://ca.example/" },
    "relay.directory_url",
    /URL/
  ],
  ["no account key", { "relay.account_key_path": "" }, "relay.account_key_path", /must be a path/],
  ["a contact that is no address", { "relay.contact": ["pki@example.org"] }, "relay.contact", /mailto:/],
  ["an unknown strategy", { "relay.challenge_strategy": "dns-01" }, "relay.challenge_strategy", /must be one of/],
  ["no strategy", { "relay.challenge_strategy": "" }, "relay.challenge_strategy", /must be one of/],
  ["an unknown provider", { "relay.dns01.provider": "route53" }, "relay.dns01.provider", /must be one of/],
  ["no poll interval", { "relay.poll_interval_ms": 0 }, "relay.poll_interval_ms", /must be 1 to/],
  ["no poll timeout", { "relay.poll_timeout_secs": 0 }, "relay.poll_timeout_secs", /must be at least 1/],
  ...["server", "zone", "tsig_key_name", "tsig_key_secret"].map((key) =>
    [
      `dns01 without ${key}`,
      { [`${rfc2136}.${key}`]: "" },
      `${rfc2136}.${key}`,
      /^must be set while \S+ is "dns01"$/
    ] as const
  ),
  ["a server without a port", { [`${rfc2136}.server`]: "192.0.2.1" }, `${rfc2136}.server`, /must be host:port/],
  ["a zone without its final dot", { [`${rfc2136}.zone`]: "example.org" }, `${rfc2136}.zone`, /final dot/],
  ["a key name that is no DNS name", { [`${rfc2136}.tsig_key_name`]: "a key" }, `${rfc2136}.tsig_key_name`, /DNS name/],
  ["a secret in base64url", { [`${rfc2136}.tsig_key_secret`]: "-_-_" }, `${rfc2136}.tsig_key_secret`, /base64$/],
  ["a secret without padding", { [`${rfc2136}.tsig_key_secret`]: "YWI" }, `${rfc2136}.tsig_key_secret`, /base64$/],
  ["a secret with a stray bit", { [`${rfc2136}.tsig_key_secret`]: "YWJ=" }, `${rfc2136}.tsig_key_secret`, /base64$/],
  ["an unknown algorithm", { [`${rfc2136}.tsig_algorithm`]: "hmac-md5" }, `${rfc2136}.tsig_algorithm`, /must be/],
  [
    "an alias outside the zone",
    { "relay.dns01.challenge_alias": "example.net" },
    "relay.dns01.challenge_alias",
    /must be in/
  ],
  [
    "an alias whose text merely ends like the zone",
    { "relay.dns01.challenge_alias": "badexample.org" },
    "relay.dns01.challenge_alias",
    /must be in the zone example\.org\.$/
  ],
  ["an alias above the zone", { "relay.dns01.challenge_alias": "org" }, "relay.dns01.challenge_alias", /must be in/],
  [
    "an alias that is a wildcard",
    { "relay.dns01.challenge_alias": "*.example.org" },
    "relay.dns01.challenge_alias",
    /wildcard/
  ],
  [
    "an alias that begins with _acme-challenge",
    { "relay.dns01.challenge_alias": "_Acme-Challenge.example.org" },
    "relay.dns01.challenge_alias",
    /_acme-challenge/
  ],
  [
    "an unknown propagation mode",
    { "relay.dns01.propagation.mode": "poll" },
    "relay.dns01.propagation.mode",
    /must be one of/
  ],
  [
    "a delay of 0 seconds",
    { ...delaying, "relay.dns01.propagation.delay_secs": 0 },
    "relay.dns01.propagation.delay_secs",
    /must not be 0/
  ],
  [
    "a delay as long as the poll timeout",
    { ...delaying, "relay.dns01.propagation.delay_secs": 60, "relay.poll_timeout_secs": 60 },
    "relay.dns01.propagation.delay_secs",
    /^must be less than \S*poll_timeout_secs, which is 60$/
  ],
  [
    "the default delay with a shorter poll timeout",
    { ...delaying, "relay.poll_timeout_secs": 30 },
    "relay.dns01.propagation.delay_secs",
    /which is 30$/
  ],
  ["a credential without its key", { "relay.eab.kid": "kid" }, "relay.eab.hmac_key", /must be set when kid is set/],
  [
    "a key without its credential",
    { "relay.eab.hmac_key": "c2VjcmV0" },
    "relay.eab.kid",
    /must be set when hmac_key is set/
  ],
  [
    "a key that is no base64",
    { "relay.eab.kid": "kid", "relay.eab.hmac_key": "c2Vj cmV0" },
    "relay.eab.hmac_key",
    /base64/
  ],
  [
    "a key that mixes base64 and base64url",
    { "relay.eab.kid": "kid", "relay.eab.hmac_key": "-_+/" },
    "relay.eab.hmac_key",
    /base64/
  ],
  [
    "a key that encodes no octet",
    { "relay.eab.kid": "kid", "relay.eab.hmac_key": "A" },
    "relay.eab.hmac_key",
    /base64/
  ],
  ["a key that is only padding", { "relay.eab.kid": "kid", "relay.eab.hmac_key": "==" }, "relay.eab.hmac_key", /base64/]
]

describe("a relay is refused with the name of the key", () => {
  for (const [what, change, key, says] of refusals) {
    it(`if it has ${what}`, () => {
      const keys = { ...sound, ...change }
      const own = refusedFor({ fileText: fileOf({ a: keys }) })
      // If a key is missing, the refusal names the key of the process, from which a profile would inherit.
      const inherited = refusedFor({ fileText: withDefaults(keys) })
      assert.deepStrictEqual([own.key.replace("profiles.a.", ""), inherited.key], [`signer.${key}`, `signer.${key}`])
      for (const { message } of [own, inherited]) assert.match(message, says)
      // The keys of the environment are checked together with those of the profile.
      const env = Object.assign({}, ...Object.entries(change).map(([name, value]) => envWith(`signer.${name}`, value)))
      const fromEnv = refusedFor({ fileText: withDefaults(sound), env })
      assert.strictEqual(fromEnv.key, `signer.${key}`)
    })
  }

  it("if a secret is malformed, but without the secret", () => {
    const faults = refused({
      fileText: fileOf({
        a: { ...sound, [`${rfc2136}.tsig_key_secret`]: "hunter2!", "relay.eab.hmac_key": "swordfish!" }
      })
    })
    assert.notMatch(JSON.stringify(faults), /hunter2|swordfish/)
    assert.lengthOf(faults, 2)
  })
})

describe("a relay is accepted", () => {
  for (
    const [what, change] of [
      ["with the keys of the sample", {}],
      ["with a directory on plain HTTP", { "relay.directory_url": "http://ca.example:4000/directory" }],
      ["with an alias below the zone, in any case", {
        "relay.dns01.challenge_alias": "Acme.Example.ORG"
      }],
      ["with an alias that is the zone", { "relay.dns01.challenge_alias": "example.org." }],
      ["with a delay that leaves time", {
        ...delaying,
        "relay.dns01.propagation.delay_secs": 59,
        "relay.poll_timeout_secs": 60
      }],
      ["with a delay of 0 seconds if the propagation mode is none", { "relay.dns01.propagation.delay_secs": 0 }],
      ["with the algorithm hmac-sha512", { [`${rfc2136}.tsig_algorithm`]: "hmac-sha512" }],
      ["with a credential in base64url", { "relay.eab.kid": "kid", "relay.eab.hmac_key": "-_-_-w" }],
      ["with a credential in padded base64url", { "relay.eab.kid": "kid", "relay.eab.hmac_key": "-_-_-w==" }],
      ["with a credential in standard base64", { "relay.eab.kid": "kid", "relay.eab.hmac_key": "+/+/+w==" }],
      ["without the keys of dns01 if its strategy is http01", {
        "relay.challenge_strategy": "http01",
        [`${rfc2136}.server`]: "",
        [`${rfc2136}.zone`]: "",
        [`${rfc2136}.tsig_key_name`]: "",
        [`${rfc2136}.tsig_key_secret`]: ""
      }]
    ] as ReadonlyArray<readonly [string, Keys]>
  ) {
    it(what, () => {
      accepted({ fileText: fileOf({ a: { ...sound, ...change } }) })
    })
  }

  it("whatever its keys are while it is not the backend", () => {
    accepted({ fileText: fileOf({ a: { ...sound, "relay.directory_url": "", backend: "local_ca" } }) })
    accepted({ fileText: withDefaults({ "relay.eab.kid": "kid" }, { a: { backend: "local_ca" } }) })
  })

  it("if its profile is parked, and its mistakes are reported", () => {
    const parked = "[profiles]\na.enabled = false\nb.enabled = true\n"
    const fileText = `${parked}${fileOf({ a: { ...sound, "relay.directory_url": "" } })}`
    const { ignored } = accepted({ fileText })
    assert.deepStrictEqual(ignored.map(({ key }) => key), ["profiles.a.signer.relay.directory_url"])
    assert.deepStrictEqual(accepted({ fileText: `${parked}${fileOf({ a: sound })}` }).ignored, [])
  })
})

describe("one account key in two relays", () => {
  const [one, other]: ReadonlyArray<Keys> = [
    { backend: "relay", "relay.directory_url": directory },
    { backend: "relay", "relay.directory_url": "https://other.example/directory" }
  ]
  const at = (path: string): Keys => ({ "relay.account_key_path": path })

  it("is accepted if the signer sections are equal", () => {
    accepted({ fileText: fileOf({ a: { ...one }, b: { ...one } }) })
    accepted({ fileText: withDefaults({ ...sound }, { a: {}, b: {} }) })
    accepted({ fileText: withDefaults({ ...one }, { a: at("x.key"), b: at("x.key") }) })
  })

  it("is refused if the signer sections differ, and the message names the keys that differ", () => {
    assert.deepStrictEqual(refused({ fileText: fileOf({ a: { ...one }, b: { ...other } }) }), [{
      key: "profiles.b.signer.relay.account_key_path",
      message: "names the account key of profile a, but their signer sections differ in relay.directory_url; "
        + "make them the same or use another key"
    }])
    accepted({ fileText: fileOf({ a: { ...one }, b: { ...other, ...at("b.key") } }) })
  })

  it("is refused if the signer sections differ only in a secret, which is not repeated", () => {
    const bound = (hmac: string): Keys => ({ ...one, "relay.eab.kid": "kid", "relay.eab.hmac_key": hmac })
    const fault = refusedFor({ fileText: fileOf({ a: bound("aHVudGVyMg"), b: bound("c3dvcmRmaXNo") }) })
    assert.strictEqual(fault.key, "profiles.b.signer.relay.account_key_path")
    assert.include(fault.message, "differ in relay.eab.hmac_key;")
    assert.notMatch(fault.message, /aHVudGVyMg|c3dvcmRmaXNo/)
  })

  it("is refused even in a third profile, and is only reported if a profile is parked", () => {
    const third = refusedFor({ fileText: fileOf({ a: { ...one }, b: { ...one }, c: { ...other } }) })
    assert.strictEqual(third.key, "profiles.c.signer.relay.account_key_path")
    const parked = accepted({
      fileText: `[profiles]\na.enabled = false\nb.enabled = true\n${fileOf({ a: { ...one }, b: { ...other } })}`
    })
    assert.deepStrictEqual(parked.ignored.map(({ key }) => key), ["profiles.b.signer.relay.account_key_path"])
  })

  for (
    const [first, second] of [["./x.key", "x.key"], ["d/../x.key", "x.key"], ["d//x.key", "d/x.key"], [
      "d/./x.key",
      "d/x.key"
    ]] as const
  ) {
    it(`is recognised in the two spellings ${first} and ${second}`, () => {
      const fileText = fileOf({ a: { ...one, ...at(first) }, b: { ...other, ...at(second) } })
      assert.strictEqual(refusedFor({ fileText }).key, "profiles.b.signer.relay.account_key_path")
      const alike = refusedFor({ fileText: withDefaults({ ...one }, { a: at(first), b: at(second) }) })
      assert.strictEqual(alike.key, "profiles.b.signer.relay.account_key_path", "the sections differ in the spelling")
    })
  }

  it("is recognised in a relative and in an absolute path", () => {
    const fileText = fileOf({ a: { ...one, ...at("x.key") }, b: { ...other, ...at("/srv/acme/x.key") } })
    accepted({ fileText })
    assert.strictEqual(refusedFor({ fileText, cwd: "/srv/acme" }).key, "profiles.b.signer.relay.account_key_path")
  })

  it("is not checked if one profile has no relay, or while another key is wrong", () => {
    accepted({ fileText: fileOf({ a: { ...one }, b: { ...other, backend: "local_ca" } }) })
    const slow = { ...one, "relay.poll_interval_ms": 5000 }
    const wrong = refusedFor({ fileText: fileOf({ a: slow, b: { ...slow, "relay.poll_interval_ms": 0 } }) })
    assert.strictEqual(wrong.key, "profiles.b.signer.relay.poll_interval_ms")
  })
})

describe("the files of an account", () => {
  const key = "relay.account_key_path"

  it("must not be files that another section writes", () => {
    const fault = refusedFor({
      fileText: `server.tls.enabled = true\n${withDefaults({ ...sound, [key]: "server.key" })}`
    })
    assert.deepInclude(fault, { key: `signer.${key}`, message: "must not be the same file as server.tls.key_path" })
    const ca = refusedFor({ fileText: fileOf({ a: { ...sound, [key]: "./ca.key" }, b: { backend: "local_ca" } }) })
    assert.include(ca.message, "local_ca.key_path")
  })

  it("must not be the file in which the URL of another account is stored", () => {
    const profiles = { a: { ...sound, [key]: "x.key" }, b: { ...sound, [key]: "x.key.kid" } }
    assert.deepInclude(refusedFor({ fileText: fileOf(profiles) }), {
      key: `profiles.b.signer.${key}`,
      message: `must not be the file of the account's URL, which is profiles.a.signer.${key} with .kid at its end`
    })
    const list = { backend: "local_ca", "local_ca.crl_path": "x.key.kid" }
    assert.include(
      refusedFor({ fileText: fileOf({ a: { ...sound, [key]: "x.key" }, b: list }) }).key,
      "local_ca.crl_path"
    )
  })

  it("are checked only if a profile uses a relay", () => {
    accepted({ fileText: fileOf({ a: { backend: "local_ca", [key]: "server.key" } }) })
  })
})
