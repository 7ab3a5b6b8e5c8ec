import { relative } from "node:path"
import type { Reporter, TestModule, Vitest } from "vitest/node"

interface Failure {
  readonly message: string
}

/** How much of a message is printed. The difference of two values often begins in its third line. */
const mostCharacters = 500

/**
 * Prints at the end of the run a line for each failure and the line `N passed, N failed`, which `.ci/run` reads. A file
 * that could not be loaded, a failed hook of a suite, and an unhandled error each count as one failure.
 */
export default class CountReporter implements Reporter {
  private watching = false
  private line: string | undefined
  private readonly failures: Array<string> = []

  private tell(where: string, failure: Failure | undefined): void {
    // The thrown value need not be an error.
    const said = String(failure?.message ?? "").replaceAll(/\s+/g, " ").trim()
    this.failures.push(`FAILED ${where.replaceAll(/\s+/g, " ")}: ${said.slice(0, mostCharacters)}\n`)
  }

  onInit(vitest: Vitest): void {
    this.watching = vitest.config.watch
    process.once("exit", () => {
      if (this.line !== undefined && !this.watching) process.stdout.write(`${this.failures.join("")}${this.line}\n`)
    })
  }

  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandled: ReadonlyArray<Failure>): void {
    let passed = 0
    this.failures.length = 0
    for (const error of unhandled) this.tell("outside of tests", error)
    for (const module of modules) {
      const file = relative(process.cwd(), module.moduleId)
      for (const error of module.errors()) this.tell(`${file} > the file`, error)
      for (const suite of module.children.allSuites()) {
        for (const error of suite.errors()) this.tell(`${file} > ${suite.fullName}`, error)
      }
      for (const test of module.children.allTests()) {
        const { errors, state } = test.result()
        if (state === "passed") passed++
        if (state === "failed") this.tell(`${file} > ${test.fullName}`, errors?.[0])
      }
    }
    this.line = `${passed} passed, ${this.failures.length} failed`
    if (this.watching) process.stdout.write(`${this.line}\n`)
  }
}
