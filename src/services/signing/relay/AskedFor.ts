import * as Context from "effect/Context"

/**
 * The profile for which a request to an upstream is made. Records and metrics name it. Undefined while a relay is made,
 * because profiles with the same `signer` section share it.
 */
export const AskedFor = Context.Reference<string | undefined>("acme/services/signing/relay/AskedFor", {
  defaultValue: () => undefined
})
