import { apiGroups } from "./ApiPlays.ts"
import { commandGroups } from "./CommandPlays.ts"
import { panelGroups } from "./PanelPlays.ts"
import type { Group } from "./Play.ts"

/** Every group of plays. */
export const groups: ReadonlyArray<Group> = [...apiGroups, ...commandGroups, ...panelGroups]
