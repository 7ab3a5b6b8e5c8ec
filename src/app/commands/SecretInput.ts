import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { said } from "../../engine/host/KeyFile.ts"
import type { Fields } from "../../surfaces/operator/Field.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { readGiven } from "../GivenFile.ts"
import { Host } from "../Host.ts"
import { optionalText } from "./Flags.ts"

/* Reads a secret for a command. A secret is never an argument, because other processes can see arguments. */

/** Returns the flag that names the file with a secret. `name` is the name of the secret. */
export const secretFlag = (name: string) =>
  optionalText(
    `${name}-file`,
    `File with the ${name}, or - for standard input. Without it, it is typed twice or read from standard input.`
  )

const longestFile = 4096

const ofFile = Effect.fnUntraced(function*(name: string, path: string) {
  const { permissive, text } = yield* Effect.mapError(
    readGiven(path, longestFile),
    (error) => new CommandFailed({ code: 3, message: `--${name}-file: ${error.path} cannot be used: ${said(error)}.` })
  )
  if (permissive) yield* Console.error(`Warning: others may read ${path}.`)
  return text.replace(/\r?\n$/, "")
})

const typed = Effect.fnUntraced(function*(name: string) {
  const { readHidden } = (yield* Host).stdin
  const first = yield* readHidden(`New ${name}: `)
  const again = first === undefined ? undefined : yield* readHidden(`The same ${name} again: `)
  if (first === undefined || again === undefined) {
    return yield* new CommandFailed({ code: 3, message: `The input ended before the ${name}; nothing was changed.` })
  }
  if (first !== again) {
    return yield* new CommandFailed({ code: 3, message: `The two ${name}s differ; nothing was changed.` })
  }
  return first
})

/** Reads a new secret from a file, from a terminal (where it must be typed twice), or from a line of standard input. */
export const readSecret = Effect.fnUntraced(function*(name: string, file: string | undefined) {
  const { stdin } = yield* Host
  return yield* file !== undefined ? ofFile(name, file) : stdin.isTerminal ? typed(name) : stdin.readLine
})

/** Reads a secret that exists already. It differs from {@link readSecret} in that a person types it once. */
export const readKnownSecret = Effect.fnUntraced(function*(name: string, file: string | undefined) {
  const { stdin } = yield* Host
  if (file !== undefined) return yield* ofFile(name, file)
  if (!stdin.isTerminal) return yield* stdin.readLine
  return (yield* stdin.readHidden(`${name[0]?.toUpperCase()}${name.slice(1)}: `)) ?? ""
})

/**
 * Reads the secrets of an act. `read` contains the values of the command line. `nameOf` returns the name of a member on
 * the command line.
 */
export const secretsOf = Effect.fnUntraced(function*(
  fields: Fields,
  nameOf: (member: string) => string,
  read: { readonly [member: string]: unknown }
) {
  const secrets: { [member: string]: string } = {}
  for (const [member, { isSecret }] of Object.entries(fields)) {
    const file = read[member]
    if (isSecret === true) {
      secrets[member] = yield* readSecret(nameOf(member), typeof file === "string" ? file : undefined)
    }
  }
  return secrets
})
