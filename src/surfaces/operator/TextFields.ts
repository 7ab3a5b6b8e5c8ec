import { isMailAddress } from "../../domain/Account.ts"
import { readUsername } from "../../domain/Username.ts"
import type { Field, Said, Written } from "./Field.ts"
import { name, textOf, texts } from "./Field.ts"

/* Members that are special texts: names of operators, mail addresses, and lists of one kind of text. */

/**
 * Makes a field for the name of an operator by which a record is looked up. Other spellings of the name are accepted. A
 * text that cannot be a name finds no operator.
 */
export const username = (description: string, more: Partial<Said> = {}): Field<string> => {
  const field = name(description, more)
  const read = (written: Written): string | undefined => {
    const text = field.read(written)
    return text === undefined ? undefined : readUsername(text) ?? text
  }
  return { ...field, read }
}

const longestMail = 254

/**
 * Makes a field for the mail address of an operator. In a body, a blank text and null both mean that there is no
 * address.
 */
export const mail = (description: string, more: Partial<Said> = {}): Field<string> => ({
  ...textOf({
    description,
    ...more,
    shown: "text",
    takes: `one mail address of at most ${longestMail} characters`,
    read: (given) => {
      const address = given.trim()
      return [...address].length <= longestMail && isMailAddress(address) ? address : undefined
    }
  }),
  isBlankAbsent: true
})

/** Makes a field for several texts of one kind. `read` checks each text. `of` names the kind, in the plural. */
export const several = (
  description: string,
  { most, of, read, ...more }: Partial<Said> & {
    readonly shown: string
    readonly most: number
    readonly of: string
    readonly read: (text: string) => string | undefined
  }
): Field<ReadonlyArray<string>> => {
  const readAll = (written: Written): ReadonlyArray<string | undefined> =>
    Array.isArray(written) ? written.slice(0, most + 1).map((text: string) => read(text.trim())) : []
  return {
    ...texts(description, more),
    takes: `at most ${most} ${of}`,
    fault: (written) => {
      const at = readAll(written).indexOf(undefined)
      return at < 0 ? undefined : `takes ${of}; the one at ${at + 1} is none`
    },
    read: (written) => {
      const values = readAll(written).filter((value) => value !== undefined)
      return Array.isArray(written) && values.length === written.length && values.length <= most ? values : undefined
    }
  }
}
