import { describe, it } from "@effect/vitest"
import { Array, Option } from "effect"
import * as fc from "fast-check"
import { isIP } from "node:net"
import { assert } from "vitest"
import type { IpAddress } from "../../../src/engine/net/Address.ts"
import {
  candidates,
  contains,
  embedded,
  familyOf,
  makeAddressPolicy,
  parseAddress,
  parseCidr,
  parseNameserver
} from "../../../src/engine/net/Address.ts"
import { metadataServices } from "../../../src/engine/net/MetadataServices.ts"
import { deniedByDefault } from "../../settings/Samples.ts"
import { prop } from "../../support/Property.ts"

const ip = (text: string): IpAddress => Option.getOrElse(parseAddress(text), () => assert.fail(`${text} is an address`))
const ips = (...texts: ReadonlyArray<string>) => texts.map(ip)

describe("parseAddress", () => {
  for (
    const [text, canonical] of [
      ["127.0.0.1", "127.0.0.1"],
      ["::", "::"],
      ["::1", "::1"],
      ["1::", "1::"],
      ["0:0:0:0:0:0:0:1", "::1"],
      ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
      ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
      ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
      ["10:0:0:0:0:0:0:20", "10::20"],
      ["::ffff:10.0.0.1", "::ffff:10.0.0.1"],
      ["::FFFF:a00:1", "::ffff:10.0.0.1"],
      ["64:ff9b::10.0.0.1", "64:ff9b::a00:1"]
    ] as const
  ) it(`reads ${text} as ${canonical}`, () => assert.strictEqual<string>(ip(text), canonical))

  for (
    const text of [
      "",
      "1.2.3",
      "1.2.3.4.5",
      "01.2.3.4",
      "256.0.0.1",
      "0x7f.0.0.1",
      "127.1",
      "2130706433",
      "1.2.3.4 ",
      "[::1]",
      "fe80::1%eth0",
      ":",
      ":::",
      "1::2::3",
      "1:2:3:4:5:6:7",
      "1:2:3:4:5:6:7:8:9",
      "1:2:3:4:5:6:7::8",
      "::12345",
      "::1.2.3",
      "1.2.3.4::",
      "::g",
      "localhost"
    ]
  ) it(`refuses ${JSON.stringify(text)}`, () => assert.isTrue(Option.isNone(parseAddress(text))))
})

prop(
  "a text is an address if and only if Node.js reads it as one, and each address has one spelling",
  [fc.oneof(fc.ipV4(), fc.ipV6(), fc.stringMatching(/^[0-9a-f:.]{0,20}$/))],
  ([text]) => {
    const parsed = Option.getOrUndefined(parseAddress(text))
    if (parsed === undefined || isIP(text) === 0) return parsed === undefined && isIP(text) === 0
    return familyOf(parsed) === isIP(text) && Option.getOrUndefined(parseAddress(parsed)) === parsed &&
      // The URL class of Node.js writes the form of RFC 5952, but writes mapped addresses in hexadecimal.
      (familyOf(parsed) === 4 || parsed.includes(".") || new URL(`http://[${text}]/`).hostname === `[${parsed}]`)
  }
)

describe("a range of addresses", () => {
  for (
    const text of ["10.0.0.0/33", "::/129", "10.0.0.0/08", "10.0.0.0/", "10.0.0.0/8/8", "a/8", "/8", "10.0.0.0/-1"]
  ) {
    it(`is not read from ${text}`, () => assert.isTrue(Option.isNone(parseCidr(text))))
  }
  const holds = (range: string, address: string) =>
    contains(Option.getOrElse(parseCidr(range), () => assert.fail(range)), ip(address))
  it("ends where its prefix says", () => {
    assert.isTrue(holds("10.0.0.0/8", "10.255.255.255"))
    assert.isFalse(holds("10.0.0.0/8", "11.0.0.0"))
    assert.isTrue(holds("10.9.9.9/8", "10.0.0.1"))
    assert.isTrue(holds("fe80::/10", "febf::1"))
    assert.isFalse(holds("fe80::/10", "fec0::1"))
    assert.isTrue(holds("0.0.0.0/0", "8.8.8.8"))
    assert.isTrue(holds("::/0", "2001:db8::1"))
    assert.isTrue(holds("192.0.2.1", "192.0.2.1"))
    assert.isFalse(holds("192.0.2.1", "192.0.2.2"))
  })
  it("contains only addresses of its own family", () => {
    assert.isFalse(holds("::/0", "10.0.0.1"))
    assert.isFalse(holds("0.0.0.0/0", "::ffff:10.0.0.1"))
  })
})

describe("the policy of addresses", () => {
  const check = (address: string, options: { denied?: Array<string>; allowed?: Array<string> } = {}) =>
    makeAddressPolicy({ denied: options.denied ?? deniedByDefault, allowed: options.allowed ?? [] }).check(ip(address))

  it("denies each default range by a separate entry", () => {
    const samples = [
      "0.1.2.3",
      "169.254.169.254",
      "239.1.1.1",
      "255.255.255.255",
      "::",
      "fe80::1",
      "ff02::1",
      ...metadataServices.map((service) => service.split("/")[0] ?? "")
    ]
    assert.deepStrictEqual(samples.map((sample) => check(sample)), [...deniedByDefault])
  })
  it("denies the mapped, translated, NAT64 and 6to4 forms of a denied address", () => {
    const forms = [
      "::ffff:169.254.169.254",
      "::ffff:0:169.254.169.254",
      "64:ff9b::169.254.169.254",
      "2002:a9fe:a9fe::1"
    ]
    for (const form of forms) assert.strictEqual(check(form), "169.254.0.0/16", form)
    assert.strictEqual(check("::ffff:0:100.100.100.200"), "100.100.100.200/32")
    assert.strictEqual(check("2002:a00:1::1", { denied: ["2002::/16"] }), "2002::/16")
  })
  it("allows loopback and private addresses by default", () => {
    for (const address of ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "fd12::1", "2002:a00:1::1"]) {
      assert.isUndefined(check(address), address)
    }
  })
  it("allows only allowed_addresses if they are set, except those in a denied range", () => {
    const allowed = ["10.0.0.0/8", "2002::/16"]
    assert.isUndefined(check("10.0.0.1", { allowed }))
    assert.strictEqual(check("192.0.2.1", { allowed }), "not in allowed_addresses")
    assert.strictEqual(check("10.0.0.1", { allowed, denied: ["10.0.0.1"] }), "10.0.0.1")
    assert.isUndefined(check("2002:a00:1::1", { allowed }))
    assert.strictEqual(check("2002:c000:201::1", { allowed }), "not in allowed_addresses")
    assert.strictEqual(check("64:ff9b::a00:1", { allowed }), "not in allowed_addresses")
  })
  it("allows no further address because of an entry that cannot be read", () => {
    assert.strictEqual(check("192.0.2.1", { denied: ["10.0.0.0/8", "junk"] }), "junk")
    assert.strictEqual(check("192.0.2.1", { allowed: ["junk"] }), "not in allowed_addresses")
  })
  it("finds the IPv4 addresses that an IPv6 address embeds", () => {
    const inner = (text: string) => embedded(ip(text)).join(" ")
    assert.strictEqual(inner("::ffff:1.2.3.4"), "1.2.3.4")
    assert.strictEqual(inner("::ffff:0:1.2.3.4"), "1.2.3.4")
    assert.strictEqual(inner("::1.2.3.4"), "1.2.3.4")
    assert.strictEqual(inner("64:ff9b::1.2.3.4"), "1.2.3.4")
    assert.strictEqual(inner("64:ff9b:1::1.2.3.4"), "1.2.3.4")
    assert.strictEqual(inner("64:ff9b:1:ffff:ff:ffff:1.2.3.4"), "1.2.3.4")
    // The forms of RFC 6052 section 2.2 for prefixes of 48, 56 and 64 bits.
    assert.include(inner("64:ff9b:1:c000:2:2100::"), "192.0.2.33")
    assert.include(inner("64:ff9b:1:1c0:0:221::"), "192.0.2.33")
    assert.include(inner("64:ff9b:1:122:c0:2:2100::"), "192.0.2.33")
    assert.strictEqual(inner("2002:102:304:5::6"), "1.2.3.4")
    assert.strictEqual(inner("2001:0:4136:e378:8000:63bf:fefd:fcfb"), "65.54.227.120 1.2.3.4")
    assert.strictEqual(inner("2001:db8::5efe:1.2.3.4"), "1.2.3.4")
    assert.strictEqual(inner("fe80::200:5efe:1.2.3.4"), "1.2.3.4")
    for (
      const plain of ["::", "::1", "2001:db8::1", "64:ff9b:2::1.2.3.4", "2001:1::1", "::ffff:1:1.2.3.4", "1.2.3.4"]
    ) {
      assert.strictEqual(inner(plain), "", plain)
    }
  })
  it.each([
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::7f00:1",
    "64:ff9b:1:7f00:0:100::",
    "2002:7f00:1::",
    "2001:0:7f00:1::",
    "2001::80ff:fffe",
    "2001:db8::5efe:7f00:1"
  ])("denies the notation %s of a denied address", (spelling) => {
    assert.strictEqual(check(spelling, { denied: ["127.0.0.0/8"] }), "127.0.0.0/8")
  })
})

describe("the addresses that are tried", () => {
  const [six, four] = [Array.makeBy(6, (n) => ip(`2001:db8::${n}`)), Array.makeBy(6, (n) => ip(`192.0.2.${n}`))]
  it("are first those of IPv6 and then those of IPv4", () => {
    assert.deepStrictEqual(candidates(ips("192.0.2.1", "2001:db8::1")), ips("2001:db8::1", "192.0.2.1"))
  })
  it("are at most four, and the last place is reserved for IPv4", () => {
    assert.deepStrictEqual(candidates([...six, ...four]), [...six.slice(0, 3), ...four.slice(0, 1)])
    assert.deepStrictEqual(candidates([...six.slice(0, 1), ...four]), [...six.slice(0, 1), ...four.slice(0, 3)])
  })
  it("use all four places if there is only one family", () => {
    assert.deepStrictEqual(candidates(six), six.slice(0, 4))
    assert.deepStrictEqual(candidates(four), four.slice(0, 4))
  })
  it("contain an address only once even if it was given twice", () => {
    assert.deepStrictEqual(candidates(ips("192.0.2.1", "192.0.2.1")), ips("192.0.2.1"))
    assert.deepStrictEqual(candidates([]), [])
  })
})

describe("parseNameserver", () => {
  for (
    const [text, address, port] of [
      ["192.0.2.1", "192.0.2.1", 53],
      ["192.0.2.1:5353", "192.0.2.1", 5353],
      ["2001:db8::1", "2001:db8::1", 53],
      ["[2001:db8::1]:5353", "2001:db8::1", 5353]
    ] as const
  ) {
    it(text, () => assert.deepStrictEqual(Option.getOrUndefined(parseNameserver(text)), { address: ip(address), port }))
  }
  for (
    const text of [
      "",
      "dns.example",
      "dns.example:53",
      "192.0.2.1:0",
      "192.0.2.1:65536",
      "[192.0.2.1]:53",
      "[::1]",
      "[::1",
      "192.0.2.1:"
    ]
  ) {
    it(`refuses ${JSON.stringify(text)}`, () => assert.isTrue(Option.isNone(parseNameserver(text))))
  }
})
