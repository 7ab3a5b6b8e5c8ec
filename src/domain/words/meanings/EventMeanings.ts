import type { EventName } from "../Log.ts"
import { adminMeanings } from "./AdminMeanings.ts"
import { auditMeanings } from "./AuditMeanings.ts"
import { challengeMeanings } from "./ChallengeMeanings.ts"
import { databaseMeanings } from "./DatabaseMeanings.ts"
import type { EveryMeaning } from "./EventMeaning.ts"
import { issuanceMeanings } from "./IssuanceMeanings.ts"
import type { Said } from "./Meaning.ts"
import { saidBy } from "./Meaning.ts"
import { notifyMeanings } from "./NotifyMeanings.ts"
import { orderMeanings } from "./OrderMeanings.ts"
import { policyMeanings } from "./PolicyMeanings.ts"
import { processMeanings } from "./ProcessMeanings.ts"
import { queueMeanings } from "./QueueMeanings.ts"
import { requestMeanings } from "./RequestMeanings.ts"
import { revocationMeanings } from "./RevocationMeanings.ts"
import { upstreamMeanings } from "./UpstreamMeanings.ts"

const meanings: EveryMeaning = {
  ...processMeanings,
  ...databaseMeanings,
  ...requestMeanings,
  ...orderMeanings,
  ...policyMeanings,
  ...challengeMeanings,
  ...issuanceMeanings,
  ...upstreamMeanings,
  ...revocationMeanings,
  ...queueMeanings,
  ...auditMeanings,
  ...adminMeanings,
  ...notifyMeanings
}

/** Returns what an event means, and what to do about it. */
export const saidOfEvent = (event: EventName): Said => saidBy(meanings[event])
