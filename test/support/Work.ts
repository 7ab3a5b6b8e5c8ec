import { Session } from "node:inspector"

/**
 * Returns the work of a program, counted in function calls, which is the same on every machine. Built-in functions are
 * not counted, so the input of each must be bounded in octets.
 */
export const callsOf = (program: () => unknown): number => {
  const session = new Session()
  session.connect()
  let calls = 0
  try {
    session.post("Profiler.enable")
    session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false })
    program()
    session.post("Profiler.takePreciseCoverage", (_, { result }) => {
      for (const { functions } of result) {
        for (const { ranges } of functions) calls += ranges[0]?.count ?? 0
      }
    })
    session.post("Profiler.stopPreciseCoverage")
  } finally {
    session.disconnect()
  }
  return calls
}
