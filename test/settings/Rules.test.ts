import { describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { assert } from "vitest"
import { accepted, minimal, refused, refusedFor } from "./Samples.ts"

const milliseconds = fc.integer({ min: 1, max: 2147483647 })

describe("account.algorithms", () => {
  it("must include ES256, both for the process and for each profile", () => {
    for (
      const [at = "", key = ""] of [["[account]", "account.algorithms"], [
        "[profiles.a.account]",
        "profiles.a.account.algorithms"
      ]]
    ) {
      const fileText = `[profiles.a]\n${at}\nalgorithms = ["RS256", "EdDSA"]\n`
      assert.deepInclude(refusedFor({ fileText }), {
        key,
        message: "must name ES256, which every client may count on"
      })
    }
    const { config } = accepted({ fileText: `[profiles.a.account]\nalgorithms = ["ES384", "ES256"]\n[profiles.b]\n` })
    assert.deepStrictEqual(config.profiles.map(({ account }) => account.algorithms), [["ES384", "ES256"], [
      "ES256",
      "RS256"
    ]])
  })
})

describe("server.processes", () => {
  const postgres = `[database]\nurl = "postgres://acme@db.example/acme"\n`
  const refusalOf = (database: string, server: string) =>
    refusedFor({ fileText: `${database}[server]\n${server}\n${minimal}` })

  it("must be 1 with a SQLite file or while server.reuse_port is true", () => {
    for (const processes of ["2", `"auto"`]) {
      assert.deepStrictEqual(refusalOf("", `processes = ${processes}`), {
        key: "server.processes",
        message: "must be 1 while database.url is a SQLite file, because all processes would wait for its one writer"
      })
      assert.deepStrictEqual(refusalOf(postgres, `processes = ${processes}\nreuse_port = true`), {
        key: "server.processes",
        message: "must be 1 while server.reuse_port is true: the processes of one parent already share one socket"
      })
    }
    accepted({ fileText: `[server]\nprocesses = 1\nreuse_port = true\n${minimal}` })
    accepted({ fileText: `${postgres}[server]\nprocesses = "auto"\n${minimal}` })
  })

  it("must not be more than server.max_concurrent_requests", () => {
    assert.deepStrictEqual(refusalOf(postgres, "processes = 3\nmax_concurrent_requests = 2"), {
      key: "server.processes",
      message: "must not be more than server.max_concurrent_requests, which is 2 and is divided among the processes"
    })
    accepted({ fileText: `${postgres}[server]\nprocesses = 2\nmax_concurrent_requests = 2\n${minimal}` })
  })
})

describe("database.read_url", () => {
  it("is refused together with a SQLite file", () => {
    const read = `read_url = "postgres://reads:hunter2@db.example/acme"\n`
    for (const url of ["", `url = "sqlite://acme.db"\n`]) {
      assert.deepStrictEqual(refusedFor({ fileText: `[database]\n${url}${read}${minimal}` }), {
        key: "database.read_url",
        message: "must be empty while database.url is a SQLite file, which has no standby"
      })
    }
    accepted({ fileText: `[database]\nurl = "postgres://acme@db.example/acme"\n${read}${minimal}` })
  })
})

const limited = ["challenge.timeout_ms", "challenge.answer_wait_ms", "order.finalize_wait_ms"]

describe.each(limited)("%s", (key) => {
  it("must be below server.request_timeout_ms", () => {
    fc.assert(
      fc.property(milliseconds, fc.integer({ min: 2, max: 2 ** 31 - 1 }), (own, request) => {
        const others = key === "challenge.timeout_ms" ? "" : "challenge.timeout_ms = 1\n"
        const fileText = `${key} = ${own}\n${others}server.request_timeout_ms = ${request}\n${minimal}`
        if (own < request) return void accepted({ fileText })
        assert.deepStrictEqual(refusedFor({ fileText }), {
          key,
          message: `must be less than server.request_timeout_ms, which is ${request}`
        })
      }),
      { examples: [[5000, 5000], [4999, 5000], [5001, 5000]] }
    )
  })
})

describe("challenge.timeout_ms", () => {
  it("must be below server.request_timeout_ms in each profile as well, and is reported once if it is inherited", () => {
    const own = refusedFor({ fileText: "[profiles.a]\nchallenge.timeout_ms = 60000\n[profiles.b]\n" })
    assert.strictEqual(own.key, "profiles.a.challenge.timeout_ms")
    const inherited = refusedFor({ fileText: "server.request_timeout_ms = 5000\n[profiles.a]\n[profiles.b]\n" })
    assert.strictEqual(inherited.key, "challenge.timeout_ms")
  })

  it("is not compared with server.request_timeout_ms while either value is invalid", () => {
    const of = (fileText: string) => refused({ fileText: `${fileText}\n${minimal}` }).map(({ key }) => key)
    assert.deepStrictEqual(of("challenge.timeout_ms = 60000\nserver.request_timeout_ms = 0"), [
      "server.request_timeout_ms"
    ])
    assert.deepStrictEqual(of("challenge.timeout_ms = \"x\"\nserver.request_timeout_ms = 10"), ["challenge.timeout_ms"])
  })
})

describe("signer.custom", () => {
  const custom = (more: string) => `[profiles.a.signer]\nbackend = "custom"\n${more}`

  it("needs a program while it is the backend of the profile or of all profiles", () => {
    assert.deepStrictEqual(refusedFor({ fileText: custom("") }), {
      key: "signer.custom.script_path",
      message: "must name a program while profiles.a.signer.backend is \"custom\""
    })
    const everybody = refusedFor({ fileText: `signer.backend = "custom"\n${minimal}` })
    assert.strictEqual(everybody.key, "signer.custom.script_path")
    accepted({ fileText: custom("custom.script_path = \"sign\"") })
    accepted({ fileText: `signer.custom.script_path = "sign"\n${custom("")}` })
  })

  it("needs a timeout below server.request_timeout_ms while the program runs within requests", () => {
    for (const hook of ["supports_crl", "supports_renewal_info"]) {
      const text = custom(`custom.script_path = "sign"\ncustom.timeout_ms = 60000\n`)
      accepted({ fileText: text })
      assert.deepStrictEqual(refusedFor({ fileText: `${text}custom.${hook} = true` }), {
        key: "profiles.a.signer.custom.timeout_ms",
        message: "must be less than server.request_timeout_ms, which is 60000, while "
          + `profiles.a.signer.custom.${hook} is true`
      })
      accepted({ fileText: `server.request_timeout_ms = 60001\n${text}custom.${hook} = true` })
    }
  })

  it("may have the CA key path of another profile, because it uses no CA key", () => {
    const own = "[profiles.b.signer]\nlocal_ca.leaf_validity_days = 30\n"
    accepted({ fileText: custom("custom.script_path = \"sign\"\n") + own })
  })
})

describe("the environment variables of proxies", () => {
  const variablesOf = (env: Record<string, string>) => accepted({ env }).config.proxyVariables

  it("are read by their usual names, except HTTP_PROXY", () => {
    const none = { http_url: "", https_url: "", no_proxy: [] }
    assert.deepStrictEqual(variablesOf({ HTTP_PROXY: "http://p:1" }), none)
    assert.deepStrictEqual(variablesOf({ http_proxy: " http://p:1 " }), { ...none, http_url: "http://p:1" })
    for (const name of ["https_proxy", "HTTPS_PROXY"]) {
      assert.deepStrictEqual(variablesOf({ [name]: "http://p:1" }), { ...none, https_url: "http://p:1" })
    }
    for (const name of ["no_proxy", "NO_PROXY"]) {
      assert.deepStrictEqual(variablesOf({ [name]: "a, b:80,,c , d/e" }), { ...none, no_proxy: ["a", "b", "c"] })
    }
    assert.strictEqual(variablesOf({ http_proxy: "p.example:3128" }).http_url, "http://p.example:3128")
    assert.strictEqual(variablesOf({ https_proxy: "http://a", HTTPS_PROXY: "http://b" }).https_url, "http://a")
  })

  it("are refused if they cannot be used, unless a key replaces them", () => {
    for (const value of ["https://p:1", "socks5://p:1", "p:1/x"]) {
      assert.deepStrictEqual(refusedFor({ env: { https_proxy: value } }), {
        key: "proxy.https_url",
        message: "is not set, and the variable https_proxy is not the http:// URL of a proxy"
      })
      accepted({ fileText: `proxy.https_url = "http://p:1"\n${minimal}`, env: { https_proxy: value } })
    }
  })
})

const twoProfiles = (first: string, second: string) =>
  `[profiles.a.signer.local_ca]\n${first}\n[profiles.b.signer.local_ca]\n${second}\n`

const another = "key_path = \"b.key\"\ncert_path = \"b.pem\"\ncrl_path = \"b.crl\""

describe("one CA key in two profiles", () => {
  it("is allowed if the signer sections are equal or the keys differ", () => {
    accepted({ fileText: "[profiles.a]\n[profiles.b]" })
    accepted({ fileText: twoProfiles("leaf_validity_days = 30", "leaf_validity_days = 30") })
    accepted({ fileText: twoProfiles("leaf_validity_days = 30", another) })
  })

  it("is refused if the signer sections differ, and the message names the differences", () => {
    const fault = refusedFor({ fileText: twoProfiles("", "leaf_validity_days = 30\nsubject.state = \"x\"") })
    assert.strictEqual(fault.key, "profiles.b.signer.local_ca.key_path")
    assert.include(fault.message, "profile a")
    assert.include(fault.message, "differ in local_ca.leaf_validity_days, local_ca.subject.state;")
  })

  it("is refused if they differ only in a secret", () => {
    const fault = refusedFor({
      fileText: "[profiles.a]\nsigner.relay.eab.hmac_key = \"aHVudGVyMg\"\n[profiles.b]\n"
    })
    assert.include(fault.message, "differ in relay.eab.hmac_key;")
  })

  it("is recognised in another spelling of its path", () => {
    const fileText = twoProfiles("key_path = \"./x/../ca.key\"", "")
    assert.strictEqual(refusedFor({ fileText }).key, "profiles.b.signer.local_ca.key_path")
    const absolute = twoProfiles("key_path = \"/srv/acme/ca.key\"", "cert_path = \"b.pem\"\ncrl_path = \"b.crl\"")
    accepted({ fileText: absolute })
    assert.strictEqual(refusedFor({ fileText: absolute, cwd: "/srv/acme" }).key, "profiles.b.signer.local_ca.key_path")
  })

  it("is only reported if a profile is parked, and is not checked while another key is wrong", () => {
    const parked = accepted({
      fileText: `${twoProfiles("", "leaf_validity_days = 30")}[profiles.b]\nenabled = false`
    })
    assert.deepStrictEqual(parked.ignored.map(({ key }) => key), ["profiles.b.signer.local_ca.key_path"])
    const wrong = refusedFor({ fileText: twoProfiles("", "leaf_validity_days = 0") })
    assert.strictEqual(wrong.key, "profiles.b.signer.local_ca.leaf_validity_days")
  })
})

describe("files that the service writes", () => {
  it("must be different files", () => {
    const of = (fileText: string) => refused({ fileText: `${fileText}\n${minimal}` })
    assert.deepStrictEqual(of("signer.local_ca.crl_path = \"./ca.key\""), [{
      key: "signer.local_ca.crl_path",
      message: "must not be the same file as signer.local_ca.key_path"
    }])
    assert.deepStrictEqual(of("signer.local_ca.crl_der_path = \"ca.crl\""), [{
      key: "signer.local_ca.crl_der_path",
      message: "must not be the same file as signer.local_ca.crl_path"
    }])
    assert.deepStrictEqual(of("signer.local_ca.crl_der_path = \"x/../ca.crl.issued\""), [{
      key: "signer.local_ca.crl_der_path",
      message: "must not be the record of issued lists, which is signer.local_ca.crl_path with .issued at its end"
    }])
    for (const file of ["ca.key", "./ca.crl", "x/../ca.pem"]) {
      const [fault, ...more] = of(`audit.chain_key_path = "${file}"`)
      assert.deepStrictEqual([fault?.key, more], ["audit.chain_key_path", []])
      assert.match(fault?.message ?? "", /^must not be the same file as signer\.local_ca\.(?:key|crl|cert)_path$/)
    }
    const pair = "server.tls.enabled = true\nserver.tls.key_path = \"server.pem\""
    assert.deepStrictEqual(of(pair).map(({ key }) => key), ["server.tls.key_path"])
    const own = refusedFor({ fileText: "[profiles.a.signer.local_ca]\nkey_path = \"ca.pem\"" })
    assert.strictEqual(own.key, "profiles.a.signer.local_ca.key_path")
    assert.strictEqual(own.message, "must not be the same file as signer.local_ca.cert_path")
  })

  it("must not be the files of a CA with another key", () => {
    const of = (first: string, second: string) => refused({ fileText: twoProfiles(first, second) })
    assert.deepStrictEqual(of("", "key_path = \"b.key\"\ncert_path = \"b.pem\""), [{
      key: "profiles.b.signer.local_ca.crl_path",
      message: "is the file of profiles.a.signer.local_ca.crl_path too, but their CAs have different keys"
    }])
    assert.deepStrictEqual(of("crl_path = \"x/../b.key\"", another).map(({ key }) => key), [
      "profiles.b.signer.local_ca.key_path"
    ])
    assert.deepStrictEqual(of("", another.replace("b.pem", "ca.pem")).map(({ key }) => key), [
      "profiles.b.signer.local_ca.cert_path"
    ])
    const inDer = "crl_der_path = \"der.crl\""
    assert.deepStrictEqual(of(inDer, `${another}\n${inDer}`).map(({ key }) => key), [
      "profiles.b.signer.local_ca.crl_der_path"
    ])
    accepted({ fileText: `${twoProfiles("", another)}[profiles.c.signer.local_ca]\n${another}` })
  })
})
