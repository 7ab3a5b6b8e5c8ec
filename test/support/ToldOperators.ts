import type { NotificationFields } from "../../src/domain/Notification.ts"
import { totpNow } from "./Authenticator.ts"
import type { OperatorSurface, Seat } from "./OperatorSeats.ts"
import { apiSurface, panelSurface } from "./OperatorSeats.ts"
import { mostAttempts, nextPassword, password } from "./ToldGround.ts"
import { given } from "./ToldStage.ts"
import type { Expected, Stage } from "./ToldStage.ts"
import type { Way } from "./ToldWay.ts"
import { ofOperator } from "./ToldWay.ts"

/*
 * The notifications about operators, caused through each of the two surfaces, first with the default configuration, and
 * then with a second factor required of everybody.
 */

type Outcome = NotificationFields["admin_sign_in"]["outcome"]
type Change = NotificationFields["admin_credential_changed"]["change"]

const signIn = (username: string, outcome: Outcome, from: string) =>
  ofOperator("admin_sign_in", username, { outcome }, from)

const changed = (username: string, change: Change, isOwn: boolean, from: string, more = {}) =>
  ofOperator("admin_credential_changed", username, { change, by_self: isOwn, ...more }, from)

/** The addresses of the admins, who also get a notification about an attack on an account. */
const admins = ["api-root@example.org", "panel-root@example.org"]

const declared = { API: apiSurface("").routes, panel: panelSurface("").routes } as const

/** Sends wrong codes or passwords until the attempts are used up, and then `more` of them. */
const wrongly = async (
  surface: OperatorSurface,
  act: "confirm" | "contact" | "forcedConfirm" | "signIn" | "verify",
  seat: Partial<Seat>,
  fields: Readonly<Record<string, string>>,
  times: number
): Promise<void> => {
  for (let index = 0; index < times; index++) {
    const status = await surface.attempt(act, seat, fields)
    if (status < 400) throw new Error(`${surface.routes[act]} took ${JSON.stringify(fields)}: ${status}`)
  }
}

/**
 * Returns the rows of a surface. `part` says whether they come before or after the reload that requires a second factor
 * of everybody.
 */
export const operatorWays = (
  surface: OperatorSurface["name"],
  number: 0 | 1,
  part: "forced" | "whole"
): ReadonlyArray<Way> => {
  const routes = declared[surface]
  const at = (last: number): string => `127.0.${number}.${last}`
  const of = (name: string): string => `${surface.toLowerCase()}-${name}`
  const way = (
    entry: keyof typeof routes,
    event: "admin_credential_changed" | "admin_sign_in",
    says: Change | Outcome,
    what: string | undefined,
    act: (stage: Stage, surface: OperatorSurface) => Promise<Expected | undefined>
  ): Way => ({
    event,
    says,
    surface,
    entry: routes[entry],
    ...what === undefined ? {} : { what },
    isShort: surface === "API" && (says === "succeeded_from_new_address" && entry === "signIn" || entry === "contact"),
    act: async (stage) => given(await act(stage, stage.surfaces[number]))
  })
  const own = of("own")
  const wrongCode = { code: "000000" }
  const ownSeat = (stage: Stage, surface: OperatorSurface) =>
    stage.once(`${own} seat`, () => surface.signIn(own, password, at(11)))
  const laterSeat = (stage: Stage): Promise<Seat> =>
    stage.once(`${own} later`, () => Promise.reject(new Error("there was no second sign-in")))
  const moved = `${own}-new@example.org`
  const addressed = { recipient: moved }
  if (part === "forced") {
    const [forced, late] = [of("forced"), of("late")]
    return [
      way(
        "forcedConfirm",
        "admin_credential_changed",
        "second_factor_enabled",
        "at a sign-in",
        async (stage, surface) => {
          const told = await stage.telling(async () => {
            const half = await surface.signIn(forced, password, at(16))
            await surface.forcedConfirm(half, totpNow(await surface.forcedBegin(half)))
          }, () => [
            changed(forced, "second_factor_enabled", true, at(16)),
            signIn(forced, "succeeded_from_new_address", at(16))
          ])
          await stage.once(`${forced} told`, () => Promise.resolve(told))
          return told[0]
        }
      ),
      way(
        "forcedConfirm",
        "admin_sign_in",
        "succeeded_from_new_address",
        undefined,
        async (stage) => (await stage.once<ReadonlyArray<Expected>>(`${forced} told`, () => Promise.resolve([])))[1]
      ),
      way("forcedConfirm", "admin_sign_in", "second_factor_refused", undefined, async (stage, surface) => {
        const half = await surface.signIn(late, password, at(35))
        await surface.forcedBegin(half)
        const act = () => wrongly(surface, "forcedConfirm", half, wrongCode, mostAttempts)
        return (await stage.telling(act, () => [signIn(late, "second_factor_refused", at(35))]))[0]
      }),
      way("forcedConfirm", "admin_sign_in", "locked_out", undefined, async (stage, surface) => {
        const half = await surface.signIn(late, password, at(34))
        await surface.forcedBegin(half)
        const act = () => wrongly(surface, "forcedConfirm", half, wrongCode, 1)
        return (await stage.telling(act, () => [signIn(late, "locked_out", at(34))]))[0]
      })
    ]
  }
  return [
    way(
      "signIn",
      "admin_sign_in",
      "succeeded_from_new_address",
      undefined,
      async (stage, surface) =>
        (await stage.telling(
          () => ownSeat(stage, surface),
          () => [signIn(own, "succeeded_from_new_address", at(11))]
        ))[0]
    ),
    way("contact", "admin_credential_changed", "contact_address", undefined, async (stage, surface) => {
      const seat = await ownSeat(stage, surface)
      const more = { recipient: moved, previous_recipient: `${own}@example.org` }
      return (await stage.telling(
        () => surface.contact(seat, password, moved),
        () => [changed(own, "contact_address", true, seat.from, more)]
      ))[0]
    }),
    way("confirm", "admin_credential_changed", "second_factor_enabled", undefined, async (stage, surface) => {
      const seat = await ownSeat(stage, surface)
      return (await stage.telling(
        async () => surface.confirm(seat, totpNow(await surface.begin(seat, password))),
        () => [changed(own, "second_factor_enabled", true, seat.from, addressed)]
      ))[0]
    }),
    way("codes", "admin_credential_changed", "recovery_codes_regenerated", undefined, async (stage, surface) => {
      const seat = await ownSeat(stage, surface)
      return (await stage.telling(
        () => stage.once(`${own} codes`, () => surface.codes(seat, password)),
        () => [changed(own, "recovery_codes_regenerated", true, seat.from, addressed)]
      ))[0]
    }),
    way("verify", "admin_sign_in", "succeeded_from_new_address", undefined, async (stage, surface) => {
      const [code = ""] = await stage.once<ReadonlyArray<string>>(`${own} codes`, () => Promise.resolve([]))
      return (await stage.telling(
        () => stage.once(`${own} later`, async () => surface.verify(await surface.signIn(own, password, at(12)), code)),
        () => [ofOperator("admin_sign_in", own, { outcome: "succeeded_from_new_address", ...addressed }, at(12))]
      ))[0]
    }),
    way("verify", "admin_sign_in", "second_factor_refused", undefined, async (stage, surface) => {
      const half = await surface.signIn(own, password, at(32))
      return (await stage.telling(
        () => wrongly(surface, "verify", half, wrongCode, mostAttempts),
        () => [ofOperator("admin_sign_in", own, { outcome: "second_factor_refused", ...addressed }, at(32))]
      ))[0]
    }),
    way("verify", "admin_sign_in", "locked_out", undefined, async (stage, surface) => {
      const half = await surface.signIn(own, password, at(33))
      return (await stage.telling(
        () => wrongly(surface, "verify", half, wrongCode, 1),
        () => [ofOperator("admin_sign_in", own, { outcome: "locked_out", ...addressed }, at(33))]
      ))[0]
    }),
    way("disable", "admin_credential_changed", "second_factor_disabled", undefined, async (stage, surface) => {
      const seat = await laterSeat(stage)
      return (await stage.telling(
        () => surface.disable(seat, password),
        () => [changed(own, "second_factor_disabled", true, seat.from, addressed)]
      ))[0]
    }),
    way("password", "admin_credential_changed", "password", undefined, async (stage, surface) => {
      const seat = await laterSeat(stage)
      return (await stage.telling(
        () => surface.password(seat, password, nextPassword),
        () => [changed(own, "password", true, seat.from, addressed)]
      ))[0]
    }),
    way("signIn", "admin_sign_in", "locked_out", undefined, async (stage, surface) => {
      const fields = { username: of("locked"), password: "a wrong one" }
      return (await stage.telling(
        () => wrongly(surface, "signIn", { from: at(18) }, fields, mostAttempts + 1),
        () => [signIn(of("locked"), "locked_out", at(18))]
      ))[0]
    }),
    way("signIn", "admin_sign_in", "password_guessed", undefined, async (stage, surface) => {
      const fields = { username: of("target"), password: "a wrong one" }
      return (await stage.telling(
        async () => {
          for (let last = 21; last <= 30; last++) await wrongly(surface, "signIn", { from: at(last) }, fields, 1)
        },
        () => [
          ofOperator("admin_sign_in", of("target"), { outcome: "password_guessed", failures: 10, admins }, at(30))
        ]
      ))[0]
    }),
    way("confirm", "admin_sign_in", "locked_out", undefined, async (stage, surface) => {
      const seat = await stage.seat(surface, of("wrong"), at(13))
      await surface.begin(seat, password)
      return (await stage.telling(
        () => wrongly(surface, "confirm", seat, wrongCode, mostAttempts + 1),
        () => [signIn(of("wrong"), "locked_out", seat.from)]
      ))[0]
    }),
    way("contact", "admin_sign_in", "locked_out", "by its password", async (stage, surface) => {
      const seat = await stage.seat(surface, of("step"), at(14))
      const fields = { password: "a wrong one", contact: "a@example.org" }
      const told = await stage.telling(
        () => wrongly(surface, "contact", seat, fields, mostAttempts + 1),
        () => [signIn(of("step"), "step_up_failed", seat.from), signIn(of("step"), "locked_out", seat.from)]
      )
      return told[1]
    }),
    way("contact", "admin_sign_in", "step_up_failed", undefined, async (stage, surface) => {
      const seat = await stage.seat(surface, of("mistaken"), at(31))
      const fields = { password: "a wrong one", contact: "a@example.org" }
      const told = await stage.telling(
        () => wrongly(surface, "contact", seat, fields, 2),
        () => [signIn(of("mistaken"), "step_up_failed", seat.from)]
      )
      return told[0]
    }),
    way("contact", "admin_sign_in", "step_up_refused", undefined, async (stage, surface) => {
      const seat = await stage.seat(surface, of("guessed"), at(19))
      const fields = { password: "a wrong one", contact: "a@example.org" }
      const told = await stage.telling(
        async () => {
          await wrongly(surface, "contact", seat, fields, mostAttempts)
          // An attacker who has the cookie and another address would do the same.
          await wrongly(surface, "contact", { ...seat, from: at(20) }, fields, 2)
        },
        () => [
          signIn(of("guessed"), "step_up_failed", seat.from),
          ofOperator("admin_sign_in", of("guessed"), { outcome: "step_up_refused", admins }, at(20))
        ]
      )
      return told[1]
    }),
    way("contactOf", "admin_credential_changed", "contact_address", undefined, async (stage, surface) => {
      const seat = await stage.root(surface)
      const target = of("target")
      const more = { recipient: "elsewhere@example.org", previous_recipient: `${target}@example.org` }
      return (await stage.telling(
        () => surface.contactOf(seat, password, target, "elsewhere@example.org"),
        () => [changed(target, "contact_address", false, seat.from, more)]
      ))[0]
    }),
    way("resetOf", "admin_credential_changed", "second_factor_disabled", undefined, async (stage, surface) => {
      const seat = await stage.root(surface)
      const target = of("target")
      return (await stage.telling(
        () => surface.resetOf(seat, password, target),
        () => [changed(target, "second_factor_disabled", false, seat.from, { recipient: "elsewhere@example.org" })]
      ))[0]
    })
  ]
}
