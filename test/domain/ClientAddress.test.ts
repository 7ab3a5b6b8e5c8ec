import { Option } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { clientAddress } from "../../src/domain/ClientAddress.ts"
import {
  comparable,
  contains,
  makeAddressSet,
  parseAddress,
  parseCidr,
  pointerName
} from "../../src/engine/net/Address.ts"
import { fuzz } from "../support/Fuzz.ts"

const proxies = ["10.0.0.0/8", "2001:db8::/32"]

const address = (clientIp: string, forwarded: string | ReadonlyArray<string> | undefined, trusted = proxies) =>
  clientAddress({ trusted_proxies: trusted, forwarded_header: "X-Forwarded-For" })({
    clientIp,
    headers: { "x-forwarded-for": forwarded, forwarded: "for=203.0.113.9", "x-real-ip": "203.0.113.9" }
  })

describe("the address of a client", () => {
  it("is the address of the peer if the peer is no trusted proxy, whatever the headers say", () => {
    assert.strictEqual(address("192.0.2.1", "203.0.113.7"), "192.0.2.1")
    assert.strictEqual(address("192.0.2.1", "203.0.113.7", []), "192.0.2.1")
    assert.strictEqual(address("10.0.0.1", undefined), "10.0.0.1")
  })

  it("is the rightmost untrusted entry of the header if the peer is a trusted proxy", () => {
    assert.strictEqual(address("10.0.0.1", "198.51.100.1, 203.0.113.7, 10.0.0.2"), "203.0.113.7")
    assert.strictEqual(address("2001:db8::1", "203.0.113.7"), "203.0.113.7")
  })

  it("is the leftmost entry if all entries are trusted", () => {
    assert.strictEqual(address("10.0.0.1", "10.0.0.4,10.0.0.3 , 10.0.0.2"), "10.0.0.4")
  })

  it("ignores empty elements of the list", () => {
    for (const list of ["203.0.113.7,", "203.0.113.7, ,10.0.0.2,", ["203.0.113.7", ""], ",203.0.113.7 ,, "]) {
      assert.strictEqual(address("10.0.0.1", list), "203.0.113.7", String(list))
    }
    assert.strictEqual(address("10.0.0.1", " , "), "10.0.0.1")
  })

  it("ignores the entries to the left of an invalid entry", () => {
    for (const junk of ["unknown", "_hidden", "010.1.1.1", "1.2.3", "203.0.113.300", "10.1.1.1;x", "localhost"]) {
      assert.strictEqual(address("10.0.0.1", `203.0.113.7, ${junk}`), "10.0.0.1", junk)
      assert.strictEqual(address("10.0.0.1", `10.1.1.1, ${junk}, 10.0.0.2`), "10.0.0.2", junk)
      assert.strictEqual(address("10.0.0.1", `${junk}, 203.0.113.7, 10.0.0.2`), "203.0.113.7", junk)
    }
    assert.strictEqual(address("10.0.0.1", ""), "10.0.0.1")
  })

  it.each([
    ["[2001:4860::7]:443", "2001:4860::7"],
    ["[2001:4860:0::7]", "2001:4860::7"],
    ["2001:4860::7", "2001:4860::7"],
    ["203.0.113.7:65535", "203.0.113.7"],
    ["::ffff:203.0.113.7", "203.0.113.7"],
    ["[::ffff:203.0.113.7]:80", "203.0.113.7"]
  ])("for the entry %s is %s", (entry, expected) => assert.strictEqual(address("10.0.0.1", entry), expected))

  it.each([
    ["for=203.0.113.7", "203.0.113.7"],
    ["For=203.0.113.7:4711;Proto=https;by=10.0.0.9", "203.0.113.7"],
    ["proto=https; for=\"203.0.113.7:4711\" ;host=acme.example", "203.0.113.7"],
    ["by=10.0.0.9;for=\"[2001:4860::7]:4711\"", "2001:4860::7"],
    ["for=198.51.100.1, for=203.0.113.7;proto=http, for=10.0.0.2", "203.0.113.7"],
    ["for=203.0.113.7, ,for=\"[2001:db8::2]\",", "203.0.113.7"],
    ["for=10.0.0.4, for=10.0.0.3", "10.0.0.4"],
    ["for=203.0.113.7, for=unknown, for=10.0.0.2", "10.0.0.2"],
    ["for=203.0.113.7, for=_hidden", "10.0.0.1"],
    ["for=203.0.113.7, proto=https", "10.0.0.1"],
    ["host=\"for=203.0.113.7\"", "10.0.0.1"],
    ["host=\"a;for=192.0.2.9;b\";for=203.0.113.7", "203.0.113.7"],
    ["for=203.0.113.7;host=\"a,for=192.0.2.9\"", "10.0.0.1"],
    ["for=203.0.113.7;host=\"a,for=192.0.2.9,b\"", "10.0.0.1"],
    ["for=203.0.113.7;host=a;for=192.0.2.9", "10.0.0.1"],
    ["for=203.0.113.7;host", "10.0.0.1"],
    ["for=\"x\\\"y, for=203.0.113.7", "203.0.113.7"],
    ["203.0.113.7", "10.0.0.1"]
  ])("for the header Forwarded: %s is %s", (forwarded, expected) => {
    const read = clientAddress({ trusted_proxies: proxies, forwarded_header: "Forwarded" })
    assert.strictEqual(read({ clientIp: "10.0.0.1", headers: { forwarded } }), expected)
  })

  it("is found in a repeated header, whose values count in order", () => {
    assert.strictEqual(address("::ffff:10.0.0.1", ["198.51.100.1", "203.0.113.7,10.0.0.2"]), "203.0.113.7")
  })
})

describe("address sets", () => {
  const four = fc.ipV4()
  const six = fc.ipV6().map((text) => Option.getOrElse(parseAddress(text), () => "::"))

  it("contain the addresses of their ranges", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(
          fc.tuple(four, fc.integer({ min: 0, max: 32 })),
          fc.tuple(six, fc.integer({ min: 0, max: 128 }))
        )),
        fc.oneof(four, six),
        (ranges, text) => {
          const entries = ranges.map(([network, prefix]) => `${network}/${prefix}`)
          const ip = comparable(text)
          // A mapped address counts as IPv4 here, so IPv6 ranges do not contain it.
          if (ip === undefined || text.startsWith("::ffff:")) return
          const expected = entries.some((entry) => Option.exists(parseCidr(entry), (cidr) => contains(cidr, ip.text)))
          assert.strictEqual(makeAddressSet(entries)(ip), expected)
        }
      ),
      fuzz(500)
    )
  })

  it.each([
    ["255.255.255.255", "0.0.0.0/0", true],
    ["192.0.2.1", "192.0.2.1", true],
    ["192.0.2.2", "192.0.2.1", false],
    ["::ffff:192.0.2.1", "192.0.2.0/24", true],
    ["fe80::1%eth0", "fe80::/10", true],
    ["192.0.2.1", "::/0", false]
  ])("decide whether %s is in %s (%s)", (text, entry, expected) => {
    const ip = comparable(text)
    assert.strictEqual(ip !== undefined && makeAddressSet([entry])(ip), expected)
  })
})

describe("the DNS name for the reverse look-up of an address", () => {
  it.each([
    ["192.0.2.7", "7.2.0.192.in-addr.arpa"],
    ["2001:db8::567:89ab", "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"]
  ])("for %s is %s", (text, name) => {
    const ip = comparable(text)
    assert.strictEqual(ip && pointerName(ip), name)
  })
})
