const end = "# EOF"
/** The lines about a series come before its samples, and begin with its name. */
const head = /^# HELP (\S+)/

/**
 * Makes one text of OpenMetrics from the texts of several processes with the same build. The texts must have a label
 * whose value is different in each text, so that no two samples are the same. The samples of a series stand together,
 * under one description of the series.
 */
export const mergeScrapes = (texts: ReadonlyArray<string>): string => {
  const series = new Map<string, Set<string>>()
  for (const text of texts) {
    let lines = new Set<string>()
    for (const line of text.split("\n")) {
      if (line === "" || line === end) continue
      const name = head.exec(line)?.[1]
      if (name !== undefined) {
        lines = series.get(name) ?? new Set()
        series.set(name, lines)
      }
      lines.add(line)
    }
  }
  return [...[...series.values()].flatMap((lines) => [...lines]), end, ""].join("\n")
}
