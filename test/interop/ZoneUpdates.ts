import { Clock, Effect, Layer, Result } from "effect"
import { Resolver as Lookup } from "node:dns/promises"
import { Entropy } from "../../src/crypto/Entropy.ts"
import type { TsigKey } from "../../src/engine/net/dns/Tsig.ts"
import { DnsUpdate } from "../../src/engine/net/DnsUpdate.ts"
import { Resolver } from "../../src/engine/net/Resolver.ts"
import type { NameServer } from "./NameServer.ts"
import { zone } from "./NameServer.ts"
import type { Outcome } from "./Table.ts"

/* Updates of a zone at BIND by the service's own code, signed with each algorithm. */

const layer = Layer.provide(DnsUpdate.layer, Layer.merge(Entropy.layer, Resolver.layer("127.0.0.1:53")))

const hour = 3_600_000

/** Returns a clock that is wrong by `millis` milliseconds. */
const wrongBy = (millis: number) => (clock: Clock.Clock): Clock.Clock =>
  Object.assign(Object.create(clock) as Clock.Clock, {
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + millis,
    currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + millis)
  })

const assertEqual = (seen: unknown, wanted: unknown) => {
  const [one, other] = [JSON.stringify(seen), JSON.stringify(wanted)]
  if (one !== other) throw new Error(`${one} instead of ${other}`)
}

const scenariosAt = (nameServer: NameServer, index: number) => {
  const [host = "", port = ""] = nameServer.address.split(":")
  const lookup = new Lookup()
  lookup.setServers([nameServer.address])
  const { algorithm, name: keyName, secret } = nameServer.tsigKeys[index] ?? { name: "", algorithm: "", secret: "" }
  if (algorithm === "") throw new Error("there is no such key")
  const key: TsigKey = { name: `${keyName}.`, algorithm, secret: Buffer.from(secret, "base64") }
  const name = `_acme-challenge.${algorithm}.${zone}`
  /** Makes an update. Returns an empty text, or the reason why the update was not made. */
  const update = (action: "add" | "delete", value: string, more: Partial<TsigKey> = {}, clockOff = 0, at = zone) =>
    Effect.runPromise(
      Effect.flatMap(
        DnsUpdate,
        (updates) =>
          updates.update({ host, port: Number(port), key: { ...key, ...more } }, {
            action,
            zone: `${at}.`,
            name,
            value
          })
      )
        .pipe(
          Effect.result,
          Effect.map(Result.match({ onSuccess: () => "", onFailure: ({ detail }) => detail })),
          Effect.updateService(Clock.Clock, wrongBy(clockOff)),
          Effect.provide(layer)
        )
    )
  const values = async () => (await lookup.resolveTxt(name).catch(() => [])).map((parts) => parts.join("")).sort()
  const refused = async (detail: string, pattern: RegExp) => {
    if (!pattern.test(detail)) throw new Error(`told "${detail}" instead of ${pattern}`)
    assertEqual(await values(), [])
  }
  const scenarios: { readonly [scenario: string]: () => Promise<void> } = {
    "added and deleted by value": async () => {
      for (const value of ["one", "other", "one"]) assertEqual(await update("add", value), "")
      assertEqual(await values(), ["one", "other"])
      assertEqual(await update("delete", "one"), "")
      assertEqual(await values(), ["other"])
      for (const value of ["other", "gone"]) assertEqual(await update("delete", value), "")
      assertEqual(await values(), [])
    },
    "unknown key: BADKEY": async () => refused(await update("add", "x", { name: "nobody." }), /BADKEY/),
    "wrong secret: BADSIG": async () => refused(await update("add", "x", { secret: Buffer.alloc(32) }), /BADSIG/),
    "clock an hour behind: BADTIME": async () => refused(await update("add", "x", {}, -hour), /BADTIME/),
    "clock an hour ahead: BADTIME": async () => refused(await update("add", "x", {}, hour), /BADTIME/),
    "another's zone: refused": async () =>
      refused(await update("add", "x", {}, 0, "example.net"), /NOTAUTH|REFUSED|outside|not in the zone/)
  }
  return { algorithm, scenarios }
}

/** Plays every scenario with the key of each algorithm. */
export const playZoneUpdates = async (nameServer: NameServer): Promise<ReadonlyArray<Outcome>> => {
  const outcomes: Array<Outcome> = []
  for (const index of nameServer.tsigKeys.keys()) {
    const { algorithm, scenarios } = scenariosAt(nameServer, index)
    for (const [scenario, play] of Object.entries(scenarios)) {
      const begun = performance.now()
      const error = await play().then(() => undefined, (cause: unknown) => String(cause))
      const outcome = {
        database: "SQLite",
        client: "zone updates",
        challenge: algorithm,
        scenario,
        milliseconds: performance.now() - begun
      }
      outcomes.push(error === undefined ? outcome : { ...outcome, error })
    }
  }
  return outcomes
}
