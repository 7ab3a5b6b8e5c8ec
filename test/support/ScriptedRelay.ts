import { Effect, Layer } from "effect"
import { join } from "node:path"
import { Entropy } from "../../src/crypto/Entropy.ts"
import { DnsUpdate } from "../../src/engine/net/DnsUpdate.ts"
import type { Record as LogRecord } from "../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../src/engine/telemetry/EventLog.ts"
import * as Relay from "../../src/services/signing/relay/Relay.ts"
import type { RelaySettings } from "../../src/services/signing/relay/RelaySettings.ts"
import { freshDirectory } from "./Databases.ts"
import { configOf } from "./Graph.ts"
import type { Said } from "./ScriptedUpstream.ts"
import { ca, upstreamWith } from "./ScriptedUpstream.ts"

/* A relay as a worker makes it, with a simulated upstream. */

/** The answers of the upstream's paths, in order. */
export type Paths = { readonly [path: string]: ReadonlyArray<Said> }

/** Returns a `signer.relay` section whose account key does not exist yet. */
export const relaySettings = (more: Partial<RelaySettings> = {}): RelaySettings => ({
  ...configOf().signer.relay,
  directory_url: `${ca}/directory`,
  account_key_path: join(freshDirectory(), "account.key"),
  ...more
})

/** A DNS that must not be updated. */
export const noUpdates: Layer.Layer<DnsUpdate> = Layer.succeed(DnsUpdate, { update: () => Effect.die("updated") })

const registering: Paths = { "/account": [{ status: 201, json: {}, headers: { location: `${ca}/acct/1` } }] }

/** Returns a relay, or the reason why there is none. Its requests and log records begin at its start. */
export const relayOf = (paths: Paths = {}, settings = relaySettings()) =>
  Effect.gen(function*() {
    const records: Array<LogRecord> = []
    const { asked, web } = upstreamWith({ ...registering, ...paths })
    const world = Layer.mergeAll(web, noUpdates, Entropy.layerSeeded("relay"), layerMemory(records))
    const made = yield* Effect.result(Effect.provide(Relay.make("web", settings), world))
    return { made, world, asked, records }
  })

/** Returns a refusal with this type of problem. */
export const refusal = (type: string, status = 403): Said => ({
  status,
  json: { type: `urn:ietf:params:acme:error:${type}`, detail: "no" }
})
