import { mkdtempSync, rmSync } from "node:fs"
import { resolve } from "node:path"
import type { Outcome } from "../Table.ts"
import type { Step } from "./Guide.ts"
import { guideOf } from "./Guide.ts"
import type { Machine } from "./Machine.ts"
import { doIn, layWire } from "./Machine.ts"
import type { Recipe } from "./Recipes.ts"
import { recipes } from "./Recipes.ts"
import type { Words } from "./Site.ts"
import { startSite } from "./Site.ts"

/*
 * Carries out the recipes whose headings are on the command line, each on a machine of its own, and prints the result
 * of each as a line of JSON. `Guides.ts` starts this program with networks and file systems of its own.
 */

const filled = (text: string, words: Words): string =>
  Object.entries(words).reduce(
    (before, [word, value]) => before.replaceAll(new RegExp(`\\b${word}\\b`, "g"), value),
    text
  )

/** Returns the steps of a recipe, which are its assumptions, the unchanged section, the checks, and a renewal. */
const stepsOf = ({ before = [], document, heading, holds, later }: Recipe, words: Words): ReadonlyArray<Step> => {
  const section = guideOf(document).get(heading)
  if (section === undefined) throw new Error(`${document} has no commands below ${heading}`)
  const renewal = later === undefined ? [] : [
    `before=$(openssl x509 -noout -serial -in ${later.certificate} || true)`,
    later.line,
    `after=$(openssl x509 -noout -serial -in ${later.certificate})`,
    "test \"$before\" != \"$after\"",
    ...holds
  ]
  const shell = (lines: ReadonlyArray<string>): Step => ({ kind: "shell", body: lines.join("\n") })
  return [
    shell([`REPOSITORY=${resolve(import.meta.dirname, "../../..")}`, `FINGERPRINT=${words.FINGERPRINT}`, ...before]),
    ...section.map((step) => ({ ...step, body: filled(step.body, words) })),
    shell([...holds, ...renewal])
  ]
}

const main = async (headings: ReadonlyArray<string>): Promise<void> => {
  const [ground, ...others] = recipes
  if (ground?.isGround !== true) throw new Error("there is nothing that machines begin as")
  await layWire()
  const directory = mkdtempSync("/run/guides-")
  const site = await startSite(directory)
  const done = async (recipe: Recipe, like: Machine | undefined): Promise<Machine | undefined> => {
    const begun = performance.now()
    const ended = (error?: string): void => {
      const outcome: Outcome = {
        database: "SQLite",
        client: `guide ${recipe.heading}`,
        challenge: "",
        scenario: recipe.later === undefined ? "as it stands" : "as it stands, and renews",
        milliseconds: performance.now() - begun,
        ...error === undefined ? {} : { error }
      }
      process.stdout.write(`${JSON.stringify(outcome)}\n`)
    }
    try {
      const place = { directory, ...like === undefined ? {} : { like } }
      const machine = await doIn(place, stepsOf(recipe, site.words))
      ended()
      return machine
    } catch (cause) {
      const records = site.server.records().slice(-10).map((record) => JSON.stringify(record))
      ended([String(cause), ...records].join("\n"))
      return undefined
    }
  }
  try {
    const machine = await done(ground, undefined)
    const chosen = others.filter(({ heading }) => headings.includes(heading))
    // The machines run one after another, because the name resolves to only one of them.
    if (machine !== undefined) { for (const recipe of chosen) await done(recipe, machine) }
  } finally {
    await site.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

await main(process.argv.slice(2))
