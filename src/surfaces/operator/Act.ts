import * as Effect from "effect/Effect"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import type { OperatorError } from "../../domain/OperatorError.ts"
import type { OperatorCode, RefusalWith, UsualCode } from "../../domain/OperatorProblem.ts"
import type { StorageFailed } from "../../engine/sql/Database.ts"
import type { Exported } from "../../operations/operator/Exports.ts"
import type { Rendered } from "../cli/Rendered.ts"
import type { Cell } from "../cli/TextTable.ts"
import type { Fields, InputOf } from "./Field.ts"
import type { Access } from "./gate/OperatorChecks.ts"

/*
 * An act is one thing that an operator can do. It is declared once. Its route with decoding, refusals and OpenAPI, its command with
 * flags, help and completions, and the reading of its form are made from the declaration (docs/decisions/acts.md).
 */

/** A schema without services: it describes what an act answers, for the document, and writes it. */
export type Output = Schema.Codec<unknown, unknown>

/** The names in the braces of a route: `kid` of `POST /api/eab/{kid}/revoke`. */
type HolesOf<Route extends string> = Route extends `${string}{${infer Hole}}${infer Rest}` ? Hole | HolesOf<Rest>
  : never

/** A route whose holes are members of the input. */
type RouteOver<In extends Fields, Route extends string> = HolesOf<Route> extends keyof In & string ? Route : never

/** What an act is over HTTP. */
export interface Http<In extends Fields, Route extends string> {
  /**
   * Method and path. The members in braces are the path. The others are the query of GET and DELETE, and the body of every
   * other method. Where one of them is a secret, they are the body of DELETE too.
   */
  readonly route: RouteOver<In, Route>
  /** 200 by default. 204 answers nothing of the output. */
  readonly status?: 201 | 202 | 204
  /**
   * The request needs the caller's password, as the member `password` besides those of the act, so a token cannot send it. It is
   * compared before the act runs.
   */
  readonly isStepUp?: boolean
  /** Sign-in has no CSRF token yet. The check of the origin protects it. */
  readonly isWithoutCsrf?: boolean
}

/** What a value of a detail view can be. */
type Shown = string | number | boolean | ReadonlyArray<string>

type ItemOf<A> = A extends { readonly items: ReadonlyArray<infer Item> } ? Item : never

/** How a member is written on the command line. */
export interface Flagged {
  /** By default the name of the member with hyphens: `ttl-seconds` for `ttlSeconds`. */
  readonly flag?: string
  readonly alias?: string
  readonly help?: string
}

/** What failed of a command whose act was done, and the exit code for it. */
export interface Fault {
  /** 1 where another try may succeed. */
  readonly code: 1 | 3
  readonly message: string
}

/** Flags and work of a command alone. */
export interface Also<Out, R> {
  readonly flags: Fields
  /** The work behind the output. `say` prints a line. */
  after(
    given: { readonly [member: string]: unknown },
    output: Out,
    say: (line: string) => Effect.Effect<void>
  ): Effect.Effect<ReadonlyArray<Fault>, StorageFailed, R>
}

/** Declares flags and work of a command alone. */
export const also = <const F extends Fields, Out, R>(declared: {
  readonly flags: F
  after(
    given: InputOf<F>,
    output: Out,
    say: (line: string) => Effect.Effect<void>
  ): Effect.Effect<ReadonlyArray<Fault>, StorageFailed, R>
}): Also<Out, R> => declared as Also<Out, R>

/**
 * What an act is on the command line. Besides its members, every command takes `--json`. A secret is read from a file that a flag
 * names, where nobody sees it at a terminal, or from standard input.
 */
export interface Cli<In extends Fields, Out, R> {
  /** The words of the command: `eab create`. */
  readonly command: string
  /** What it does, in sentences. By default what the act does. */
  readonly help?: string
  /** An example, without the name of the program. */
  readonly example: string
  /** The members that are arguments, in order. By default those of the path. */
  readonly args?: ReadonlyArray<keyof In & string>
  readonly flags?: { readonly [M in keyof In]?: Flagged }
  /** Words of a member, each as a flag without a value, and its help. The flags of one member exclude each other. */
  readonly spelt?: { readonly [M in keyof In]?: { readonly [word: string]: readonly [flag: string, help: string] } }
  /** Members that the command cannot do without, because nobody has signed in of whom they could be taken. */
  readonly needs?: ReadonlyArray<keyof In & string>
  /** Members that the command does not take. They are absent. */
  readonly omits?: ReadonlyArray<keyof In & string>
  /** Whether the act reads more of the configuration than `database`, so that one that is refused is an obstacle. */
  needsConfig?(input: InputOf<In>): boolean
  /** The question before it is done, unless there is nothing to ask. A question that finds a refusal ends the command with it. */
  confirm?(input: InputOf<In>): Effect.Effect<string | undefined, OperatorError | StorageFailed, R>
  /** A row of the table of a list, by its headings. */
  columns?(item: ItemOf<Out>): { readonly [heading: string]: Cell }
  /** The lines of one record, by their labels. By default the members of the output. */
  members?(output: Out): { readonly [label: string]: Shown | undefined }
  /** The whole text for people. */
  text?(output: Out): string | Rendered
  /** The object of `--json`, where the command's has another form than the API's. */
  json?(output: Out): unknown
  /** A remark on standard error, after the output. */
  remark?(output: Out): string | undefined
  /** What failed of an act that was done in part. The command ends with it. */
  faults?(output: Out): ReadonlyArray<Fault>
  readonly also?: Also<Out, R>
  /** Takes back what is shown only once if it could not be written. `taken` says so in the past tense. */
  readonly undo?: {
    readonly taken: string
    undo(output: Out): Effect.Effect<unknown, OperatorError | StorageFailed, R>
  }
}

/** An act of operators. */
export interface Act<
  Id extends string,
  In extends Fields,
  Out extends Output,
  C extends OperatorCode,
  R,
  Route extends string = string
> {
  /** The name of the operation in the OpenAPI document. */
  readonly id: Id
  /** What it does, in the imperative and without a full stop. */
  readonly does: string
  readonly access: Access
  readonly input: In
  /** A union answers each of its forms with the status that the form is annotated with. */
  readonly output: Out
  /** The codes of its refusals besides the usual ones. Any other failure of `run` does not compile. */
  readonly errors: ReadonlyArray<C>
  /**
   * Refuses members that do not go together, before the act runs. A command line is refused as any wrong one is, and what the
   * sentence calls a member is replaced by its flag.
   */
  fits?(input: NoInfer<InputOf<In>>): Effect.Effect<void, RefusalWith<C | UsualCode>>
  run(
    input: InputOf<In>
  ): Effect.Effect<Out["Type"], RefusalWith<C | UsualCode> | StorageFailed, R>
  readonly http?: Http<In, Route>
  readonly cli?: Cli<In, Out["Type"], R>
}

/** Any act that needs no more than these services. */
export interface AnyAct<R> extends Omit<Act<string, Fields, Output, OperatorCode, R>, "http" | "cli"> {
  readonly http?: Omit<Http<Fields, string>, "route"> & { readonly route: string }
  // The output of an act is what its own functions take.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly cli?: Cli<any, any, R>
}

/** Declares an act. */
export const act = <
  const Id extends string,
  const In extends Fields,
  Out extends Output,
  const C extends OperatorCode,
  R,
  const Route extends string
>(declared: Act<Id, In, Out, C, R, Route>): Act<Id, In, Out, C, R, Route> => declared

/** Does an act, if its members go together. */
export const perform = <In extends Fields, A, E, F, R>(
  act: {
    fits?(input: InputOf<In>): Effect.Effect<void, E>
    run(input: InputOf<In>): Effect.Effect<A, F, R>
  },
  input: InputOf<In>
): Effect.Effect<A, E | F, R> =>
  act.fits === undefined ? act.run(input) : Effect.andThen(act.fits(input), act.run(input))

type ServicesOf<A extends AnyAct<unknown>> = Effect.Services<ReturnType<A["run"]>>

/** The acts about one thing. */
export interface Noun<R> {
  /** The tag of its routes in the OpenAPI document. */
  readonly name: string
  readonly description: string
  /** The groups of commands, by their words, and what the help says of each. */
  readonly commands: { readonly [words: string]: string }
  readonly acts: ReadonlyArray<AnyAct<R>>
}

/** Declares the acts about one thing. */
export const noun = <A extends AnyAct<unknown>>(
  declared: Omit<Noun<unknown>, "acts"> & { readonly acts: ReadonlyArray<A> }
): Noun<ServicesOf<A>> => declared as Noun<ServicesOf<A>>

/** A file that is sent or printed while it is read. The document calls it CSV; a JSON file is `{"items": […]}`. */
export const FileOutput: Schema.Codec<Exported, unknown> = Schema.String.pipe(
  HttpApiSchema.asText({ contentType: "text/csv" })
) as unknown as Schema.Codec<Exported, unknown>

/** Whether an act answers a file. */
export const isFile = (output: Schema.Top): boolean => output === (FileOutput as Schema.Top)

const ownStatus = (form: Schema.Top | undefined): unknown => form?.ast.annotations?.["httpApiStatus"]

/** The forms of an answer, if it is a union and one of them has a status of its own. */
export const formsOf = (output: Schema.Top): ReadonlyArray<Schema.Top> => {
  const forms = "members" in output ? output.members as ReadonlyArray<Schema.Top> : []
  return forms.some((form) => ownStatus(form) !== undefined) ? forms : []
}

/** The status of an answer in a form that has its own. */
export const statusOf = (output: Schema.Top, value: unknown): number | undefined => {
  const status = ownStatus(formsOf(output).find((one) => Schema.is(one)(value)))
  return typeof status === "number" ? status : undefined
}

/** What an act answers, as JSON. What does not fit its declaration is a defect, and what is not declared is left out. */
export const encoded = <R>({ output }: AnyAct<R>, value: unknown): Effect.Effect<unknown> =>
  Effect.orDie(Schema.encodeUnknownEffect(output)(value))
