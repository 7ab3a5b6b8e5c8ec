import * as Context from "effect/Context"

/**
 * The profile on whose behalf an upstream is asked; records and metrics name it. Undefined while a relay is made,
 * because profiles with the same `signer` section share it.
 */
export const AskedFor = Context.Reference<string | undefined>("acme/services/signing/relay/AskedFor", {
  defaultValue: () => undefined
})
