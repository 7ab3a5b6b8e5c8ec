import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { certificateWays, endingWays } from "./ToldCertificates.ts"
import { startingProfiles } from "./ToldGround.ts"
import { operatorWays } from "./ToldOperators.ts"
import type { Expected } from "./ToldStage.ts"
import { given } from "./ToldStage.ts"
import type { Way } from "./ToldWay.ts"
import { blocking, contacts, deactivation, long, ofOperator, only, revocation, short } from "./ToldWay.ts"

/* Every way in which an event that causes a notification can happen. */

const mounts: ReadonlyArray<Way> = [
  {
    event: "profile_mounted",
    surface: "command line",
    entry: "serve",
    what: "at its start",
    ...short,
    act: async (stage) =>
      only(stage.begun(startingProfiles.map((scope) => ({ event: "profile_mounted", scope, members: {} }))))
  }
]

const accountWays: ReadonlyArray<Way> = [
  {
    event: "account_created",
    surface: "ACME",
    entry: "/newAccount",
    ...short,
    act: async (stage) => {
      let told: Expected | undefined
      await stage.inbox.withoutProgram(async () => {
        told = (await stage.registered("default", contacts)).told
        await stage.failedProgram()
      })
      return given(told)
    }
  },
  {
    event: "account_created",
    surface: "ACME",
    entry: "/newAccount",
    what: "with a credential",
    ...long,
    act: async (stage) => (await stage.registered("bound")).told
  },
  {
    event: "account_deactivated",
    surface: "ACME",
    entry: "/acct/{id}",
    ...short,
    act: async (stage) => {
      const { id, profile, session } = await stage.account("default")
      return only(await stage.telling(() => session.deactivate(), () => [deactivation(profile, id)]))
    }
  },
  ...([0, 1] as const).flatMap((number): ReadonlyArray<Way> => {
    const [surface, deactivate, remove, revoke, revokeSerial] = ([
      [
        "API",
        "POST /api/accounts/{id}/deactivate",
        "DELETE /api/eab/{kid}",
        "POST /api/orders/{id}/revoke",
        "POST /api/certificates/revoke"
      ],
      [
        "panel",
        "POST /ui/accounts/{id}/deactivate",
        "POST /ui/eab/{kid}/delete",
        "POST /ui/orders/{id}/revoke",
        "POST /ui/certificates/revoke"
      ]
    ] as const)[number]
    return [
      {
        event: "account_deactivated",
        surface,
        entry: deactivate,
        ...long,
        act: async (stage) => {
          const { id, profile } = await stage.account("default")
          const by = stage.surfaces[number]
          const seat = await stage.root(by)
          return only(await stage.telling(() => by.deactivate(seat, id), () => [deactivation(profile, id)]))
        }
      },
      {
        event: "account_deactivated",
        surface,
        entry: remove,
        ...long,
        act: async (stage) => {
          const { kid = "", owner: { id, profile } } = await stage.registered("bound")
          const by = stage.surfaces[number]
          const seat = await stage.root(by)
          return only(await stage.telling(() => by.deleteCredential(seat, kid), () => [deactivation(profile, id)]))
        }
      },
      {
        event: "certificate_revoked",
        surface,
        entry: revoke,
        ...long,
        act: async (stage) => {
          const issued = await stage.issued(await stage.account("default"), [`${surface.toLowerCase()}.example`])
          const by = stage.surfaces[number]
          const seat = await stage.root(by)
          return only(await stage.telling(() => by.revoke(seat, issued.orderId), () => [revocation(issued, 4)]))
        }
      },
      {
        event: "certificate_revoked",
        surface,
        entry: revokeSerial,
        ...long,
        act: async (stage) => {
          const issued = await stage.issued(await stage.account("default"), [`${surface.toLowerCase()}.serial.example`])
          const by = stage.surfaces[number]
          const seat = await stage.root(by)
          const act = () => by.revokeSerial(seat, issued.leaf.serialNumber)
          return only(await stage.telling(act, () => [revocation(issued, 4)]))
        }
      }
    ]
  }),
  {
    event: "account_deactivated",
    surface: "command line",
    entry: "account deactivate",
    ...long,
    act: async (stage) => {
      const { id, profile } = await stage.account("default")
      const act = () => stage.command("account", "deactivate", id, "--yes")
      return only(await stage.telling(act, () => [deactivation(profile, id, "")]))
    }
  },
  {
    event: "account_deactivated",
    surface: "command line",
    entry: "eab delete",
    ...long,
    act: async (stage) => {
      const { kid = "", owner: { id, profile } } = await stage.registered("bound")
      const act = () => stage.command("eab", "delete", kid, "--deactivate-accounts", "--yes")
      return only(await stage.telling(act, () => [deactivation(profile, id, "")]))
    }
  }
]

const loop = "It orders in a loop"

const blockWays: ReadonlyArray<Way> = [
  ...([0, 1] as const).flatMap((number): ReadonlyArray<Way> => {
    const [surface, base] = ([["API", "POST /api"], ["panel", "POST /ui"]] as const)[number]
    return ([loop, undefined] as const).map((reason): Way => ({
      event: reason === undefined ? "account_unblocked" : "account_blocked",
      surface,
      entry: `${base}/accounts/{id}/${reason === undefined ? "unblock" : "block"}`,
      ...long,
      act: async (stage) => {
        const { id, profile } = await stage.account("default")
        const by = stage.surfaces[number]
        const seat = await stage.root(by)
        const blocked = await stage.telling(() => by.block(seat, id, loop), () => [blocking(profile, id, loop)])
        if (reason !== undefined) return only(blocked)
        return only(await stage.telling(() => by.unblock(seat, id), () => [blocking(profile, id, undefined)]))
      }
    }))
  }),
  ...([loop, undefined] as const).map((reason): Way => ({
    event: reason === undefined ? "account_unblocked" : "account_blocked",
    surface: "command line",
    entry: reason === undefined ? "account unblock" : "account block",
    ...long,
    act: async (stage) => {
      const { id, profile } = await stage.account("default")
      const block = () => stage.command("account", "block", id, "--reason", loop)
      const blocked = await stage.telling(block, () => [blocking(profile, id, loop, "")])
      if (reason !== undefined) return only(blocked)
      const unblock = () => stage.command("account", "unblock", id)
      return only(await stage.telling(unblock, () => [blocking(profile, id, undefined, "")]))
    }
  }))
]

const cliTarget = "cli-target"

const keyboardWays: ReadonlyArray<Way> = ([
  ["contact_address", "admin user contact", ["--contact", "moved@example.org"]],
  ["password", "admin user passwd", ["--password-file", "next"]],
  ["recovery_codes_regenerated", "admin user totp recovery-codes", []],
  ["second_factor_disabled", "admin user totp reset", ["--yes"]]
] as const).map(([says, entry, flags]): Way => ({
  event: "admin_credential_changed",
  says,
  surface: "command line",
  entry,
  ...long,
  act: async (stage) => {
    writeFileSync(join(stage.directory, "next"), "Another bridge over the Oder", { mode: 0o600 })
    const recipient = "moved@example.org"
    const former = { recipient, previous_recipient: `${cliTarget}@example.org` }
    const members = { change: says, by_self: false, ...says === "contact_address" ? former : { recipient } }
    return only(
      await stage.telling(
        () => stage.command(...entry.split(" "), cliTarget, ...flags),
        () => [ofOperator("admin_credential_changed", cliTarget, members, undefined)]
      )
    )
  }
}))

const linkWay: Way = {
  event: "admin_credential_changed",
  says: "password",
  surface: "panel",
  entry: "POST /ui/link/password",
  ...long,
  act: async (stage) => {
    const link = new URL((await stage.command("admin", "user", "link", cliTarget)).trim())
    const typed = "A third bridge over the Oder"
    const body = new URLSearchParams({ token: link.hash.slice(1), newPassword: typed, repeated: typed })
    const headers = { "user-agent": "test \"1\"" }
    return only(
      await stage.telling(async () => {
        const { status } = await fetch(`${link.origin}/ui/link/password`, {
          method: "POST",
          body,
          headers,
          redirect: "manual"
        })
        if (status !== 303) throw new Error(`the link was answered with ${status}`)
      }, () => {
        const members = { change: "password", by_self: true, recipient: "moved@example.org" }
        return [ofOperator("admin_credential_changed", cliTarget, members, "127.0.0.1")]
      })
    )
  }
}

/** Every row, in the order in which they run. The reload comes before the rows that need it. */
export const ways: ReadonlyArray<Way> = [
  ...mounts,
  ...accountWays,
  ...blockWays,
  ...certificateWays,
  ...keyboardWays,
  linkWay,
  ...operatorWays("API", 0, "whole"),
  ...operatorWays("panel", 1, "whole"),
  ...endingWays,
  ...operatorWays("API", 0, "forced"),
  ...operatorWays("panel", 1, "forced")
]
