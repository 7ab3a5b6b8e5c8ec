import { makeAddressSet } from "../../engine/net/Address.ts"
import type { Check, CheckConfig } from "./Check.ts"
import { addressUnknown, passed, refused } from "./Check.ts"

/**
 * Makes a check of type `allowed_ip`, which looks for the address in lists of addresses. The deny list is checked
 * first, and an address in that list is always refused.
 */
export const allowedIp = ({ allow, deny }: CheckConfig): Check => {
  const isDenied = makeAddressSet(deny)
  const isAllowed = allow.length === 0 ? () => true : makeAddressSet(allow)
  return {
    _tag: "Instant",
    ask: ({ client }) => {
      if (client === undefined) return addressUnknown
      if (isDenied(client)) return refused(`the client address ${client.text} is denied`)
      return isAllowed(client) ? passed : refused(`the client address ${client.text} is not among those allowed`)
    }
  }
}
