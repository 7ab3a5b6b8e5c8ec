import * as Effect from "effect/Effect"
import { CommandFailed } from "../CommandFailed.ts"
import { readKnownSecret, readSecret } from "./SecretInput.ts"

/* The passphrase of the key of a root, which is in a file or is typed. */

const fewestCharacters = 8

const refused = (fault: string) => new CommandFailed({ code: 3, message: `The passphrase ${fault}.` })

/** Blanks at the end do not count, because editors and shells write a line end there. */
const trimmed = (text: string): Effect.Effect<string, CommandFailed> => {
  const passphrase = text.trimEnd()
  if (passphrase === "") return refused("is empty")
  return /[\r\n]/.test(passphrase) ? refused("has more than one line") : Effect.succeed(passphrase)
}

/** Reads the passphrase for a new key. A person types it twice. */
export const newPassphrase = (file: string | undefined) =>
  readSecret("passphrase", file).pipe(
    Effect.flatMap(trimmed),
    Effect.filterOrFail(
      (passphrase) => [...passphrase].length >= fewestCharacters,
      () => refused(`has fewer than ${fewestCharacters} characters`)
    )
  )

/** Reads the passphrase of a key that exists. A person types it once. */
export const knownPassphrase = (file: string | undefined) =>
  Effect.flatMap(readKnownSecret("passphrase", file), trimmed)
