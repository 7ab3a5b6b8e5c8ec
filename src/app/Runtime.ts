const least = 22

/** Older drivers end the process from here on: an idle collection of theirs meets a runtime that has gone on. */
const needsNewDriver = [24, 19] as const
const driver = 13

const numbers = (version: string): readonly [number, number] => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  return [major, minor]
}

/**
 * Why this runtime, or this SQLite driver on it, cannot be served with, in a sentence for the operator. Both are given as
 * `major.minor.patch`, the driver only where it is installed.
 */
export const unfit = (node: string, sqlite: string | undefined): string | undefined => {
  const [major, minor] = numbers(node)
  if (major < least) {
    return `acme-svc needs Node.js ${least} or newer, and this is ${node}. The one it is tested with comes with its packages: after npm ci, run it by npm start, or by node_modules/.bin/node.`
  }
  const isNew = major > needsNewDriver[0] || (major === needsNewDriver[0] && minor >= needsNewDriver[1])
  if (isNew && sqlite !== undefined && numbers(sqlite)[0] < driver) {
    return `acme-svc needs better-sqlite3 ${driver} or newer on Node.js ${node}, and ${sqlite} is installed: it would end the process within seconds. Install the packages again with npm ci.`
  }
  return undefined
}
