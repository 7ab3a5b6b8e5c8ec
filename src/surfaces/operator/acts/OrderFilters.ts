import type * as Effect from "effect/Effect"
import { AccountId } from "../../../domain/Id.ts"
import { ConflictingIdentifierFilter } from "../../../domain/OperatorError.ts"
import { mapped } from "../ComposedField.ts"
import { id, line, name, optional, serial } from "../Field.ts"

/* The filters that the lists of orders and of certificates share. */

const longestName = 253

const folded = (text: string): string => text.toLowerCase().replace(/\.$/, "")

/** The filter for the orders of an account. */
export const ofAccount = {
  accountId: optional(mapped(id("The id of the account."), (text) => AccountId(text)))
}

/** The filters for kinds, names and serial numbers. `noun` says what the list has. */
export const byName = (noun: "orders" | "certificates") => ({
  kind: optional(
    name("The name of the kind of certificate.", { help: `Only ${noun} of this kind of certificate (kinds list).` })
  ),
  identifier: optional(
    mapped(
      line("The whole name.", {
        longest: longestName,
        help: `Only ${noun} with exactly this name, such as *.example.com.`
      }),
      folded
    )
  ),
  identifierSuffix: optional(
    mapped(
      line("The last labels of the name.", {
        longest: longestName,
        help: `Only ${noun} with a name that ends with these labels.`
      }),
      (text) => folded(text).replace(/^\./, "")
    )
  ),
  identifierContains: optional(
    line("A part of the name.", { longest: longestName, help: `Only ${noun} with a name that contains this text.` })
  ),
  certSerial: optional(
    serial("The serial number of the certificate, hexadecimal.", {
      help: `Only the ${
        noun === "orders" ? "order of the certificate" : "certificate"
      } with this serial number, in hexadecimal.`
    })
  )
})

/** Refuses more than one filter for names. `others` judges the rest of the filters. */
export const oneNameFits = <E>(
  given: { readonly [_ in "identifier" | "identifierContains" | "identifierSuffix"]: string | undefined },
  others: Effect.Effect<void, E>
): Effect.Effect<void, ConflictingIdentifierFilter | E> => {
  const names = [given.identifier, given.identifierSuffix, given.identifierContains]
  return names.filter((one) => one !== undefined).length > 1 ? new ConflictingIdentifierFilter() : others
}
