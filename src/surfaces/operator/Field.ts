import { parseSerial } from "../../crypto/x509/Serial.ts"
import { isId } from "../../domain/Id.ts"
import { hiddenIn } from "../../engine/HiddenText.ts"
import { parseMoment } from "../../engine/Time.ts"

/*
 * The members that operators' acts accept. A member is declared once. Its value can come from the body, the query or
 * the path of a request, from a flag or an argument of a command line, or from a field of a form. In every case the
 * same function checks the value (docs/contribute/decisions/acts.md).
 */

/**
 * How a member is written in JSON. A `code` is a number or the name of that number. In a query, a form or a command
 * line, every member is written as a text.
 */
export type Form = "text" | "integer" | "boolean" | "texts" | "code"

/** The value of a member before it is checked. */
export type Written = string | number | boolean | ReadonlyArray<string>

/** What the OpenAPI document says about a member in addition to its form and its description. */
export interface FieldDocument {
  readonly default?: string | number
  readonly minimum?: number
}

/** A member of the input of an act. */
export interface Field<A> {
  readonly form: Form
  /** A sentence for the OpenAPI document. The help uses the same sentence if `help` is undefined. */
  readonly description: string
  /** The sentence for the help, if it differs from the description. */
  readonly help: string | undefined
  readonly isNeeded: boolean
  /**
   * The words of a closed set, if the member has one. A word outside the set is refused with the code `invalid_status`.
   */
  readonly words: ReadonlyArray<string>
  /** The placeholder of the value in the help. */
  readonly shown: string
  /** What the member accepts, as the end of a sentence that begins with the name of the member and the word "takes". */
  readonly takes: string
  /**
   * Returns what is wrong with a text, as the end of a sentence that begins with the name of the member. Present if it
   * says more than `takes`.
   */
  readonly fault: ((written: Written) => string | undefined) | undefined
  readonly document: FieldDocument
  /** Returns the value, or undefined if the written text is not a value of this field. */
  readonly read: (written: Written) => A | undefined
  /** The value if the member is left out. Undefined for a required member. */
  readonly absent: A | undefined
  /** The meaning of null in a body, if it differs from leaving the member out. */
  readonly ofNull?: Written
  /** Whether a blank text in a body means the same as leaving the member out. */
  readonly isBlankAbsent?: boolean
  /** Whether the value is secret. A secret is never part of a query or of a command line. */
  readonly isSecret?: boolean
  /**
   * Whether the command line has the path of a file that contains the value, instead of the value. Octets that are not
   * text are sent as base64url.
   */
  readonly isFile?: boolean
}

/** The members of an act, by name. */
export interface Fields {
  readonly [member: string]: Field<unknown>
}

/** The input with which an act runs. */
export type InputOf<In extends Fields> = { readonly [M in keyof In]: In[M] extends Field<infer A> ? A : never }

const needed = {
  help: undefined,
  isNeeded: true,
  words: [],
  fault: undefined,
  document: {},
  absent: undefined
} as const

/** The options of most constructors: the sentences of the document and of the help. */
export interface Said {
  readonly description: string
  readonly help?: string
}

/**
 * Makes a field for a text that `read` checks. `takes` ends the sentence of the refusal, and `shown` is the placeholder
 * in the help.
 */
export const textOf = <A>(
  { read, ...told }: Said & {
    readonly shown: string
    readonly takes: string
    readonly read: (text: string) => A | undefined
  }
): Field<A> => ({
  ...needed,
  ...told,
  form: "text",
  read: (written) => typeof written === "string" ? read(written) : undefined
})

/**
 * Makes a field for the path segment that names a record. On a command line it is an argument. Blanks around it are
 * ignored.
 */
export const key = (description: string, more: Partial<Said> = {}): Field<string> =>
  textOf({ description, ...more, shown: "text", takes: "a text", read: (text) => text.trim() || undefined })

/** Makes a field for a password or a code, which is used unchanged and never quoted. */
export const secret = (description: string, more: Partial<Said> = {}): Field<string> => ({
  ...textOf({ description, ...more, shown: "text", takes: "a text", read: (text) => text }),
  isSecret: true
})

/**
 * Makes a field for a non-blank text of one line, with a limited number of characters. Blanks around it are ignored.
 */
export const line = (
  description: string,
  { longest, ...more }: Partial<Said> & { readonly longest: number }
): Field<string> => ({
  ...textOf({
    description,
    ...more,
    shown: "text",
    takes: `1 to ${longest} characters`,
    read: (given) => {
      const text = given.trim()
      return text === "" || [...text].length > longest || hiddenIn(text) !== undefined ? undefined : text
    }
  }),
  fault: (written) => {
    const hidden = typeof written === "string" ? hiddenIn(written.trim()) : undefined
    return hidden === undefined ? undefined : `holds ${hidden}, a character that nobody sees`
  }
})

/** Makes a field for a name by which a record is looked up. */
export const name = (description: string, more: Partial<Said> = {}): Field<string> =>
  line(description, { longest: 1000, ...more })

/** Makes a field for a word of a closed set. */
export const word = <const W extends string>(
  words: ReadonlyArray<W>,
  description: string,
  help?: string
): Field<W> => ({
  ...textOf({
    description,
    shown: "word",
    takes: `one of ${words.join(", ")}`,
    read: (text) => words.find((one) => one === text.trim())
  }),
  help,
  words
})

/**
 * Makes a field for a word of a set that other versions of the service may extend. The help lists the words of this
 * version. The act refuses a word that is unknown and that no record has.
 */
export const openWord = (known: ReadonlyArray<string>, description: string): Field<string> => ({
  ...name(description, { help: `${description} One of ${known.join(", ")}.` }),
  shown: "word"
})

/** Makes a field for the id of a record by which a list is filtered. */
export const id = (description: string, more: Partial<Said> = {}): Field<string> =>
  textOf({
    description,
    ...more,
    shown: "text",
    takes: "an id, in lower case and with hyphens",
    read: (text) => isId(text.trim()) ? text.trim() : undefined
  })

/** Makes a field for a serial number as people write it. The value is its stored form. */
export const serial = (description: string, more: Partial<Said> = {}): Field<string> =>
  textOf({
    description,
    ...more,
    shown: "hex",
    takes: "a serial number in hexadecimal, with or without colons",
    read: parseSerial
  })

/**
 * Makes a field for a time in RFC 3339, or a day, which means its first second in UTC. The value is in epoch seconds.
 */
export const time = (description: string, more: Partial<Said> = {}): Field<number> =>
  textOf({
    description,
    ...more,
    shown: "time",
    takes: "an RFC 3339 time, or a day as YYYY-MM-DD",
    read: (text) => parseMoment(text.trim())
  })

const integer = (
  told: Said & { readonly takes: string; readonly document?: FieldDocument },
  read: (value: number) => number | undefined
): Field<number> => ({
  ...needed,
  ...told,
  form: "integer",
  shown: "number",
  read: (written) => typeof written === "number" ? read(written) : undefined
})

/** Makes a field for a whole number within bounds. `of` names the counted things. */
export const whole = (
  description: string,
  { least, most, of = "a whole number", ...more }: Partial<Said> & {
    readonly least: number
    readonly most: number
    readonly of?: string
  }
): Field<number> =>
  integer(
    { description, ...more, takes: `${of} from ${least} to ${most}` },
    (value) => value >= least && value <= most ? value : undefined
  )

/** Makes a field for a whole number. A value out of bounds is not refused, but replaced by the nearest bound. */
export const clamped = (
  description: string,
  { least, most = Number.MAX_SAFE_INTEGER, ...more }: Partial<Said> & {
    readonly least: number
    readonly most?: number
    readonly document?: FieldDocument
  }
): Field<number> =>
  integer({ description, ...more, takes: "a whole number" }, (value) => Math.min(Math.max(value, least), most))

/** Makes a field for a number from a list, or its name. The value is the number. */
export const code = (
  { read, ...told }: Said & {
    readonly shown: string
    readonly takes: string
    readonly read: (given: string | number) => number | undefined
  }
): Field<number> => ({
  ...needed,
  ...told,
  form: "code",
  read: (written) => typeof written === "string" || typeof written === "number" ? read(written) : undefined
})

/** Makes a field for yes or no. On a command line it is a flag without a value. */
export const flag = (description: string, more: Partial<Said> = {}): Field<boolean> => ({
  ...needed,
  description,
  ...more,
  form: "boolean",
  shown: "true | false",
  takes: "true or false",
  read: (written) => typeof written === "boolean" ? written : undefined
})

/**
 * Makes a field for several texts of one line each. On a command line the flag is given several times. In a form each
 * text has its own line.
 */
export const texts = (
  description: string,
  { shown = "text", ...more }: Partial<Said> & { readonly shown?: string } = {}
): Field<ReadonlyArray<string>> => ({
  ...needed,
  description,
  ...more,
  form: "texts",
  shown,
  takes: "texts that are not blank, without characters that nobody sees",
  read: (written) => {
    if (!Array.isArray(written)) return undefined
    const all = written.map((text: string) => text.trim())
    return all.some((text) => text === "" || hiddenIn(text) !== undefined) ? undefined : all
  }
})

/**
 * Makes a field for one to `most` texts that `read` checks. The value of each text is what `read` returns; equal values
 * count once. `takes` ends the sentence of the refusal.
 */
export const textsOf = (
  description: string,
  { most, read, ...more }: Partial<Said> & {
    readonly shown: string
    readonly takes: string
    readonly most: number
    readonly read: (text: string) => string | undefined
  }
): Field<ReadonlyArray<string>> => ({
  ...needed,
  description,
  ...more,
  form: "texts",
  read: (written) => {
    if (!Array.isArray(written) || written.length === 0 || written.length > most) return undefined
    const all = written.map((text: string) => read(text.trim()))
    const found = all.filter((text) => text !== undefined)
    return found.length < all.length ? undefined : [...new Set(found)]
  }
})

/** Makes a member optional. */
export const optional = <A>(field: Field<A>): Field<A | undefined> => ({ ...field, isNeeded: false })

/** Makes a member optional. If it is left out, its value is `absent`. */
export const or = <A extends string | number | boolean>(field: Field<A>, absent: NoInfer<A>): Field<A> => ({
  ...field,
  isNeeded: false,
  absent,
  document: { default: typeof absent === "boolean" ? String(absent) : absent, ...field.document }
})

/** The window of a list. The limit of the surface is applied when the act runs (`Acting.ts`). */
export const paging = {
  limit: or(
    clamped(
      "Rows of the page. A value below 1 counts as 1. A value above admin.page_size_max counts as admin.page_size_max.",
      {
        least: 1,
        help: "Rows to print, at most 10000."
      }
    ),
    50
  ),
  offset: or(
    clamped("Rows to skip before the page. A negative value counts as 0.", { least: 0, help: "Rows to skip." }),
    0
  )
}

/** The filters that several lists share. */
export const ofProfile = { profile: optional(name("The name of a profile.")) }

/** The period in which the rows were written. `Acting.ts` refuses an end that is not after the start. */
export const period = {
  since: optional(
    time("From this time on: an RFC 3339 time, or a day as YYYY-MM-DD, which begins at midnight UTC.", {
      help: "From this time on."
    })
  ),
  until: optional(time("Before this time, in the same form as since.", { help: "Before this time." }))
}
