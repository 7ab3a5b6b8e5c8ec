/** A list as command-line people read it: padded columns, then how many of how many. An empty one is its footer. */
export const renderTable = (
  columns: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  total: number
): string => {
  const widths = columns.map((column, index) => Math.max(column.length, ...rows.map((row) => row[index]?.length ?? 0)))
  const line = (cells: ReadonlyArray<string>) =>
    cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join("  ").trimEnd()
  const footer = `${rows.length} of ${total} row(s).`
  return rows.length === 0
    ? footer
    : [line(columns.map((name) => name.toUpperCase())), ...rows.map(line), footer].join("\n")
}
