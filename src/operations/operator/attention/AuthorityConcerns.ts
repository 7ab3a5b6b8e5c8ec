import * as Effect from "effect/Effect"
import { currentSeconds } from "../../../engine/Time.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import * as compromised from "../../../store/revocation/CompromisedIssuers.ts"
import * as crls from "../../../store/revocation/Crls.ts"
import { stoppedShown } from "../../ProfileHealth.ts"
import { caStateOf } from "../CaState.ts"
import { signing } from "../CrlRecords.ts"
import type { Concern } from "./Concern.ts"
import { concern, counted } from "./Concern.ts"

/* What CAs and their revocation lists need attention for. */

const daySeconds = 86_400
/** An end that is nearer than this number of days is an alarm. */
const alarmDays = 7
/** A list that ends within this number of seconds should have been replaced by now. */
const listDueSeconds = 2 * daySeconds

/** Returns the concerns about the CAs of the served profiles. */
export const authorityConcerns = Effect.fnUntraced(function*({ profiles }: Pick<Config, "profiles">) {
  const now = yield* currentSeconds
  const [named, stopped] = [
    yield* signing(profiles.filter(({ enabled }) => enabled).map(({ name }) => name)),
    yield* stoppedShown
  ]
  const lost = new Map((yield* compromised.shownAll).map((one) => [one.issuer, one]))
  const found: Array<Concern> = []
  for (const { ca, issuance, profiles } of named.values()) {
    const name = ca.subject
    const way = { label: "Show the CA", path: `/ui/authorities/${ca.id}`, command: `ca show ${ca.id}` }
    const served = `Profiles: ${profiles.join(", ")}.`
    const compromise = lost.get(ca.id)
    if (compromise !== undefined && (issuance === "issuing" || compromise.scannedAt === undefined)) {
      found.push(concern("ca_compromised", {
        title: `The CA ${name} is compromised`,
        effect: `${
          issuance === "issuing"
            ? "It issues nothing, and neither do its profiles until another CA takes its place."
            : "Its certificates are being revoked."
        } ${served}`,
        since: compromise.compromisedAt,
        way
      }))
    }
    // The end of a CA that does not issue any more is expected.
    const state = issuance === "retired" ? "ok" : caStateOf(ca, now)
    const end = ca.firstToEnd.notAfter
    if (state === "ended") {
      found.push(concern("ca_ended", {
        title: `The certificate of the CA ${name} has expired`,
        effect: `No client trusts what it has signed. ${served}`,
        since: end,
        way
      }))
    } else if (state === "expiring") {
      const days = Math.floor((end - now) / daySeconds)
      found.push(concern("ca_ending", {
        ...days < alarmDays ? { severity: "alarm" as const } : {},
        title: `The certificate of the CA ${name} expires in ${counted(days, "day")}`,
        effect: `Certificates end with their CA, so new ones live shorter and shorter. ${served}`,
        way
      }))
    }
    const list = yield* crls.shownHead(ca.id)
    const trouble = stopped.get(ca.id)
    const unsafe = "Clients that check it see no new revocations."
    if (trouble !== undefined) {
      found.push(concern("list_stopped", {
        title: `The revocation list of the CA ${name} is not signed any more`,
        effect: "Nothing that this CA has issued can be revoked.",
        error: trouble,
        way
      }))
    } else if (list === undefined) {
      found.push(concern("list_missing", {
        title: `The CA ${name} has no revocation list yet`,
        effect: "A worker signs the first list when it starts.",
        way
      }))
    } else if (list.nextUpdate <= now) {
      found.push(concern("list_expired", {
        title: `The revocation list of the CA ${name} has expired`,
        effect: `Clients that need a current list refuse its certificates. ${unsafe}`,
        since: list.nextUpdate,
        way
      }))
    } else if (list.nextUpdate - now < listDueSeconds) {
      found.push(concern("list_due", {
        title: `The revocation list of the CA ${name} was not renewed in time`,
        effect: `It expires within two days. ${unsafe}`,
        way
      }))
    }
  }
  return found
})
