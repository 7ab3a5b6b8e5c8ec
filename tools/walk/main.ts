import { parseArgs } from "node:util"
import { paintFor, table } from "../bench/Report.ts"
import type { Walked } from "./Coverage.ts"
import { countCalls } from "./Coverage.ts"
import { serve } from "./Operations.ts"

/*
 * `npm run walk` measures how much code a reader meets while following one operation (see
 * docs/contribute/development.md).
 */

const { values: { json, list } } = parseArgs({ options: { json: { type: "boolean" }, list: { type: "boolean" } } })

/**
 * Returns the room of a file (docs/contribute/architecture.md): its folder, or the first two folders below `src` if it
 * is deeper.
 */
const roomOf = (file: string): string => file.split("/").slice(1, -1).slice(0, 2).join("/")

const figuresOf = (operation: string, walked: ReadonlyArray<Walked>) => {
  const files = [...new Set(walked.map(({ file }) => file))]
  const counts = { files: files.length, rooms: new Set(files.map(roomOf)).size, functions: walked.length }
  return { operation, ...counts, list: files.map((file) => ({ file, ran: walked.filter((one) => one.file === file) })) }
}

const service = await serve()
try {
  // Each operation is performed before the count begins, so that what is loaded or computed on first use does not
  // count.
  for (let time = 0; time < 2; time++) {
    for (const prepare of Object.values(service.operations)) await (await prepare())()
  }
  const { close, walk } = await countCalls(service.inspector)
  const figures: Array<ReturnType<typeof figuresOf>> = []
  for (const [operation, prepare] of Object.entries(service.operations)) {
    figures.push(figuresOf(operation, await walk(prepare)))
  }
  close()

  const rows = figures.map((one) => [one.operation, `${one.files}`, `${one.rooms}`, `${one.functions}`])
  const lists = figures.flatMap((one) => [
    `\n${one.operation}`,
    ...one.list.map(({ file, ran }) => `  ${file}: ${ran.map(({ line, name }) => `${line} ${name}`).join(", ")}`)
  ])
  const text = json === true
    ? [JSON.stringify(figures, (key, value: unknown) => key === "list" && list !== true ? undefined : value, 2)]
    : [table(paintFor(process.stdout.isTTY === true), ["operation", "files", "rooms", "functions"], rows)]
  process.stdout.write(`${[...text, ...list === true && json !== true ? lists : []].join("\n")}\n`)
} finally {
  await service.end()
}
