import { endWithParent } from "./Watchdog.ts"

/* Every process of a run imports this file once. */

endWithParent()
