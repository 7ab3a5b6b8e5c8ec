import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import CountReporter from "./support/CountReporter.ts"
import { isFull } from "./support/Full.ts"
import { unnamed } from "./support/GateOnly.ts"
import LongestFirst from "./support/LongestFirst.ts"

const support = (file: string): string => fileURLToPath(new URL(`support/${file}`, import.meta.url))

/** The files with tests about statements. */
const store = ["migrations.test.ts", "{engine/sql,engine/queue,services/nonce,store}/**/*.test.ts"]

/** The files that start programs. */
const processes = ["{gate,packaging,units}.test.ts", "{docs,e2e,simulation,support}/**/*.test.ts"]

/** The files that this run leaves out. */
const leftOut = isFull ? [] : unnamed(process.argv.slice(2))

const project = (name: string, files: { readonly include: Array<string>; readonly exclude: Array<string> }) => ({
  root: import.meta.dirname,
  cacheDir: "../node_modules/.vite",
  test: {
    name,
    include: files.include,
    exclude: [...files.exclude, ...leftOut],
    setupFiles: [support("setup.ts")],
    provide: { everyDatabase: isFull || name === "store" },
    // Only a test that hangs reaches these limits. The time of a test depends on the load of the machine, and on
    // whether the run is full.
    testTimeout: process.env["FUZZ_RUNS"] === undefined ? 600_000 : 0,
    hookTimeout: 600_000
  }
})

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: "../node_modules/.vite",
  test: {
    projects: [
      project("process", { include: processes, exclude: [] }),
      project("store", { include: store, exclude: [] }),
      project("unit", { include: ["**/*.test.ts"], exclude: [...processes, ...store] })
    ],
    passWithNoTests: false,
    globalSetup: [support("globalSetup.ts")],
    reporters: ["default", new CountReporter()],
    sequence: { sequencer: LongestFirst },
    pool: "forks",
    // Files share a process, and with it the imported modules. setup.ts removes what a file leaves behind. There are
    // more processes than cores, because processes that start programs mostly wait.
    maxWorkers: 5,
    isolate: false,
    teardownTimeout: 20_000
  }
})
