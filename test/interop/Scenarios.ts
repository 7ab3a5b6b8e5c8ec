import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { leafOf, verifyChain } from "../support/Openssl.ts"
import type { Challenge, Client, Credential, Names, Workplace } from "./Client.ts"
import { aliases } from "./NameServer.ts"
import { currentList, listAfter, verifyRevoked } from "./RevocationList.ts"

/** A client that is used in scenarios. `host` is a name for which only this client gets certificates. */
export interface Stage {
  readonly client: Client
  readonly at: Workplace
  readonly host: string
  /** Runs a command of the service while the server runs, and returns the output. */
  readonly command: (...words: ReadonlyArray<string>) => Promise<string>
  /** Binds each new account of a profile to a credential. */
  readonly bindAll: (profile: string, kid: string) => Promise<void>
}

/** The profile that requires external account bindings. */
export const boundProfile = "bound"

/** The profile whose accounts need no challenges. It requires external account bindings if the client can make them. */
export const provedProfile = "proved"

/** An act of a client, and what must be true afterwards. */
export interface Scenario {
  readonly name: string
  /**
   * Returns whether this client can do the act. Scenarios that do not depend on the challenge use only the client's
   * first challenge.
   */
  readonly isFor: (client: Client, challenge: Challenge) => boolean
  readonly play: (stage: Stage) => Promise<void>
}

const verify = async ({ at, client }: Stage, names: Names): Promise<void> => {
  for (const name of names) {
    await verifyChain(client.chain(at, names, name), at.server.caFile, name.replace("*", "below"))
  }
}

const issue = async (stage: Stage, ...names: Names): Promise<void> => {
  await stage.client.issue(stage.at, names)
  await verify(stage, names)
}

const serials = ({ at, client }: Stage, names: Names) =>
  names.map((name) => leafOf(client.chain(at, names, name)).serialNumber)

const renew = async (stage: Stage, ...names: Names): Promise<void> => {
  const before = new Set(serials(stage, names))
  await stage.client.renew(stage.at, names)
  await verify(stage, names)
  if (serials(stage, names).some((serial) => before.has(serial))) throw new Error("a certificate was not renewed")
}

const namesOf = (host: string): Names => [host, `www.${host}`]

/** Gets a new certificate and revokes it, and checks that the client's other certificate is not revoked. */
const revoke = async (stage: Stage, host: string, how: Client["revoke"]): Promise<void> => {
  const { at, client } = stage
  await issue(stage, host)
  const chain = client.chain(at, [host], host)
  const before = await currentList(at)
  await verifyChain(chain, at.server.caFile, host, before.file)
  await how?.(at, [host])
  const cert_serial = leafOf(chain).serialNumber.toLowerCase()
  await at.server.waitForEvent("certificate_revoked", {
    where: ({ fields }) => fields["cert_serial"] === cert_serial,
    timeoutMs: 10_000
  })
  const list = await listAfter(at, before.number)
  await verifyRevoked(chain, at, host, list)
  const names = namesOf(stage.host)
  for (const name of names) await verifyChain(client.chain(at, names, name), at.server.caFile, name, list.file)
}

const byDns = (_client: Client, challenge: Challenge) => challenge === "dns-01"

const once = (can: (client: Client) => unknown) => (client: Client, challenge: Challenge) =>
  can(client) !== undefined && client.challenges[0] === challenge

/** Returns what proved the names of a certificate, as the trail says. */
const proofOf = async ({ command }: Stage, serial: string): Promise<unknown> => {
  const { items: [row] }: { readonly items: ReadonlyArray<{ readonly detail: { readonly proved_by?: string } }> } = JSON
    .parse(await command("audit", "list", "--event", "certificate_issued", "--cert-serial", serial, "--json"))
  return row?.detail.proved_by
}

/** The scenarios, in the order in which they run. Earlier scenarios make what later ones need. */
export const scenarios: ReadonlyArray<Scenario> = [
  {
    name: "issue",
    isFor: () => true,
    play: (stage) => issue(stage, ...namesOf(stage.host))
  },
  {
    name: "renew",
    isFor: () => true,
    play: (stage) => renew(stage, ...namesOf(stage.host))
  },
  {
    name: "wildcard",
    isFor: byDns,
    play: (stage) => issue(stage, `wild.${stage.host}`, `*.wild.${stage.host}`)
  },
  {
    name: "chain of CNAMEs",
    isFor: byDns,
    play: async (stage) => {
      const asked = `_acme-challenge.alias.${stage.host}`
      const hop = `hop.${stage.host}`
      await stage.at.nameServer.update(`add ${asked} 0 CNAME ${hop}`)
      await stage.at.nameServer.update(`add ${hop} 0 CNAME ${asked}.${aliases}`)
      await issue(stage, `alias.${stage.host}`)
    }
  },
  {
    name: "truncated answer",
    isFor: (client, challenge) => byDns(client, challenge) && client.ownsRecords !== true,
    play: async (stage) => {
      const asked = `_acme-challenge.large.${stage.host}`
      const others = Array.from({ length: 40 }, (_, index) => `add ${asked} 0 TXT "${`${index}`.padStart(43, "x")}"`)
      await stage.at.nameServer.update(...others)
      await issue(stage, `large.${stage.host}`)
      await stage.at.nameServer.askedOverTcp(asked, "TXT")
    }
  },
  {
    name: "external account",
    isFor: once(({ binds }) => binds),
    play: async (stage) => {
      const credential: Credential = JSON.parse(await stage.command("eab", "create", "--label", "interop", "--json"))
      const { at, host } = stage
      const home = join(at.home, "bound")
      mkdirSync(home)
      const bound = { ...at, home, directoryUrl: at.server.profileUrl(boundProfile), credential }
      await issue({ ...stage, at: bound }, `bound.${host}`)
      await at.server.waitForEvent("eab_verified", { timeoutMs: 10_000 })
    }
  },
  {
    name: "without challenges",
    isFor: once(() => true),
    play: async (stage) => {
      const { at, bindAll, client, command, host } = stage
      const names: Names = [`proved.${host}`]
      const words = ["--label", "proved", "--names", names[0], "--prevalidated", "--json"]
      const credential: Credential = JSON.parse(await command("eab", "create", ...words))
      const home = join(at.home, "proved")
      mkdirSync(home)
      const place = { ...at, home, directoryUrl: at.server.profileUrl(provedProfile) }
      if (client.binds !== true) await bindAll(provedProfile, credential.kid)
      const proved = { ...stage, at: client.binds === true ? { ...place, credential } : place }
      await issue(proved, ...names)
      const proof = await proofOf(stage, serials(proved, names).join())
      if (proof !== "credential") throw new Error(`the name was proved by ${JSON.stringify(proof)}`)
    }
  },
  {
    name: "renewal information",
    isFor: once(({ renewWhenTold }) => renewWhenTold),
    play: async (stage) => {
      const { at, client, host } = stage
      const names: Names = [`told.${host}`]
      await issue(stage, ...names)
      const before = serials(stage, names)
      const serial = before.join("").toLowerCase()
      const { items: [order] }: { readonly items: ReadonlyArray<{ readonly id: string }> } = JSON.parse(
        await stage.command("order", "list", "--cert-serial", serial, "--json")
      )
      // For a revoked certificate, the service answers that the time for the renewal has passed.
      await stage.command("order", "revoke", order?.id ?? "", "--yes")
      await client.renewWhenTold?.(at, names)
      await verify(stage, names)
      if (serials(stage, names).join() === before.join()) throw new Error("the certificate was not renewed")
      const asked = at.server.records().some(({ span }) => String(span["uri"]).includes("/renewalInfo/"))
      if (!asked) throw new Error("renewal information was not asked for")
    }
  },
  {
    name: "name in the subject",
    isFor: once(({ namesInSubject }) => namesInSubject),
    play: (stage) => issue(stage, `alone.${stage.host}`)
  },
  {
    name: "contact",
    isFor: once(({ updateContact }) => updateContact),
    play: async ({ at, client }) => {
      await client.updateContact?.(at)
      await at.server.waitForEvent("account_updated", { timeoutMs: 10_000 })
    }
  },
  {
    name: "key rollover",
    isFor: once(({ rollover }) => rollover),
    play: async (stage) => {
      await stage.client.rollover?.(stage.at)
      await stage.at.server.waitForEvent("key_change_completed", { timeoutMs: 10_000 })
      await renew(stage, ...namesOf(stage.host))
    }
  },
  {
    name: "revoke by account key",
    isFor: once(({ revoke }) => revoke),
    play: (stage) => revoke(stage, `revoked.${stage.host}`, stage.client.revoke)
  },
  {
    name: "revoke by certificate key",
    isFor: once(({ revokeByItsKey }) => revokeByItsKey),
    play: (stage) => revoke(stage, `leaked.${stage.host}`, stage.client.revokeByItsKey)
  },
  {
    name: "deactivate",
    isFor: once(({ deactivate }) => deactivate),
    play: async ({ at, client }) => {
      await client.deactivate?.(at)
      await at.server.waitForEvent("account_deactivated", { timeoutMs: 10_000 })
    }
  }
]
