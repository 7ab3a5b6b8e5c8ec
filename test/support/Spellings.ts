import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { actCommand } from "../../src/app/commands/ActCommand.ts"
import type { CommandServices } from "../../src/app/commands/ActCommand.ts"
import type { OperatorError } from "../../src/domain/OperatorError.ts"
import { operatorProblemOf } from "../../src/domain/OperatorProblem.ts"
import { readWhole } from "../../src/domain/WholeNumber.ts"
import type { Request } from "../../src/engine/http/Message.ts"
import type { Database } from "../../src/engine/sql/Database.ts"
import type { AnyAct, Noun } from "../../src/surfaces/operator/Act.ts"
import { answerOf } from "../../src/surfaces/operator/ActAnswer.ts"
import type { StepUpServices } from "../../src/surfaces/operator/ActAnswer.ts"
import type { ActRoute } from "../../src/surfaces/operator/ActRoute.ts"
import { routeOf } from "../../src/surfaces/operator/ActRoute.ts"
import type { Field } from "../../src/surfaces/operator/Field.ts"
import { looked, submitted } from "../../src/surfaces/panel/PanelActs.ts"
import { readForm, readQuery } from "../../src/surfaces/panel/PanelForm.ts"
import type { Place } from "./RunCommand.ts"

/*
 * Writes the members of an act in each of the ways in which an operator can write them: in a request of the API, in a
 * form or the URL of a page of the panel, and on a command line. The act only keeps its input.
 */

/** The result: the input that the act got, or the code and the sentence of the refusal. */
export type Verdict =
  | { readonly accepted: { readonly [member: string]: unknown } }
  | { readonly refused: string; readonly said: string }

/** The texts that are written for each member, none if the member is left out, and two if it is given twice. */
export interface Written {
  readonly [member: string]: ReadonlyArray<string>
}

/** One way to write the members of an act. */
export interface Spelling {
  readonly kind: "body" | "query" | "form" | "page" | "flag"
  /** The name of a member in the refusals of this spelling. */
  readonly nameOf: (member: string) => string
  /** Whether the member is a separate field in this spelling, and not in the path. */
  readonly has: (member: string) => boolean
  /** Writes the texts and returns the verdict, or undefined if this spelling cannot express the texts. */
  readonly write: (written: Written) => Effect.Effect<Verdict | undefined, never, Database>
}

/** An act that only keeps its input. */
export interface Kept {
  readonly noun: Noun<unknown>
  readonly act: AnyAct<never>
  given: { readonly [member: string]: unknown } | undefined
}

const keeping = (noun: Noun<unknown>, declared: AnyAct<unknown>): Kept => {
  const { cli, does, errors, http, id, input } = declared
  const kept: Kept = {
    noun,
    given: undefined,
    act: {
      does,
      errors,
      id,
      input,
      // Rules over several members are not tested here.
      access: "viewer",
      ...http === undefined ? {} : { http: { route: http.route } },
      // Questions and the output of a command would need the answer of the act, so they are left out.
      ...cli === undefined ? {} : {
        cli: {
          command: cli.command,
          example: cli.example,
          ...cli.args === undefined ? {} : { args: cli.args },
          flags: cli.flags ?? {},
          spelt: cli.spelt ?? {},
          omits: cli.omits ?? [],
          needs: cli.needs ?? [],
          text: () => "Done."
        }
      },
      output: Schema.Struct({}),
      run: (input) =>
        Effect.sync(() => {
          kept.given = input
          return {}
        })
    }
  }
  return kept
}

/** Returns all acts of some nouns. */
export const actsIn = (all: ReadonlyArray<unknown>): ReadonlyArray<Kept> =>
  (all as ReadonlyArray<Noun<unknown>>).flatMap((noun) => noun.acts.map((act) => keeping(noun, act)))

/** Returns the method, the path and the parameters of an act's route, or undefined if the act has no route. */
export const routeIn = ({ act }: Kept): ActRoute<never> | undefined => routeOf(act)[0]

// No act here asks for a password, so the service that compares passwords is not needed.
const verdictOf = <R>(kept: Kept, doing: Effect.Effect<unknown, OperatorError, R>) =>
  Effect.match(
    Effect.suspend(() => {
      kept.given = undefined
      return doing
    }),
    {
      onSuccess: () => ({ accepted: kept.given ?? {} }),
      onFailure: (error) => {
        const { code, message } = operatorProblemOf(error)
        return { refused: code, said: message }
      }
    }
  ) as Effect.Effect<Verdict, never, Exclude<R, StepUpServices> | Database>

/** Returns a request that did not come from a socket. */
export const requestOf = (method: string, target: string, body = "", type = "application/json"): Request => ({
  id: "1",
  method,
  target,
  path: target.split("?")[0] ?? "",
  headers: { "content-type": type },
  clientIp: "192.0.2.1",
  userAgent: undefined,
  body: Effect.succeed(Buffer.from(body))
})

/** An operator who may do everything. */
export const sender = {
  kind: "session",
  role: "admin",
  userId: "u",
  username: "anna",
  tokenHash: "t",
  csrfToken: "c",
  createdAt: 0,
  expiresAt: 1,
  totpEnabled: false
} as const

/**
 * Returns a text as a value of JSON: as a number or a boolean if the member is of that type and the text fits, and
 * otherwise as a string.
 */
const jsonOf = ({ form }: Field<unknown>, text: string): string => {
  if ((form === "integer" || form === "code") && readWhole(text) !== undefined) {
    return text.trim().replace(/^\+/, "").replace(/^(-?)0+(?=\d)/, "$1")
  }
  if (form === "boolean") return /^\s*(?:true|false)\s*$/.test(text) ? text.trim() : JSON.stringify(text)
  return JSON.stringify(form === "texts" ? [text] : text)
}

const pathOf = (kept: Kept, written: Written): { readonly [member: string]: string } =>
  Object.fromEntries(Object.keys(routeIn(kept)?.path ?? {}).map((member) => [member, written[member]?.[0] ?? ""]))

/** Sends a request for an act with this query and this body. */
export const sent = (kept: Kept, { path, query = "", body }: {
  readonly path: { readonly [member: string]: string }
  readonly query?: string
  readonly body?: string
}) => {
  const route = routeIn(kept)
  if (route === undefined) return undefined
  const target = `/${query === "" ? "" : `?${query}`}`
  const client = { ip: "192.0.2.1", request_id: "1", user_agent: undefined }
  const entered = { route, parameters: path, sender, client, held: undefined }
  return verdictOf(kept, answerOf(requestOf(route.method, target, body), entered, 1_000_000))
}

/** Returns a text as it is written in a form or a query. Half of a surrogate pair becomes octets that are not UTF-8. */
const percents = (text: string): string => text.split(/\p{Surrogate}/u).map(encodeURIComponent).join("%ED%A0%80")

const encodedOf = (written: Written, isThere: (member: string) => boolean): string =>
  Object.entries(written).filter(([member]) => isThere(member)).flatMap(([member, texts]) =>
    texts.map((text) => `${encodeURIComponent(member)}=${percents(text)}`)
  ).join("&")

const isOfPath = (kept: Kept, member: string): boolean => Object.hasOwn(routeIn(kept)?.path ?? {}, member)

const nothing = Effect.succeed(undefined)

/** Returns all spellings of an act. */
export const spellingsOf = (kept: Kept, place: Place): ReadonlyArray<Spelling> => {
  const { act } = kept
  const { cli, input } = act
  const route = routeIn(kept)
  const isBeside = (member: string): boolean => !isOfPath(kept, member)
  const byRequest: Spelling = {
    kind: route?.hasBody === true ? "body" : "query",
    nameOf: (member) => member,
    has: isBeside,
    write: (written) => {
      const path = pathOf(kept, written)
      if (route?.hasBody !== true) return sent(kept, { path, query: encodedOf(written, isBeside) }) ?? nothing
      const members = Object.entries(written).filter(([member]) => isBeside(member)).flatMap(([member, texts]) =>
        texts.map((text) => `${JSON.stringify(member)}:${jsonOf(input[member] ?? { form: "text" } as never, text)}`)
      )
      return sent(kept, { path, body: `{${members.join(",")}}` }) ?? nothing
    }
  }
  const byForm: Spelling = {
    kind: "form",
    nameOf: (member) => member,
    has: isBeside,
    write: (written) =>
      verdictOf(
        kept,
        Effect.flatMap(
          readForm(
            requestOf("POST", "/", encodedOf(written, isBeside), "application/x-www-form-urlencoded"),
            1_000_000
          ),
          (form) => submitted(act, { form, parameters: pathOf(kept, written) })
        ) as Effect.Effect<unknown, OperatorError>
      )
  }
  const byPage: Spelling = {
    kind: "page",
    nameOf: (member) => member,
    // A page of the panel has a page number instead of these two.
    has: (member) => isBeside(member) && member !== "limit" && member !== "offset",
    write: (written) =>
      verdictOf(
        kept,
        Effect.flatMap(
          readQuery(`/?${encodedOf(written, byPage.has)}`, "/"),
          (query) => looked({ ...act, input: windowless(input) }, { query, parameters: pathOf(kept, written) })
        ) as Effect.Effect<unknown, OperatorError>
      )
  }
  return [
    ...route === undefined ? [] : [byRequest, byForm],
    ...route?.method === "GET" ? [byPage] : [],
    ...cli === undefined ? [] : [byCommand(kept, place)]
  ]
}

const windowless = (input: AnyAct<never>["input"]) =>
  Object.fromEntries(Object.entries(input).filter(([member]) => member !== "limit" && member !== "offset"))

const hyphened = (member: string): string => member.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** Returns the word for a member on a command line. */
const wordOf = ({ act: { cli } }: Kept, member: string): string => cli?.flags?.[member]?.flag ?? hyphened(member)

const argsOf = (kept: Kept): ReadonlyArray<string> => kept.act.cli?.args ?? Object.keys(routeIn(kept)?.path ?? {})

/** Returns the words that give a text to a flag, or undefined if no words can. */
const flagWith = (kept: Kept, member: string, text: string): ReadonlyArray<string> | undefined => {
  const { cli, input } = kept.act
  if (cli?.omits?.includes(member) === true) return undefined
  const spelt = cli?.spelt?.[member]
  if (spelt !== undefined) {
    const flag = spelt[text.trim()]?.[0]
    return flag === undefined ? undefined : [`--${flag}`]
  }
  if (input[member]?.form !== "boolean") return [`--${wordOf(kept, member)}=${text}`]
  return text.trim() === "true" ? [`--${wordOf(kept, member)}`] : undefined
}

/** Returns whether no system can pass this text to a program. */
const isUnspeakable = (text: string): boolean => text.includes("\u0000") || /\p{Surrogate}/u.test(text)

/** Returns whether a member is read from a file or from standard input, so that a command line does not contain it. */
const isSecretIn = ({ act: { input } }: Kept, member: string): boolean => input[member]?.isSecret === true

/** Returns the words of a command line, or undefined if no words can express the texts. */
const wordsOf = (kept: Kept, written: Written): ReadonlyArray<string> | undefined => {
  const args = argsOf(kept)
  const words: Array<string> = kept.act.cli?.command.split(" ") ?? []
  const given = Object.entries(written).filter(([member]) => !args.includes(member) && !isSecretIn(kept, member))
  for (const [member, texts] of given) {
    for (const text of texts) {
      const flag = isUnspeakable(text) ? undefined : flagWith(kept, member, text)
      if (flag === undefined) return undefined
      words.push(...flag)
    }
  }
  const there = args.map((member) => (written[member]?.length ?? 0) > 0)
  // If one argument is left out, the next one would take its place.
  if (there.indexOf(false) >= 0 && there.lastIndexOf(true) > there.indexOf(false)) return undefined
  for (const text of args.flatMap((member) => written[member] ?? [])) {
    if (isUnspeakable(text) || /^-./.test(text)) return undefined
    words.push(text)
  }
  return words
}

/** Returns the text of the file that a command reads instead of an argument, if the act has such a member. */
const fileIn = ({ act: { input } }: Kept, written: Written): string | undefined =>
  Object.entries(input).flatMap(([member, { isFile }]) => isFile === true ? written[member] ?? [] : [])[0]

/** Writes the path of standard input for each member that a command reads from a file. */
const pathsFor = ({ act: { input } }: Kept, written: Written): Written =>
  Object.fromEntries(
    Object.entries(written).map((
      [member, texts]
    ) => [member, input[member]?.isFile === true ? texts.map(() => "-") : texts])
  )

const codes: { readonly [code: number]: string } = { 2: "bad_request", 3: "invalid_status" }

const byCommand = (kept: Kept, place: Place): Spelling => {
  const acts = [kept.act as AnyAct<CommandServices>]
  const command = actCommand({ ...kept.noun, acts }, kept.act.cli?.command.split(" ")[0] ?? "")
  return {
    kind: "flag",
    nameOf: (member) => argsOf(kept).includes(member) ? `<${wordOf(kept, member)}>` : `--${wordOf(kept, member)}`,
    has: (member) =>
      Object.hasOwn(kept.act.input, member) && !isSecretIn(kept, member) &&
      kept.act.cli?.needs?.includes(member) !== true,
    write: (written) => {
      const piped = fileIn(kept, written)
      const words = wordsOf(kept, pathsFor(kept, written))
      if (words === undefined) return nothing
      kept.given = undefined
      return Effect.map(
        place.run([...words, "--json"], {
          among: () => Effect.succeed([command]),
          ...piped === undefined ? {} : { piped }
        }),
        ({ code, err }) =>
          code === 0 ? { accepted: kept.given ?? {} } : { refused: codes[code] ?? `exit code ${code}`, said: err }
      )
    }
  }
}
