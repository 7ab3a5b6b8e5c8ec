import { hash } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { operatorScope } from "../../src/domain/Notification.ts"
import { acmeKeyFrom } from "./AcmeSession.ts"
import { newEcKey } from "./Keys.ts"
import type { Expected, Stage } from "./ToldStage.ts"
import { given, lastOf } from "./ToldStage.ts"
import type { Way } from "./ToldWay.ts"
import { contacts, inBase64, long, only, revocation, short } from "./ToldWay.ts"

/* The ways in which events about certificates are caused, by issuance, revocation, failed validation and expiry. */

/** The output of `crl list --json`. */
interface CrlList {
  readonly items: ReadonlyArray<{ readonly issuer: string; readonly profiles: ReadonlyArray<string> }>
}

/** Every way that is tested before the configuration changes. */
export const certificateWays: ReadonlyArray<Way> = [
  ...([
    ["default", "signer_issue", "by a CA of its own"],
    ["script", "signer_issue", "by a script"],
    [
      "relayed",
      "signer_relay_issue",
      undefined
    ],
    ["kinds", "signer_issue_restricted", undefined],
    ["relayed-kinds", "signer_relay_issue_restricted", undefined]
  ] as const).map(([profile, entry, what]): Way => ({
    event: "certificate_issued",
    surface: "worker",
    entry,
    ...what === undefined ? {} : { what },
    isShort: profile === "default",
    act: async (stage) =>
      (await stage.issued(await stage.account(profile), [`${profile}.example`, "xn--bcher-kva.example"])).told
  })),
  {
    event: "certificate_revoked",
    surface: "ACME",
    entry: "/revokeCert",
    what: "by the account",
    ...short,
    act: async (stage) => {
      const owner = await stage.account("default")
      const issued = await stage.issued(owner, ["revoked.example"])
      const { session } = owner
      const body = { certificate: inBase64(issued.leaf) }
      const act = () => session.post(session.directory.revokeCert ?? "", body)
      return only(await stage.telling(act, () => [revocation(issued, undefined)]))
    }
  },
  {
    event: "certificate_revoked",
    surface: "ACME",
    entry: "/revokeCert",
    what: "by its key",
    ...long,
    act: async (stage) => only((await byKey(stage, 4)).told)
  },
  {
    event: "certificate_revoked",
    surface: "worker",
    entry: "key_revoke",
    ...long,
    act: async (stage) => {
      const owner = await stage.account("default")
      const key = newEcKey()
      const other = await stage.issued(owner, ["same-key.example"], key)
      const { told } = await byKey(stage, 1, key, [revocation(other, 1)])
      return given(told[1])
    }
  },
  {
    event: "certificate_revoked",
    surface: "worker",
    entry: "local_ca_crl_regenerate",
    what: "of a compromised CA",
    ...long,
    act: async (stage) => {
      const issued = await stage.issued(await stage.account("doomed"), ["doomed.example"])
      const { items } = JSON.parse(await stage.command("crl", "list", "--json")) as CrlList
      const { issuer = "" } = items.find(({ profiles }) => profiles.includes("doomed")) ?? {}
      const act = () => stage.command("ca", "compromise", issuer, "--yes")
      return only(await stage.telling(act, () => [revocation(issued, 2, "")]))
    }
  },
  {
    event: "certificate_revoked",
    surface: "worker",
    entry: "campaign_revoke",
    ...long,
    act: async (stage) => given((await campaign(stage))[0])
  },
  {
    event: "campaign_finished",
    surface: "worker",
    entry: "campaign_round",
    ...short,
    act: async (stage) => given((await campaign(stage))[1])
  },
  {
    event: "certificate_revoked",
    surface: "worker",
    entry: "signer_revoke",
    ...long,
    act: async (stage) => {
      const owner = await stage.account("script")
      const issued = await stage.issued(owner, ["asked.example"])
      const { session } = owner
      const body = { certificate: inBase64(issued.leaf), reason: 5 }
      const act = () => session.post(session.directory.revokeCert ?? "", body)
      return only(await stage.telling(act, () => [revocation(issued, 5)]))
    }
  },
  {
    event: "certificate_revoked",
    surface: "command line",
    entry: "order revoke",
    ...long,
    act: async (stage) => {
      const issued = await stage.issued(await stage.account("default"), ["cli.example"])
      const act = () => stage.command("order", "revoke", issued.orderId, "--reason", "0")
      return only(await stage.telling(act, () => [revocation(issued, 0, "")]))
    }
  },
  {
    event: "certificate_revoked",
    surface: "command line",
    entry: "cert revoke",
    ...long,
    act: async (stage) => {
      const issued = await stage.issued(await stage.account("default"), ["serial.example"])
      const act = () => stage.command("cert", "revoke", issued.leaf.serialNumber, "--reason", "keyCompromise")
      return only(await stage.telling(act, () => [revocation(issued, 1, "")]))
    }
  },
  {
    event: "challenge_failed",
    surface: "worker",
    entry: "challenge_validate",
    ...short,
    act: async (stage) => {
      const { id, session } = await stage.account("default")
      const { body, url } = await session.newOrder(["nothing-there.example"])
      const [authorization = ""] = body.authorizations
      const { challenges } = await session.authorization(authorization)
      const challenge = challenges.find(({ type }) => type === "http-01")
      if (challenge === undefined) throw new Error("no http-01 is offered")
      const act = async () => {
        await session.trigger(challenge.url)
        await session.awaitAuthorization(authorization)
      }
      return only(
        await stage.telling(act, () => [{
          event: "challenge_failed",
          scope: "default",
          members: {
            order_id: lastOf(url),
            account_id: id,
            authz_id: lastOf(authorization),
            challenge_id: lastOf(challenge.url),
            challenge_type: "http-01",
            identifier: "nothing-there.example",
            error: "unauthorized",
            client_ip: "127.0.0.1"
          }
        }])
      )
    }
  }
]

const byKey = async (
  stage: Stage,
  reason: number,
  key = newEcKey(),
  more: ReadonlyArray<ReturnType<typeof revocation>> = []
) => {
  const owner = await stage.account("default")
  const issued = await stage.issued(owner, ["by-key.example"], key)
  const own = await owner.session.another(await acmeKeyFrom(key))
  const body = { certificate: inBase64(issued.leaf), reason }
  const act = () => own.post(own.directory.revokeCert ?? "", body)
  return { told: await stage.telling(act, () => [revocation(issued, reason), ...more]) }
}

const hourMillis = 3_600_000

/** A campaign for one certificate, which is revoked at its date, so that the campaign finishes. */
const campaign = (stage: Stage): Promise<ReadonlyArray<Expected>> =>
  stage.once("campaign", async () => {
    const issued = await stage.issued(await stage.account("default"), ["campaign.example"])
    writeFileSync(join(stage.directory, "serials"), issued.leaf.serialNumber)
    const revokeAt = new Date(Date.now() + hourMillis).toISOString()
    const ended = async () => {
      const said = await stage.command(
        ..."campaign start --serials-file serials --reason incident --revoke-reason superseded --json --revoke-at"
          .split(
            " "
          ),
        revokeAt
      )
      const { id } = JSON.parse(said) as { readonly id: string }
      await stage.command("campaign", "confirm", id, "--yes")
      await stage.letCampaignsRevoke()
      for (let state = "running"; state !== "ended";) {
        await stage.hurry("campaign_round")
        state = (JSON.parse(await stage.command("campaign", "show", id, "--json")) as { readonly state: string }).state
      }
      return id
    }
    return await stage.telling(ended, (id) => [revocation(issued, 4, ""), {
      event: "campaign_finished",
      scope: operatorScope,
      members: { campaign_id: id, campaign_reason: "incident", matched: 1, replaced: 0, revoked: 1, expired: 0 }
    }])
  })

/** Certificates that expire, and the reports about them when a configuration with notifications takes effect. */
export const endingWays: ReadonlyArray<Way> = [
  {
    event: "certificates_expiring",
    surface: "worker",
    entry: "notify_expiry_digest",
    ...short,
    act: async (stage) => {
      const owner = await stage.account("ending", contacts)
      const names = Array.from({ length: 12 }, (_, index) => `n${index}.ending.example`)
      const { leaf, orderId } = await stage.issued(owner, names)
      const not_after = Date.parse(leaf.validTo) / 1000
      const certificates = [{
        order_id: orderId,
        account_id: owner.id,
        cert_serial: leaf.serialNumber.toLowerCase(),
        identifiers: names,
        kind: "default",
        not_after
      }]
      const reminded = { account_id: owner.id, total: 1, certificates }
      const told = await stage.telling(() => stage.reload(), () => [
        {
          event: "certificates_expiring",
          scope: "ending",
          members: { lead_days: 14, total: 1, superseded: 0, certificates }
        },
        { event: "profile_mounted", scope: "added", members: {} },
        { event: "expiry_reminder", scope: "ending", members: reminded, to: ["zoe@bücher.example"] },
        { event: "expiry_reminder", scope: "ending", members: reminded, to: ["o'hara@example.org"] },
        {
          event: "authority_expiring",
          scope: "added",
          members: {
            issuer: hash("sha256", stage.authority.publicKey.export({ type: "spki", format: "der" })),
            subject: "CN=Soon",
            chain_ends_with: "CN=Soon",
            not_after: Date.parse(stage.authority.validTo) / 1000,
            days_remaining: 19
          }
        }
      ])
      await stage.once("reloaded", () => Promise.resolve(told))
      return only(told)
    }
  },
  {
    event: "profile_mounted",
    surface: "command line",
    entry: "serve",
    what: "by a reload",
    ...short,
    act: async (stage) => given((await reloaded(stage))[1])
  },
  {
    event: "expiry_reminder",
    surface: "worker",
    entry: "notify_expiry_reminders",
    ...short,
    act: async (stage) => given((await reloaded(stage))[2])
  },
  {
    event: "expiry_reminder",
    surface: "worker",
    entry: "notify_expiry_reminders",
    what: "to another contact",
    ...short,
    act: async (stage) => given((await reloaded(stage))[3])
  },
  {
    event: "authority_expiring",
    surface: "worker",
    entry: "authority_expiry",
    ...short,
    act: async (stage) => given((await reloaded(stage))[4])
  }
]

const reloaded = (stage: Stage): Promise<ReadonlyArray<Expected>> =>
  stage.once("reloaded", () => Promise.reject(new Error("nothing was reloaded")))
