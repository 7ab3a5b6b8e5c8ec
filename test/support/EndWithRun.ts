import { endWithParent } from "./Watchdog.ts"

/* Imported once by every process of a run. */

endWithParent()
