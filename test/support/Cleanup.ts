const cleanups: Array<() => Promise<void> | void> = []

/** Registers a cleanup for the end of the test file. */
export const afterFile = (cleanup: () => Promise<void> | void): void => {
  cleanups.push(cleanup)
}

/** Runs the cleanups of a test file, the last one first. */
export const cleanUp = async (): Promise<void> => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
}
