import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { DiskSpace } from "../../../engine/host/Files.ts"
import { diskSpaceOf } from "../../../engine/host/Files.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { fileOf } from "../../../settings/DatabaseUrl.ts"
import { concern } from "./Concern.ts"

/* Whether the disk of the database has room. */

const mebibyte = 1_048_576
const gibibyte = 1024 * mebibyte

/** With less free space than this, the next large transaction may fail. */
const fullBelow = 16 * mebibyte
/** With less free space than both of these, the disk is nearly full: a share of the disk, and a number of octets. */
const low = { share: 0.05, octets: 5 * gibibyte }

const shown = (octets: number): string =>
  octets < gibibyte ? `${Math.floor(octets / mebibyte)} MiB` : `${(octets / gibibyte).toFixed(1)} GiB`

/** Returns the concerns about a disk with this space. */
export const spaceConcerns = ({ free, total }: DiskSpace) => {
  const isFull = free < fullBelow
  if (!isFull && !(free < total * low.share && free < low.octets)) return []
  return [concern("disk_full", {
    ...isFull ? {} : { severity: "warning" as const },
    title: `The disk of the database has only ${shown(free)} left`,
    effect: isFull
      ? "Requests that have to write fail, and no job ends."
      : "When it is full, no client gets a certificate.",
    way: { label: "Show the processes", path: "/ui/workers", command: "config check --online" }
  })]
}

/**
 * Returns the concerns about the disk of an embedded database. Only a PostgreSQL server itself knows how much space is
 * free on its disk.
 */
export const diskConcerns = ({ database }: Pick<Config, "database">) => {
  const file = fileOf(database.url)
  return file === undefined
    ? Effect.succeed([])
    : Effect.map(diskSpaceOf(file), Option.match({ onNone: () => [], onSome: spaceConcerns }))
}
