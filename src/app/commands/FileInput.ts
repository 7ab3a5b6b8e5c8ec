import * as Effect from "effect/Effect"
import { readOctets, said } from "../../engine/host/KeyFile.ts"
import type { Fields } from "../../surfaces/operator/Field.ts"
import { judged } from "../../surfaces/operator/MemberInput.ts"
import { CommandFailed, refusedFor } from "../CommandFailed.ts"
import { fromHere } from "../Here.ts"
import { Host } from "../Host.ts"

/* Reads the files that a command line names instead of a value. */

const longestFile = 65_536

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Returns octets as a text. Octets that are no text, such as DER, become base64url. */
const textOf = (octets: Uint8Array): Effect.Effect<string> =>
  Effect.orElseSucceed(
    Effect.try(() => utf8.decode(octets)),
    () => Buffer.from(octets).toString("base64url")
  )

/** Reads the file that a command line names as `name`. The path `-` means standard input. */
export const octetsOf = (name: string, path: string) =>
  path === "-"
    ? Effect.flatMap(Host, ({ stdin }) => stdin.readAll(longestFile)).pipe(
      Effect.flatMap((octets) =>
        octets === undefined
          ? new CommandFailed({ code: 3, message: `${name}: standard input has more than ${longestFile} octets.` })
          : Effect.succeed(octets)
      )
    )
    : Effect.flatMap(fromHere(path), (file) => readOctets(file, longestFile)).pipe(
      Effect.map(({ octets }) => octets),
      Effect.mapError((error) =>
        new CommandFailed({ code: 3, message: `${name}: ${path} cannot be used: ${said(error)}.` })
      )
    )

/** Reads a text that the command line names as `name`. A byte order mark does not belong to the text. */
export const textIn = (name: string, path: string) =>
  Effect.flatMap(octetsOf(name, path), (octets) =>
    Effect.mapError(
      Effect.try(() => utf8.decode(octets)),
      () => new CommandFailed({ code: 3, message: `${name}: ${path} cannot be used: not UTF-8 text.` })
    ))

/**
 * Reads the files of an act. `nameOf` returns the name of a member on the command line. `read` contains the values of
 * the command line, among them the paths. The path `-` means standard input.
 */
export const filesOf = Effect.fnUntraced(function*(
  fields: Fields,
  nameOf: (member: string) => string,
  read: { readonly [member: string]: unknown }
) {
  const values: { [member: string]: unknown } = {}
  for (const [member, field] of Object.entries(fields)) {
    const path = read[member]
    if (field.isFile !== true || typeof path !== "string") continue
    const name = nameOf(member)
    const text = yield* textOf(yield* octetsOf(name, path))
    values[member] = yield* Effect.mapError(
      Effect.fromResult(judged(field, name, text)),
      (error) => new CommandFailed({ code: 2, message: refusedFor(error).message })
    )
  }
  return values
})
