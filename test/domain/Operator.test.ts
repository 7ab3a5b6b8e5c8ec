import { assert, describe, it } from "vitest"
import { addressKey, knownMfaKey, mfaKey, networkKey } from "../../src/domain/LoginKey.ts"
import type { OperatorRole } from "../../src/domain/OperatorRole.ts"
import { isRoleUnknown, lowerRole, operatorRoles, permits, roleRead } from "../../src/domain/OperatorRole.ts"
import { readUsername } from "../../src/domain/Username.ts"

describe("a role", () => {
  it("permits every action that a lower role permits", () => {
    const table = operatorRoles.map((role) => operatorRoles.map((needed) => permits(role, needed)))
    assert.deepStrictEqual(table, [[true, false, false], [true, true, false], [true, true, true]])
  })

  it("counts as admin if it is missing, and as viewer if it is unknown", () => {
    const reads: ReadonlyArray<readonly [string | undefined, OperatorRole, boolean]> = [
      [undefined, "admin", false],
      ["admin", "admin", false],
      ["operator", "operator", false],
      ["viewer", "viewer", false],
      ["Admin", "viewer", true],
      ["", "viewer", true]
    ]
    for (const [stored, role, isUnknown] of reads) {
      assert.deepStrictEqual([roleRead(stored), isRoleUnknown(stored)], [role, isUnknown])
    }
  })

  it("yields the lower role when it is combined with another role", () => {
    for (const one of operatorRoles) {
      for (const other of operatorRoles) {
        const lower = lowerRole(one, other)
        assert.isTrue((lower === one || lower === other) && permits(one, lower) && permits(other, lower))
      }
    }
  })
})

describe("the name of an operator", () => {
  it("is converted to lower case, and is refused if it contains a character that is not allowed", () => {
    for (
      const [text, name] of [["Olga", "olga"], [" olga\t", "olga"], ["0.a_b-c", "0.a_b-c"], [
        "a".repeat(64),
        "a".repeat(64)
      ]] as const
    ) {
      assert.strictEqual(readUsername(text), name)
    }
    const odd = [
      "",
      ".olga",
      "_olga",
      "ol/ga",
      "ol ga",
      "a".repeat(65),
      "ólga",
      "\u212Aarl",
      "\u017Folga",
      "*"
    ]
    for (const text of odd) assert.isUndefined(readUsername(text), text)
  })
})

describe("the key under which attempts are counted", () => {
  it("is an IPv4 address, the /64 of an IPv6 address, or the operator", () => {
    const keys = [
      ["192.0.2.1", "192.0.2.1"],
      ["::ffff:192.0.2.1", "192.0.2.1"],
      ["2001:db8::1", "2001:db8:0:0::/64"],
      ["2001:DB8:0:0:ffff:1:2:3", "2001:db8:0:0::/64"],
      ["2001:db8:0:1::1", "2001:db8:0:1::/64"],
      ["fe80::1%eth0", "fe80:0:0:0::/64"],
      ["2002:c000:201:7::1", "192.0.2.1"],
      ["64:ff9b::192.0.2.1", "192.0.2.1"],
      ["64:ff9b:1::192.0.2.1", "64:ff9b:1::c000:201"],
      ["unknown", "unknown"],
      ["x".repeat(200), "x".repeat(100)]
    ] as const
    for (const [address, key] of keys) assert.strictEqual(addressKey(address), key)
    assert.strictEqual(mfaKey("id"), "mfa:id")
    assert.strictEqual(knownMfaKey("id", "2001:db8::1"), "mfa:id@2001:db8:0:0::/64")
  })

  it("is also the /48 of an IPv6 address, but not of an address that embeds IPv4", () => {
    assert.strictEqual(networkKey("2001:db8:0:1::1"), "2001:db8:0::/48")
    for (const address of ["192.0.2.1", "2002:c000:201::1", "64:ff9b::192.0.2.1", "64:ff9b:1::192.0.2.1", "unknown"]) {
      assert.isUndefined(networkKey(address), address)
    }
  })
})
