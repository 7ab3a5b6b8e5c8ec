import { Effect } from "effect"
import type { Scope } from "effect"
import { readFolder } from "../../kernel/host/Files.ts"
import type { FileUnreadable } from "../../kernel/host/Files.ts"
import type { TemplatesRefused } from "../../kernel/template/Engine.ts"
import { compile } from "../../kernel/template/Engine.ts"
import type { TemplateFault } from "../../kernel/template/TemplateFault.ts"
import { currentSeconds } from "../../kernel/Time.ts"
import { shownValue } from "./Shown.ts"
import { wordsAt } from "./Words.ts"

/* The templates of the panel. */

/** Ends a loop that somebody's own template never leaves. A page of fifty rows takes a hundredth of it. */
const fuel = 5_000_000

/** Renders a template of the panel with these values. */
export interface Rendering {
  readonly render: (
    template: string,
    values: { readonly [name: string]: unknown }
  ) => Effect.Effect<string, TemplateFault>
  /** Files of the operator's folder that replace nothing. */
  readonly unused: ReadonlyArray<string>
}

/** The engine escapes slashes too, which HTML does not ask for; every address is full of them. */
const withSlashes = (text: string): string => text.replaceAll("&#x2f;", "/")

const isTemplate = (name: string): boolean => name.endsWith(".html")

/** Compiles the built-in templates, each replaced by the file of its name in `own` if there is one. */
export const makeRendering = (
  builtIn: string,
  own: string | undefined
): Effect.Effect<Rendering, FileUnreadable | TemplatesRefused, Scope.Scope> =>
  Effect.gen(function*() {
    const sources = yield* readFolder(builtIn, isTemplate)
    const replacing = own === undefined ? new Map<string, string>() : yield* readFolder(own, isTemplate)
    let now = 0
    const templates = yield* compile(
      [...sources].map(([name, text]) => ({ name, text: replacing.get(name) ?? text })),
      { language: "whole", absent: "empty", fuel, filters: wordsAt(() => now), trimmed: true }
    )
    return {
      unused: [...replacing.keys()].filter((name) => !sources.has(name)),
      render: (template, values) =>
        Effect.flatMap(currentSeconds, (seconds) => {
          now = seconds
          const text = templates.render(`${template}.html`, shownValue(values) as { readonly [name: string]: unknown })
          return Effect.map(text, withSlashes)
        })
    }
  })
