import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const actions = new Set<() => void>()

/** Runs `action` when this process ends, for whatever reason. The returned function cancels this. */
export const onEnd = (action: () => void): () => void => {
  actions.add(action)
  return () => void actions.delete(action)
}

process.once("exit", () => {
  for (const action of [...actions].toReversed()) action()
})

/** Ends this process in an orderly way when a terminal sends a signal. */
export const endOnSignals = (): void => {
  process.once("SIGINT", () => process.exit(130))
  process.once("SIGTERM", () => process.exit(143))
  process.once("SIGHUP", () => process.exit(129))
}

/** Makes a new directory that is removed when this process ends. */
export const temporaryDirectory = (): string => {
  const directory = mkdtempSync(join(tmpdir(), "acme-bench-"))
  onEnd(() => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }))
  return directory
}
