import type { CheckType } from "../domain/policy/CheckType.ts"
import { isLoopbackHost, parseBindAddress } from "../engine/net/SocketAddress.ts"
import type { Finding, Subject } from "./Finding.ts"
import { adminFilterFindings } from "./PolicyRules.ts"

/* The rules for `[admin]` (docs/contribute/decisions/admin.md, "Configuration"). */

/**
 * The types of checks that can be used here: those that need no order, because the requests of operators have no order.
 */
const usable: ReadonlyArray<CheckType> = ["allowed_ip", "path", "reverse_dns", "custom"]

const isLocal = (bindAddress: string): boolean => isLoopbackHost(parseBindAddress(bindAddress)?.host ?? "")

const unprotected = ({ config: { admin } }: Subject): ReadonlyArray<Finding> =>
  admin.tls.enabled || isLocal(admin.bind_address) ? [] : [{
    key: "admin.bind_address",
    message: "is not a loopback address, so passwords would cross the network in the clear: set admin.tls.enabled",
    involves: ["admin.bind_address", "admin.tls.enabled"]
  }]

const unusableChecks = ({ config: { admin } }: Subject): ReadonlyArray<Finding> =>
  Object.entries(admin.filter.check).flatMap(([name, { type }]) => {
    const key = `admin.filter.check.${name}.type`
    return type === "" || usable.includes(type)
      ? []
      : [{
        key,
        message: `must be one of ${usable.join(", ")}, because requests of operators have no order`,
        involves: [key]
      }]
  })

/**
 * Returns every fault of `[admin]`. While `[admin]` is off, its faults are only reported as advisories, and the
 * configuration is accepted.
 */
export const adminFindings = (subject: Subject): ReadonlyArray<Finding> => [
  ...unprotected(subject),
  ...unusableChecks(subject),
  ...adminFilterFindings(subject)
]
