import { readFileSync } from "node:fs"
import { registerHooks } from "node:module"

/*
 * Loaded before the sources of a service whose background work is to die: puts a defect into each loop as soon as a file with its
 * name is in the folder ACME_TEST_POISON. The file goes with the defect, unless it says "always".
 */

const place = "Effect.exit(work)"

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

registerHooks({
  load: (url, context, next) => {
    if (!url.endsWith("/src/kernel/Supervised.ts")) return next(url, context)
    const source = readFileSync(new URL(url), "utf8")
    if (!source.includes(place)) throw new Error(`${url} has no place for a defect: ${place}`)
    return {
      format: "module-typescript",
      shortCircuit: true,
      source: source.replace(place, "Effect.exit(Effect.raceFirst(work, poisonOf(loop)))") + poisoned
    }
  }
})
