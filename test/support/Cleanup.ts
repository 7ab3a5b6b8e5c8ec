const cleanups: Array<() => Promise<void> | void> = []

/** Has something taken away when the test file has ended. */
export const afterFile = (cleanup: () => Promise<void> | void): void => {
  cleanups.push(cleanup)
}

/** Takes away what a test file has asked for, the last first. */
export const cleanUp = async (): Promise<void> => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
}
