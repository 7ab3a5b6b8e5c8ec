import { afterAll } from "vitest"
import { cleanUp } from "./Cleanup.ts"
import "./EndWithRun.ts"

/* Runs in every test file, also where files share a process and with it all modules but this one. */

afterAll(cleanUp)
