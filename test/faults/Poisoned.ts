import { readFileSync } from "node:fs"
import { registerHooks } from "node:module"

/*
 * This module makes background work of a service fail. It is loaded before the sources of the service. A loop ends with
 * a defect as soon as a file with the name of the loop is in the folder ACME_TEST_POISON. The file is then removed
 * unless it contains "always". ACME_TEST_POISON_END is the number of failures in a row after which the process ends.
 */

const poisoned = `
import * as PoisonFs from "node:fs"
const poisonOf = (loop) => {
  const file = process.env.ACME_TEST_POISON + "/" + loop
  const look = () => {
    if (!PoisonFs.existsSync(file)) return Effect.delay(Effect.suspend(look), 20)
    if (PoisonFs.readFileSync(file, "utf8") !== "always") PoisonFs.unlinkSync(file)
    return Effect.die(new Error("poison for " + loop))
  }
  return Effect.suspend(look)
}
`

const end = process.env["ACME_TEST_POISON_END"]

/** Returns the source of a module with a change at one place. */
const changed = (url: string, before: string, after: string, more = "") => {
  const source = readFileSync(new URL(url), "utf8")
  if (!source.includes(before)) throw new Error(`${url} has no place for a defect: ${before}`)
  return { format: "module-typescript", shortCircuit: true, source: source.replace(before, after) + more }
}

registerHooks({
  load: (url, context, next) => {
    if (url.endsWith("/src/engine/Supervised.ts")) {
      return changed(url, "Effect.exit(work)", "Effect.exit(Effect.raceFirst(work, poisonOf(loop)))", poisoned)
    }
    return end !== undefined && url.endsWith("/src/engine/Loops.ts")
      ? changed(url, "end: 8 }", `end: ${end} }`)
      : next(url, context)
  }
})
