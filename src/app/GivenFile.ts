import * as Effect from "effect/Effect"
import type { FileUnusable, ReadFile } from "../engine/host/KeyFile.ts"
import { readTextFile } from "../engine/host/KeyFile.ts"
import { fromHere } from "./Here.ts"
import { Host } from "./Host.ts"

/**
 * Reads a file that a flag names. If the name is `-`, reads a line of standard input. In this way, the program can get
 * the content of a file that its user has no right to open.
 */
export const readGiven = (path: string, mostOctets?: number): Effect.Effect<ReadFile, FileUnusable, Host> =>
  path === "-"
    ? Effect.flatMap(Host, ({ stdin }) => Effect.map(stdin.readLine, (text) => ({ text, permissive: false })))
    : Effect.flatMap(fromHere(path), (file) => readTextFile(file, mostOctets))
