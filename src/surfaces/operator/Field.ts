import { parseSerial } from "../../crypto/x509/Serial.ts"
import { isId } from "../../domain/Id.ts"
import { hiddenIn } from "../../engine/HiddenText.ts"
import { parseMoment } from "../../engine/Time.ts"

/*
 * The members that acts of operators take. A member is declared once. It is read from the body, the query and the path of a
 * request, from a flag or an argument of a command line, and from a field of a form, and is judged by the same function
 * each time (docs/decisions/acts.md).
 */

/** How a member is written in JSON; a code is a number or its name. A query, a form and a command line write each of them as a text. */
export type Form = "text" | "integer" | "boolean" | "texts" | "code"

/** What a member holds before it is judged. */
export type Written = string | number | boolean | ReadonlyArray<string>

/** What the OpenAPI document says of a member besides its form and its description. */
export interface FieldDocument {
  readonly default?: string | number
  readonly minimum?: number
}

/** A member of the input of an act. */
export interface Field<A> {
  readonly form: Form
  /** A sentence for the OpenAPI document and, unless there is another one, for the help. */
  readonly description: string
  /** The sentence of the help, where it differs. */
  readonly help: string | undefined
  readonly isNeeded: boolean
  /** The closed set of its words, if it is one. A word outside of it is refused with the code `invalid_status`. */
  readonly words: ReadonlyArray<string>
  /** The placeholder of the value in the help. */
  readonly shown: string
  /** The end of a sentence that begins with the name of the member and "takes". */
  readonly takes: string
  /** The end of a sentence that begins with the name of the member, where more can be said than what it takes. */
  readonly fault: ((written: Written) => string | undefined) | undefined
  readonly document: FieldDocument
  /** The value; undefined if the written text is not a value of this field. */
  readonly read: (written: Written) => A | undefined
  /** The value where the member was left out. Undefined for a member that is needed. */
  readonly absent: A | undefined
  /** What null in a body stands for, where it is not the same as to leave the member out. */
  readonly ofNull?: Written
  /** Whether a blank text in a body is the same as to leave the member out. */
  readonly isBlankAbsent?: boolean
  /** Whether nobody may see it. It is never a part of a query or of a command line. */
  readonly isSecret?: boolean
}

/** The members of an act, by name. */
export interface Fields {
  readonly [member: string]: Field<unknown>
}

/** The input that an act gets. */
export type InputOf<In extends Fields> = { readonly [M in keyof In]: In[M] extends Field<infer A> ? A : never }

const needed = {
  help: undefined,
  isNeeded: true,
  words: [],
  fault: undefined,
  document: {},
  absent: undefined
} as const

/** What most constructors take: the sentences of the document and of the help. */
export interface Said {
  readonly description: string
  readonly help?: string
}

/** A text that is judged by `read`. `takes` ends the sentence of the refusal, `shown` is the placeholder in the help. */
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

/** The segment of a path that names a record, and the argument of the command. Blanks around it are no part of it. */
export const key = (description: string, more: Partial<Said> = {}): Field<string> =>
  textOf({ description, ...more, shown: "text", takes: "a text", read: (text) => text.trim() || undefined })

/** A password or a code: taken exactly as it is, and quoted nowhere. */
export const secret = (description: string, more: Partial<Said> = {}): Field<string> => ({
  ...textOf({ description, ...more, shown: "text", takes: "a text", read: (text) => text }),
  isSecret: true
})

/** A text of one line that is not blank, of at most so many characters. Blanks around it are no part of it. */
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

/** A name that a record is looked up by. */
export const name = (description: string, more: Partial<Said> = {}): Field<string> =>
  line(description, { longest: 1000, ...more })

/** A word of a closed set. */
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
 * A word of a set to which other versions of the service may add. The help lists those of this version. An act refuses a word that
 * is in no record either.
 */
export const openWord = (known: ReadonlyArray<string>, description: string): Field<string> => ({
  ...name(description, { help: `${description} One of ${known.join(", ")}.` }),
  shown: "word"
})

/** The id of a record that a list is filtered by. */
export const id = (description: string, more: Partial<Said> = {}): Field<string> =>
  textOf({
    description,
    ...more,
    shown: "text",
    takes: "an id, in lower case and with hyphens",
    read: (text) => isId(text.trim()) ? text.trim() : undefined
  })

/** A serial number as people write it. The value is its stored form. */
export const serial = (description: string, more: Partial<Said> = {}): Field<string> =>
  textOf({
    description,
    ...more,
    shown: "hex",
    takes: "a serial number in hexadecimal, with or without colons",
    read: parseSerial
  })

/** An instant in RFC 3339, or a day, which is its first second in UTC. The value is in epoch seconds. */
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

/** A whole number within bounds. `of` says what is counted. */
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

/** A whole number that is moved to the nearest of its bounds, and not refused. */
export const clamped = (
  description: string,
  { least, most = Number.MAX_SAFE_INTEGER, ...more }: Partial<Said> & {
    readonly least: number
    readonly most?: number
    readonly document?: FieldDocument
  }
): Field<number> =>
  integer({ description, ...more, takes: "a whole number" }, (value) => Math.min(Math.max(value, least), most))

/** A number of a list, or its name. The value is the number. */
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

/** Yes or no. On a command line it is a flag without a value. */
export const flag = (description: string, more: Partial<Said> = {}): Field<boolean> => ({
  ...needed,
  description,
  ...more,
  form: "boolean",
  shown: "true | false",
  takes: "true or false",
  read: (written) => typeof written === "boolean" ? written : undefined
})

/** Several texts of one line. On a command line the flag is given several times, in a form each has its own line. */
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

/** A member that may be left out. */
export const optional = <A>(field: Field<A>): Field<A | undefined> => ({ ...field, isNeeded: false })

/** A member that may be left out, and what counts then. */
export const or = <A extends string | number | boolean>(field: Field<A>, absent: NoInfer<A>): Field<A> => ({
  ...field,
  isNeeded: false,
  absent,
  document: { default: typeof absent === "boolean" ? String(absent) : absent, ...field.document }
})

/** The window of a list. What a surface allows at most is applied when the act runs (`Acting.ts`). */
export const paging = {
  limit: or(
    clamped("Rows of the page. A value below 1 counts as 1, a value above admin.page_size_max as that.", {
      least: 1,
      help: "Rows to print, at most 10000."
    }),
    50
  ),
  offset: or(
    clamped("Rows to skip before the page. A negative value counts as 0.", { least: 0, help: "Rows to skip." }),
    0
  )
}

/** Filters that several lists have. */
export const ofProfile = { profile: optional(name("The name of a profile.")) }

/** The period in which the rows were written. An end that is not after the begin is refused by `Acting.ts`. */
export const period = {
  since: optional(
    time("From this time on: an RFC 3339 time, or a day as YYYY-MM-DD, which begins at midnight UTC.", {
      help: "From this time on."
    })
  ),
  until: optional(time("Before this time, in the form of since.", { help: "Before this time." }))
}
