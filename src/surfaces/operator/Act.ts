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
 * An act is one thing that an operator can do. It is declared once. From the declaration come its route (with decoding,
 * refusals and OpenAPI), its command (with flags, help and completions), and the code that reads its form
 * (docs/contribute/decisions/acts.md).
 */

/** A schema without services, which encodes the output of an act and describes it in the document. */
export type Output = Schema.Codec<unknown, unknown>

/** The names in the braces of a route: `kid` of `POST /api/eab/{kid}/revoke`. */
type HolesOf<Route extends string> = Route extends `${string}{${infer Hole}}${infer Rest}` ? Hole | HolesOf<Rest>
  : never

/** A route whose names in braces are members of the input. */
type RouteOver<In extends Fields, Route extends string> = HolesOf<Route> extends keyof In & string ? Route : never

/** The HTTP form of an act. */
export interface Http<In extends Fields, Route extends string> {
  /**
   * The method and the path. The members in braces are in the path. The other members are in the query of GET and
   * DELETE, and in the body of every other method. If one of the other members is a secret, a DELETE has them in the
   * body too.
   */
  readonly route: RouteOver<In, Route>
  /** The status of the answer; 200 by default. With 204 the output is not sent. */
  readonly status?: 201 | 202 | 204
  /**
   * Whether the request must contain the caller's password. The password is in the member `password`, in addition to
   * the act's own members, and is checked before the act runs. A token has no password, so a program cannot send such a
   * request.
   */
  readonly isStepUp?: boolean
  /** Whether the request needs no CSRF token. Sign-in has no token yet, and the check of the origin protects it. */
  readonly isWithoutCsrf?: boolean
}

/** The values that a detail view can show. */
type Shown = string | number | boolean | ReadonlyArray<string>

type ItemOf<A> = A extends { readonly items: ReadonlyArray<infer Item> } ? Item : never

/** How a member is written on the command line. */
export interface Flagged {
  /** The name of the flag. By default it is the name of the member with hyphens: `ttl-seconds` for `ttlSeconds`. */
  readonly flag?: string
  readonly alias?: string
  readonly help?: string
}

/** A part of a command that failed although its act was done, and the exit code for that failure. */
export interface Fault {
  /** The exit code; 1 if another try may succeed. */
  readonly code: 1 | 3
  readonly message: string
}

/** The flags and the work that a command has in addition to its act. */
export interface Also<Out, R> {
  readonly flags: Fields
  /** The work to do after the output was printed. `say` prints a line. */
  after(
    given: { readonly [member: string]: unknown },
    output: Out,
    say: (line: string) => Effect.Effect<void>
  ): Effect.Effect<ReadonlyArray<Fault>, StorageFailed, R>
}

/** Declares the flags and the work that a command has in addition to its act. */
export const also = <const F extends Fields, Out, R>(declared: {
  readonly flags: F
  after(
    given: InputOf<F>,
    output: Out,
    say: (line: string) => Effect.Effect<void>
  ): Effect.Effect<ReadonlyArray<Fault>, StorageFailed, R>
}): Also<Out, R> => declared as Also<Out, R>

/**
 * The command-line form of an act. Every command also accepts `--json`. A secret is read from a file that a flag names,
 * from a terminal without echo, or from standard input.
 */
export interface Cli<In extends Fields, Out, R> {
  /** The words of the command: `eab create`. */
  readonly command: string
  /** What the command does, in sentences. By default it is the act's own description. */
  readonly help?: string
  /** An example, without the name of the program. */
  readonly example: string
  /** The members that are written as arguments, in order. By default these are the members in the path. */
  readonly args?: ReadonlyArray<keyof In & string>
  readonly flags?: { readonly [M in keyof In]?: Flagged }
  /**
   * The words of a member that are written as flags without a value, each with its help. The flags of one member
   * exclude each other.
   */
  readonly spelt?: { readonly [M in keyof In]?: { readonly [word: string]: readonly [flag: string, help: string] } }
  /**
   * The members that the command requires although the act does not. Over HTTP, their values can be taken from the
   * signed-in operator.
   */
  readonly needs?: ReadonlyArray<keyof In & string>
  /** The members that the command does not accept. The act runs without them. */
  readonly omits?: ReadonlyArray<keyof In & string>
  /**
   * Whether the act reads more of the configuration than `database`, so that it cannot run with a refused
   * configuration.
   */
  needsConfig?(input: InputOf<In>): boolean
  /**
   * Returns the question to ask before the act runs, or undefined if there is nothing to ask. If this effect fails, the
   * command ends with that refusal.
   */
  confirm?(input: InputOf<In>): Effect.Effect<string | undefined, OperatorError | StorageFailed, R>
  /** Returns a row of the table that shows a list: its cells by their headings. */
  columns?(item: ItemOf<Out>): { readonly [heading: string]: Cell }
  /** Returns the lines that show one record, by their labels. By default these are the members of the output. */
  members?(output: Out): { readonly [label: string]: Shown | undefined }
  /** Returns the whole text for people. */
  text?(output: Out): string | Rendered
  /** Returns the object of `--json`, if its form differs from the API's object. */
  json?(output: Out): unknown
  /** Returns a remark that is printed to standard error after the output. */
  remark?(output: Out): string | undefined
  /** Returns the failures of an act that was done only in part. The command ends with these faults. */
  faults?(output: Out): ReadonlyArray<Fault>
  readonly also?: Also<Out, R>
  /**
   * What happens if the output, which is shown only once, could not be written: the act is undone, if this is possible.
   * `outcome` is a clause that says what has become of the thing that was to be shown.
   */
  readonly ifLost?: {
    readonly outcome: string
    undo?(output: Out): Effect.Effect<unknown, OperatorError | StorageFailed, R>
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
  /** What the act does, in the imperative and without a full stop. */
  readonly does: string
  readonly access: Access
  /**
   * Set if the act only reads, and its answer may lack the changes of the last seconds, so that a standby may serve its
   * reads. It must not be set for an act that changes something, or that reads sessions, tokens or operators
   * (docs/contribute/decisions/standby.md).
   */
  readonly mayLag?: true
  readonly input: In
  /** The output. If it is a union, each form is sent with the status in the form's annotation. */
  readonly output: Out
  /**
   * The codes of the act's own refusals, in addition to the usual codes. If `run` can fail in any other way, the act
   * does not compile.
   */
  readonly errors: ReadonlyArray<C>
  /**
   * Refuses members that do not fit together, before the act runs. A command line with such members is refused like any
   * other wrong command line; the sentence then names the flag instead of the member.
   */
  fits?(input: NoInfer<InputOf<In>>): Effect.Effect<void, RefusalWith<C | UsualCode>>
  run(
    input: InputOf<In>
  ): Effect.Effect<Out["Type"], RefusalWith<C | UsualCode> | StorageFailed, R>
  readonly http?: Http<In, Route>
  readonly cli?: Cli<In, Out["Type"], R>
}

/** Any act that needs only these services. */
export interface AnyAct<R> extends Omit<Act<string, Fields, Output, OperatorCode, R>, "http" | "cli"> {
  readonly http?: Omit<Http<Fields, string>, "route"> & { readonly route: string }
  // An act gives only its own output to these functions.
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

/** Runs an act if its members fit together. */
export const perform = <In extends Fields, A, E, F, R>(
  act: {
    fits?(input: InputOf<In>): Effect.Effect<void, E>
    run(input: InputOf<In>): Effect.Effect<A, F, R>
  },
  input: InputOf<In>
): Effect.Effect<A, E | F, R> =>
  act.fits === undefined ? act.run(input) : Effect.andThen(act.fits(input), act.run(input))

type ServicesOf<A extends AnyAct<unknown>> = Effect.Services<ReturnType<A["run"]>>

/** The acts that concern one kind of thing. */
export interface Noun<R> {
  /** The tag under which the OpenAPI document lists the routes of these acts. */
  readonly name: string
  readonly description: string
  /** The groups of commands, by their words, with the help text of each. */
  readonly commands: { readonly [words: string]: string }
  readonly acts: ReadonlyArray<AnyAct<R>>
}

/** Declares the acts that concern one kind of thing. */
export const noun = <A extends AnyAct<unknown>>(
  declared: Omit<Noun<unknown>, "acts"> & { readonly acts: ReadonlyArray<A> }
): Noun<ServicesOf<A>> => declared as Noun<ServicesOf<A>>

/**
 * A file that is sent or printed while its rows are read. In the document its schema describes CSV; a JSON file is
 * `{"items": […]}`.
 */
export const FileOutput: Schema.Codec<Exported, unknown> = Schema.String.pipe(
  HttpApiSchema.asText({ contentType: "text/csv" })
) as unknown as Schema.Codec<Exported, unknown>

/** Returns whether the output of an act is a file. */
export const isFile = (output: Schema.Top): boolean => output === (FileOutput as Schema.Top)

/** Returns the status of an answer in this form of an output, if the form has its own status. */
export const statusOf = (form: Schema.Top): number | undefined => {
  const status = form.ast.annotations?.["httpApiStatus"]
  return typeof status === "number" ? status : undefined
}

/**
 * If an output is a union in which a form has its own status, returns the forms of the union. Otherwise returns none.
 */
export const formsOf = (output: Schema.Top): ReadonlyArray<Schema.Top> => {
  const forms = "members" in output ? output.members as ReadonlyArray<Schema.Top> : []
  return forms.some((form) => statusOf(form) !== undefined) ? forms : []
}

/**
 * Encodes the output of an act as JSON. A value that does not fit the declaration is a defect. Members that are not
 * declared are left out.
 */
export const encoded = <R>({ output }: AnyAct<R>, value: unknown): Effect.Effect<unknown> =>
  Effect.orDie(Schema.encodeUnknownEffect(output)(value))
