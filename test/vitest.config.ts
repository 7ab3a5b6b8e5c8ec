import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import CountReporter from "./support/CountReporter.ts"

export default defineConfig({
  root: import.meta.dirname,
  cacheDir: "../node_modules/.vite",
  test: {
    include: ["**/*.test.ts"],
    passWithNoTests: false,
    globalSetup: [fileURLToPath(new URL("support/globalSetup.ts", import.meta.url))],
    reporters: ["default", new CountReporter()],
    pool: "forks",
    poolOptions: { forks: { minForks: 1, maxForks: 2 } },
    testTimeout: 30_000,
    hookTimeout: 120_000,
    teardownTimeout: 20_000
  }
})
