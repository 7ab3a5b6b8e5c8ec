import type { LoopDeclaration } from "../../engine/Loops.ts"
import { engineLoops } from "../../engine/Loops.ts"
import { makeSupervised } from "../../engine/Supervised.ts"

/** The background loops of a process, by their names in records and metrics. */
export const loops = {
  ...engineLoops,
  // without this loop, nobody knows since when all is well
  attention: { isVital: false },
  crl_export: { isVital: false },
  crl_first_list: { isVital: false },
  // without this loop, the write-ahead file of SQLite grows
  database_checkpoints: { isVital: false },
  generation_retired: { isVital: false },
  listener_closed: { isVital: false },
  lost_changes: { isVital: false },
  process_kept: { isVital: true },
  process_messages: { isVital: true },
  process_readiness: { isVital: true },
  process_scrapes: { isVital: false },
  process_state: { isVital: true },
  profile_states: { isVital: false },
  renewal_asks: { isVital: false },
  renewal_hours: { isVital: false },
  reload_refused: { isVital: false },
  stop_signal: { isVital: false }
} as const satisfies Readonly<Record<string, LoopDeclaration>>

/** Runs a background loop of the service. */
export const supervised = makeSupervised(loops)
