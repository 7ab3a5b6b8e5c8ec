import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as jobClaims from "./Claims.ts"
import * as jobs from "./Job.ts"

/** How many jobs of a kind one process may have at once. */
export interface Room {
  readonly slots: number
  /** Slots that are given in order of arrival. Beyond them, the share that has least comes first. */
  readonly firstCome: number
  /** The most for one group. */
  readonly group: number
  /**
   * A part of what the member's group has left. A member that has fewer slots than this part may take another; every
   * member may have one.
   */
  readonly memberPart: number
}

/** The room of a kind, by `jobs.max_concurrent`. Every kind has its own, so that no kind waits for another. */
export type RoomBy = (most: number) => Room

/** The room of a kind that computes. */
export const computing: RoomBy = (most) => {
  // One slot is left for other groups, because a job may run a slow program.
  const others = most < 4 ? 0 : 1
  return { slots: most, firstCome: most - others, group: most - others, memberPart: Number.POSITIVE_INFINITY }
}

/**
 * The room of a kind that waits for others, such as a name server, and does not compute: `factor` slots for each slot of
 * a kind that computes. The more of these are taken, the fewer a member may have, so that some are left for newcomers.
 */
export const waiting =
  ({ factor, memberPart }: { readonly factor: number } & Pick<Room, "memberPart">): RoomBy => (most) => {
    const slots = factor * most
    // Whole numbers: the first is the limit of a statement.
    return { slots, firstCome: Math.ceil(slots / 4), group: Math.floor(slots * 3 / 4), memberPart }
  }

/** What the queue has to know of a kind. */
export interface KindNeeds {
  /** Absent for kinds that have one row per subject: all their rows may run. */
  readonly room?: RoomBy
  /** Its jobs are enqueued at start and reschedule themselves. */
  readonly periodic?: boolean
  /** Requests wait for the end of its jobs, in other processes too. */
  readonly isAwaited?: boolean
}

/** A kind of job: its needs, and how its payload is written and read. */
export interface Kind<P, S extends Schema.Top = Schema.Codec<P, unknown>> extends KindNeeds {
  readonly payload: S
  readonly encode: (payload: P) => string
  /** `undefined` if the text does not have the shape of the kind. */
  readonly decode: (text: string) => P | undefined
}

/** Declares a kind. */
export const kind = <P, S extends Schema.Codec<P, unknown>>(
  self: KindNeeds & { readonly payload: S & Schema.Codec<P, unknown> }
): Kind<P, S> => {
  // Made once, because a schema that is built for each job would be compiled for each job.
  const json = Schema.fromJsonString(self.payload)
  const decode = Schema.decodeUnknownOption(json)
  return {
    ...self,
    encode: Schema.encodeSync(json),
    decode: (text) => Option.getOrUndefined(decode(text))
  }
}

/** What the queue is given of all kinds: their rooms, and the statements whose texts name kinds. */
export type KnownKinds = ReturnType<typeof knownOf>

/** Makes the statements, once for a program. `groupName` is the name of the group of a share in records of the log. */
export const knownOf = (kinds: { readonly [kind: string]: KindNeeds }, groupName: string) => {
  const names = Object.keys(kinds)
  return {
    groupName,
    /** How many jobs of a kind may run here at once, by `jobs.max_concurrent`; `undefined` if there is no limit. */
    roomOf: (kind: string, most: number): Room | undefined => kinds[kind]?.room?.(most),
    ...jobClaims.claiming(names),
    ...jobs.ending(names.filter((name) => kinds[name]?.isAwaited === true))
  }
}
