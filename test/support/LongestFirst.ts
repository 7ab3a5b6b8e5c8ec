import type { TestSpecification } from "vitest/node"
import { BaseSequencer } from "vitest/node"

/**
 * Files that take a long time although they compute little, because they wait for time limits of the service or start
 * programs.
 */
export const longest: ReadonlyArray<string> = [
  "e2e/panelForms.test.ts",
  "docs/bench.test.ts",
  "docs/development.test.ts",
  "e2e/panelPages.test.ts",
  "docs/benchOperators.test.ts",
  "e2e/revocation.test.ts",
  "e2e/eab.test.ts",
  "e2e/connections.test.ts",
  "e2e/relay.test.ts",
  "e2e/notified.test.ts",
  "e2e/shutdown.test.ts",
  "docs/faults.test.ts",
  "docs/simulation.test.ts",
  "docs/revocation.test.ts",
  "simulation/simulation.test.ts",
  "e2e/transfer.test.ts",
  "e2e/kill9.test.ts",
  "e2e/panelWhole.test.ts",
  "e2e/badRequests.test.ts",
  "e2e/databaseGone.test.ts",
  "surfaces/panel/Fuzz.test.ts",
  "surfaces/api/Conformity.test.ts",
  "engine/net/DnsUpdate.test.ts",
  "engine/http/Listener.test.ts",
  "engine/queue/Runner.test.ts"
]

/**
 * Starts the longest files first, so that no process of a project ends long before the others. vitest knows the
 * duration of a file only if the file has run here before. Otherwise it uses the size of the text.
 */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = longest.findIndex((file) => moduleId.endsWith(`/test/${file}`))
      return at < 0 ? longest.length : at
    }
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other))
  }
}
