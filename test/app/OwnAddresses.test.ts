import { describe, it } from "@effect/vitest"
import { assert } from "vitest"
import { ownAddresses } from "../../src/app/OwnAddresses.ts"
import { configOf } from "../support/Graph.ts"

const face = (address: string) => ({
  address,
  netmask: "",
  family: "IPv4" as const,
  mac: "",
  internal: false,
  cidr: null
})
const interfaces = { lo: [face("127.0.0.1")], eth0: [face("192.0.2.7"), face("2001:db8::7"), face("fe80::1%eth0")] }
const held = ["127.0.0.1", "192.0.2.7", "2001:db8::7", "fe80::1"]

describe("the addresses of the service", () => {
  it.each([
    ["127.0.0.1:3000", ["127.0.0.1"]],
    ["[2001:db8::9]:443", ["2001:db8::9"]],
    ["[::]:3000", held],
    ["0.0.0.0:3000", held],
    ["localhost:3000", []]
  ])("with a listener at %s are %j", (address, expected) => {
    const config = configOf(`[server]\nbind_address = ${JSON.stringify(address)}`)
    assert.deepStrictEqual(ownAddresses(config, interfaces), expected)
  })

  it.each(["metrics", "publish"])("include the address of the %s listener if it is enabled", (section) => {
    const text = (enabled: boolean) =>
      `[server]\nbind_address = "192.0.2.1:1"\n[${section}]\nenabled = ${enabled}\nbind_address = "192.0.2.2:1"`
    assert.deepStrictEqual(ownAddresses(configOf(text(true)), interfaces), ["192.0.2.1", "192.0.2.2"])
    assert.deepStrictEqual(ownAddresses(configOf(text(false)), interfaces), ["192.0.2.1"])
  })
})
