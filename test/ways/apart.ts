import { inspect } from "node:util"
import type { Gone } from "./Way.ts"
import { Steps } from "./Way.ts"
import { ways } from "./Ways.ts"

/*
 * Goes one way, and prints how it ended as a line of JSON. `main.ts` starts this program in a network of its own, so
 * that the ports of the documents are free.
 */

const [name = "", clone = "", scratch = ""] = process.argv.slice(2)
const way = ways.find((one) => one.name === name)
if (way === undefined) throw new Error(`there is no way ${name}`)

const steps = new Steps()
const begun = performance.now()
const error = await way.go(steps, { clone, scratch }).then(() => undefined, (cause: unknown) => inspect(cause))
const gone: Gone = {
  way: name,
  steps: steps.taken,
  seconds: (performance.now() - begun) / 1000,
  last: steps.last,
  ...error === undefined ? {} : { error }
}
process.stdout.write(`${JSON.stringify(gone)}\n`)
// Whatever a failed way has left running ends with this process.
process.exit(0)
