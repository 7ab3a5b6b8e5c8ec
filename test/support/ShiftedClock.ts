import { readFileSync } from "node:fs"

/*
 * A process of the service loads this file before everything else (`--import`). The clock of the process is then ahead
 * of that of the machine by the milliseconds in the file ACME_TEST_CLOCK, which may change while the process runs. The
 * monotonic clock is not shifted.
 */

const file = process.env["ACME_TEST_CLOCK"]
const Real = globalThis.Date
let shift = 0

const read = () => {
  try {
    const text = readFileSync(file ?? "", "utf8")
    // A file that is empty is just being written.
    if (text !== "") shift = Number(text) || 0
  } catch {
    shift = 0
  }
}

class Shifted extends Real {
  constructor(...given: ReadonlyArray<never>) {
    if (given.length === 0) super(Real.now() + shift)
    else super(...given as unknown as [number])
  }

  static override now(): number {
    return Real.now() + shift
  }
}

if (file !== undefined) {
  read()
  setInterval(read, 20).unref()
  globalThis.Date = Shifted as DateConstructor
}
