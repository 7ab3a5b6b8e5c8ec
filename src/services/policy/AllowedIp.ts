import { makeAddressSet } from "../../kernel/net/Address.ts"
import type { Check, CheckConfig } from "./Check.ts"
import { passed, refused } from "./Check.ts"

const unknown = refused("the client address is not known")
const denied = refused("the client address is not allowed")

/** `allowed_ip`: membership in lists of addresses. Deny is checked first and is final. */
export const allowedIp = ({ allow, deny }: CheckConfig): Check => {
  const isDenied = makeAddressSet(deny)
  const isAllowed = allow.length === 0 ? () => true : makeAddressSet(allow)
  return {
    _tag: "Instant",
    ask: ({ client }) => {
      if (client === undefined) return unknown
      return !isDenied(client) && isAllowed(client) ? passed : denied
    }
  }
}
