import * as Effect from "effect/Effect"
import type { FileUnusable, ReadFile } from "../engine/host/KeyFile.ts"
import { readTextFile } from "../engine/host/KeyFile.ts"
import { fromHere } from "./Here.ts"
import { Host } from "./Host.ts"

/**
 * Reads a file that a flag names, or a line of standard input if the name is `-`. In this way a program that runs as
 * another user, in another directory, can get a file without the right to open it.
 */
export const readGiven = (path: string, mostOctets?: number): Effect.Effect<ReadFile, FileUnusable, Host> =>
  path === "-"
    ? Effect.flatMap(Host, ({ stdin }) => Effect.map(stdin.readLine, (text) => ({ text, permissive: false })))
    : Effect.flatMap(fromHere(path), (file) => readTextFile(file, mostOctets))
