import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { replaceHidden } from "../../engine/HiddenText.ts"
import { readFolder } from "../../engine/host/Files.ts"
import type { FileUnreadable } from "../../engine/host/Files.ts"
import { compile, TemplatesRefused } from "../../engine/template/Engine.ts"
import { TemplateFault } from "../../engine/template/TemplateFault.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { lean } from "./PanelLists.ts"
import type { PanelFiles } from "./Statics.ts"
import { wordsAt } from "./Words.ts"

/*
 * Makes text from outside safe to show on a page. Such a text must not change the meaning of the text beside it, or
 * hide a part of itself.
 */

/** Replaces every hidden character of a text with its name. Tabs and line ends stay. */
const shownText = (text: string): string =>
  replaceHidden(text, (character, code) => "\t\n\r".includes(character) ? character : `⟨${code}⟩`)

/** Applies {@link shownText} to every text in the data of a template, so that no template can omit this step. */
export const shownValue = (value: unknown): unknown => {
  if (typeof value === "string") return shownText(value)
  if (Array.isArray(value)) return value.map(shownValue)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shownValue(member)]))
}

/* The templates of the panel. */

/**
 * The highest number of instructions for one rendering. This limit ends an endless loop in an operator's template. A
 * page of fifty rows needs a hundredth of this number.
 */
const fuel = 5_000_000

/** The operator's folder of templates cannot be read. The message names the key that sets the folder. */
export class TemplateFolderUnusable extends Data.TaggedError("TemplateFolderUnusable")<{ readonly message: string }> {}

/** Renders the templates of the panel. */
export interface Rendering {
  readonly render: (
    template: string,
    values: { readonly [name: string]: unknown }
  ) => Effect.Effect<string, TemplateFault>
  /** The paths of files in the operator's folder that replace no built-in template. */
  readonly unused: ReadonlyArray<string>
}

/** Undoes the escapes of slashes. HTML does not need them, and URLs contain many slashes. */
const withSlashes = (text: string): string => text.replaceAll("&#x2f;", "/")

const isTemplate = (name: string): boolean => name.endsWith(".html")

/** Makes the templates of a panel, according to `admin.template_dir`. */
export const renderingOf = (
  { folder }: Pick<PanelFiles, "folder">,
  { template_dir }: { readonly template_dir: string }
) => makeRendering(`${folder}/templates`, template_dir === "" ? undefined : template_dir)

/**
 * Compiles the built-in templates. A file in the operator's folder, `own`, replaces the template with the same name.
 */
export const makeRendering = (
  builtIn: string,
  own: string | undefined
): Effect.Effect<Rendering, FileUnreadable | TemplateFolderUnusable | TemplatesRefused, Scope.Scope> =>
  Effect.gen(function*() {
    const sources = yield* readFolder(builtIn, isTemplate)
    const replacing = own === undefined ? new Map<string, string>() : yield* Effect.mapError(
      readFolder(own, isTemplate),
      ({ message }) => new TemplateFolderUnusable({ message: `admin.template_dir: ${message}.` })
    )
    let now = 0
    const named = (fault: TemplateFault) =>
      replacing.has(fault.template) ? new TemplateFault({ ...fault, template: `${own}/${fault.template}` }) : fault
    const templates = yield* Effect.mapError(
      compile(
        [...sources].map(([name, text]) => ({ name, text: replacing.get(name) ?? lean(text) })),
        { language: "whole", absent: "empty", fuel, filters: wordsAt(() => now), trimmed: true }
      ),
      ({ faults }) => new TemplatesRefused({ faults: faults.map(named) })
    )
    return {
      unused: [...replacing.keys()].filter((name) => !sources.has(name)).map((name) => `${own}/${name}`),
      render: (template, values) =>
        Effect.flatMap(currentSeconds, (seconds) => {
          now = seconds
          const text = templates.render(`${template}.html`, shownValue(values) as { readonly [name: string]: unknown })
          return Effect.map(text, withSlashes)
        })
    }
  })
