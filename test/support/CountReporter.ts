import type { Reporter, TestModule, Vitest } from "vitest/node"

/**
 * Closes the run with `N passed, N failed`, the line CI reads, after everything else has been printed.
 * A file that could not be loaded, a failing hook of a suite and an unhandled error each count as one failure.
 */
export default class CountReporter implements Reporter {
  private watching = false
  private line: string | undefined

  onInit(vitest: Vitest): void {
    this.watching = vitest.config.watch
    process.once("exit", () => {
      if (this.line !== undefined && !this.watching) process.stdout.write(`${this.line}\n`)
    })
  }

  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandled: ReadonlyArray<unknown>): void {
    let passed = 0
    let failed = unhandled.length
    for (const module of modules) {
      failed += module.errors().length
      for (const suite of module.children.allSuites()) failed += suite.errors().length
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state === "passed") passed++
        if (state === "failed") failed++
      }
    }
    this.line = `${passed} passed, ${failed} failed`
    if (this.watching) process.stdout.write(`${this.line}\n`)
  }
}
