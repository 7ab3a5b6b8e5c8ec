import * as Context from "effect/Context"

/**
 * The profile for which an upstream is asked, by which records and series call a request. Nobody's while a relay is made, which
 * profiles with one `signer` section share.
 */
export const AskedFor = Context.Reference<string | undefined>("acme/services/signing/relay/AskedFor", {
  defaultValue: () => undefined
})
