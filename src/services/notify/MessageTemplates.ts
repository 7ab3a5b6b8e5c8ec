import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { MessageKind, Payload } from "../../domain/Notification.ts"
import { messageKinds } from "../../domain/Notification.ts"
import { oneLine } from "../../engine/HiddenText.ts"
import { filesBelow, readText } from "../../engine/host/Files.ts"
import { compile, TemplatesRefused } from "../../engine/template/Engine.ts"
import { TemplateFault } from "../../engine/template/TemplateFault.ts"
import { filters } from "../../engine/template/TemplateFilters.ts"
import { builtIn, derived, namesOf } from "./Messages.ts"
import type { Section } from "./NotifyRoutes.ts"

/** The templates of a section cannot be used. The message names each file or key, with the line and the cause. */
export class MessagesRefused extends Data.TaggedError("MessagesRefused")<{ readonly message: string }> {}

/** The messages of one section. */
export interface Messages {
  /** Renders the one line that says what happened. */
  readonly message: (fields: Payload) => Effect.Effect<string, TemplateFault>
  /** Renders the body of the request to a webhook. */
  readonly webhook: (entry: string, fields: Payload) => Effect.Effect<string, TemplateFault>
  readonly letter: (
    fields: Payload
  ) => Effect.Effect<{ readonly subject: string; readonly text: string }, TemplateFault>
  /** The files in the folder that no message uses. */
  readonly unused: ReadonlyArray<string>
}

const fuel = 1_000_000
const longestSubject = 200

const isEvent = (name: string): name is MessageKind => messageKinds.some((event) => event === name)

const bodyName = (entry: string): string => `webhook.${entry}.body`

/** Returns the templates of a section: the built-in ones, except where a file in the folder has the same name. */
const templatesOf = Effect.fnUntraced(function*(folder: string) {
  const known = new Map(messageKinds.flatMap(builtIn))
  if (folder === "") return { known, files: new Map<string, string>(), unused: [] }
  const found = yield* filesBelow(folder)
  const files = new Map<string, string>()
  for (const { name, path } of found.filter(({ name }) => known.has(name))) {
    const text = yield* readText(path)
    known.set(name, text.replace(/\r?\n$/, ""))
    files.set(name, path)
  }
  return { known, files, unused: found.filter(({ name }) => !known.has(name)).map(({ path }) => path) }
})

const shortened = (subject: string): string => {
  const characters = [...subject]
  if (characters.length <= longestSubject) return subject
  return `${characters.slice(0, longestSubject - 4).join("").trimEnd()} ...`
}

/**
 * Compiles the messages of a section. `at` is the key of the section, for the text of refusals. `host` names the
 * installation in subjects. The templates may use only the part of the language that
 * docs/contribute/decisions/templates.md lists.
 */
export const compileMessages = (
  { template_dir, webhook }: Section,
  at: string,
  host: string
): Effect.Effect<Messages, MessagesRefused, Scope.Scope> =>
  Effect.gen(function*() {
    const { files, known, unused } = yield* Effect.mapError(
      templatesOf(template_dir),
      ({ message }) => new MessagesRefused({ message: `${at}.template_dir: ${message}.` })
    )
    const bodies = Object.entries(webhook).map(([entry, { body }]) => ({
      name: bodyName(entry),
      text: Redacted.value(body)
    }))
    const named = (fault: TemplateFault) =>
      new TemplateFault({ ...fault, template: files.get(fault.template) ?? `${at}.${fault.template}` })
    const templates = yield* Effect.mapError(
      compile([...[...known].map(([name, text]) => ({ name, text })), ...bodies], {
        language: "subset",
        absent: "empty",
        fuel,
        filters
      }),
      ({ faults }) => new MessagesRefused(new TemplatesRefused({ faults: faults.map(named) }))
    )
    const render = (name: string, variables: { readonly [name: string]: unknown }) =>
      Effect.mapError(templates.render(name, variables), named)
    const message = (fields: Payload) =>
      isEvent(fields.hook)
        ? render(namesOf(fields.hook).message, { ...derived(fields), ...fields })
        : Effect.succeed(fields.hook)
    const withMessage = (fields: Payload) =>
      Effect.map(message(fields), (message) => ({ ...derived(fields), ...fields, message }))
    return {
      message,
      unused,
      webhook: (entry, fields) => Effect.flatMap(withMessage(fields), (all) => render(bodyName(entry), all)),
      letter: Effect.fnUntraced(function*(fields) {
        const all = yield* withMessage(fields)
        if (!isEvent(fields.hook)) return { subject: fields.hook, text: all.message }
        const names = namesOf(fields.hook)
        const subject = shortened(oneLine(yield* render(names.subject, { host, ...all })))
        return { subject, text: yield* render(names.body, { host, ...all }) }
      })
    }
  })
