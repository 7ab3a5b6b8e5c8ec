import { afterAll } from "vitest"
import { cleanUp } from "./Cleanup.ts"
import "./EndWithRun.ts"

/* Runs in every test file. Files may share a process and all modules except this one. */

afterAll(cleanUp)
