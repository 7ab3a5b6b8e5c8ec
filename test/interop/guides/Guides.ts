import { join } from "node:path"
import { runCommand } from "../Command.ts"
import type { Outcome } from "../Table.ts"
import { recipes } from "./Recipes.ts"

/* The recipes of docs/clients, carried out word for word on simulated machines. */

const spaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]

const isMeant = (isChosen: (name: string) => boolean) => ({ heading }: { readonly heading: string }) =>
  isChosen(`guide ${heading}`)

/** Returns the programs of {@link playGuides}, for every recipe or for those whose names `isChosen` accepts. */
export const guideCommands = (isChosen: (name: string) => boolean = () => true): ReadonlyArray<string> => {
  const chosen = recipes.filter(isMeant(isChosen))
  const ground = recipes.slice(0, 1)
  return chosen.length === 0 ? [] : [...[...ground, ...chosen].flatMap(({ commands }) => commands), "ip"]
}

/** Returns whether machines can be made here. */
const canMake = (): Promise<boolean> => runCommand("unshare", [...spaces, "true"]).then(() => true, () => false)

/** Carries out every chosen recipe. */
export const playGuides = async (
  say: (text: string) => void,
  isChosen: (name: string) => boolean = () => true
): Promise<ReadonlyArray<Outcome>> => {
  const chosen = recipes.filter(isMeant(isChosen)).map(({ heading }) => heading)
  if (chosen.length === 0) return []
  if (!await canMake()) {
    say(
      "the recipes of docs/clients are not done: networks and file systems of our own are not allowed here"
    )
    return []
  }
  const program = join(import.meta.dirname, "main.ts")
  const words = [...spaces, process.execPath, program, ...chosen]
  const env = { TMPDIR: process.env["TMPDIR"] ?? "/tmp" }
  const said = await runCommand("unshare", words, { env, timeoutMs: 600_000 })
  const outcomes = said.split("\n").filter((line) => line.startsWith("{\"database\"")).map((line): Outcome =>
    JSON.parse(line)
  )
  for (const { client, error } of outcomes) if (error !== undefined) say(`--- ${client}\n${error}\n---`)
  return outcomes
}
