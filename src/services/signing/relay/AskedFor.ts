import * as Context from "effect/Context"

/**
 * The profile for which a request to an upstream is made. Records and metrics name this profile. It is undefined while
 * a relay is made, because all profiles with the same `signer` section share the relay.
 */
export const AskedFor = Context.Reference<string | undefined>("acme/services/signing/relay/AskedFor", {
  defaultValue: () => undefined
})
