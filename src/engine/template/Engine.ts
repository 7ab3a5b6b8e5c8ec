import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Environment } from "minijinja-js"
import { unknownIn } from "./Known.ts"
import type { Knows } from "./Known.ts"
import type { Machine } from "./Machine.ts"
import { loadMachine } from "./Machine.ts"
import { outsideSubset } from "./Subset.ts"
import { tagsOf } from "./Tags.ts"
import { TemplateFault } from "./TemplateFault.ts"
import type { Filter } from "./TemplateFilters.ts"

/* Templates of MiniJinja. The engine runs as WebAssembly, and is loaded when the first templates are compiled. */

/** A template before it is compiled. */
export interface Source {
  /**
   * The name by which other templates include or extend the template. If the name ends in `.html` or `.html.j2`, values
   * are escaped for HTML.
   */
  readonly name: string
  readonly text: string
}

/** Some templates cannot be used. The error has every fault, in the order of the sources. */
export class TemplatesRefused extends Data.TaggedError("TemplatesRefused")<{
  readonly faults: ReadonlyArray<TemplateFault>
}> {
  override get message(): string {
    return this.faults.map((fault) => fault.message).join("\n")
  }
}

/** Compiled templates. */
export interface Templates {
  /** Renders a template. The variables are data without functions, and a template can read nothing else. */
  readonly render: (
    name: string,
    variables: { readonly [name: string]: unknown }
  ) => Effect.Effect<string, TemplateFault>
}

/** How templates are compiled and rendered. */
export interface Language {
  /**
   * The allowed language. `subset`: only what {@link outsideSubset} accepts, and no functions. `whole`: everything that
   * the engine supports.
   */
  readonly language: "subset" | "whole"
  /** What happens to an absent variable. `empty`: it becomes the empty text. `refused`: it is a fault. */
  readonly absent: "empty" | "refused"
  /** The limit of instructions of the engine for one rendering. */
  readonly fuel: number
  readonly filters: { readonly [name: string]: Filter }
  /** Whether a line with nothing but a statement is left out of the result. */
  readonly trimmed?: boolean
}

// The engine uses recursion for long expressions and for branches. Beyond these limits it can run out of stack, and
// then it is broken for all templates of the process. Each limit is far below the value at which the engine was found
// to break.
const [longestSource, longestTag, mostBranches] = [65_536, 2048, 500]

const tooMuch = ({ name, text }: Source): TemplateFault | undefined => {
  const fault = (fault: string, line?: number) => new TemplateFault({ template: name, line, fault })
  if (text.length > longestSource) return fault(`longer than ${longestSource} characters`)
  let branches = 0
  for (const { inside, kind, line } of tagsOf(text)) {
    if (kind === "comment") continue
    if (inside.length > longestTag) return fault(`a tag of more than ${longestTag} characters`, line)
    if (inside.trimStart().startsWith("elif") && ++branches > mostBranches) {
      return fault(`more than ${mostBranches} elif`, line)
    }
  }
  return undefined
}

/**
 * Makes a fault from the first line of the engine's message, without the place. The other lines of the message quote
 * the template.
 */
const faultOf = (template: string, cause: unknown): TemplateFault => {
  const [message = ""] = (cause instanceof Error ? cause.message : String(cause)).split("\n")
  const [, said, where, line] = /^(.*) \(in (.*):(\d+)\)$/.exec(message) ?? []
  return where === undefined
    ? new TemplateFault({ template, line: undefined, fault: message })
    // If a template includes another template, the fault may be in the included template.
    : new TemplateFault({ template: where, line: Number(line), fault: said ?? message })
}

// The functions that the engine itself offers to every template.
const functions = ["debug", "dict", "namespace", "range"]

const prepare = (
  environment: Environment,
  { absent, filters, fuel, language, trimmed = false }: Language
): { thrown: unknown } => {
  const problem: { thrown: unknown } = { thrown: undefined }
  environment.undefinedBehavior = absent === "empty" ? "chainable" : "strict"
  environment.fuel = fuel
  environment.keepTrailingNewline = true
  environment.trimBlocks = trimmed
  environment.lstripBlocks = trimmed
  environment.removeGlobal("debug") // this function prints every variable
  if (language === "subset") { for (const name of functions) environment.removeGlobal(name) }
  for (const [name, filter] of Object.entries(filters)) {
    environment.addFilter(name, (...args: ReadonlyArray<unknown>) => {
      try {
        return filter(args[0], ...args.slice(1))
      } catch (cause) {
        // An exception that reaches the engine damages the engine.
        problem.thrown = cause
        return ""
      }
    })
  }
  return problem
}

/** An environment, with those templates that could be added to it. */
interface Made {
  readonly environment: Environment
  readonly problem: { thrown: unknown }
  readonly faults: ReadonlyArray<TemplateFault>
  readonly madeAt: number
}

/** Makes a fault from an exception of the engine. If the machine has broken down, it is restarted for its next use. */
const caught = (machine: Machine, template: string, cause: unknown): TemplateFault => {
  if (!machine.brokeDown(cause)) return faultOf(template, cause)
  machine.restart()
  const fault = "takes more memory than there is for templates, or nests too deep"
  return new TemplateFault({ template, line: undefined, fault })
}

const make = (machine: Machine, sources: ReadonlyArray<Source>, language: Language): Made => {
  const madeAt = machine.starts
  const environment = new machine.Environment()
  const problem = prepare(environment, language)
  const faults: Array<TemplateFault> = []
  for (const source of sources) {
    const { name, text } = source
    const fault = tooMuch(source) ?? (language.language === "subset" ? outsideSubset(name, text) : undefined)
    if (fault !== undefined) faults.push(fault)
    else {
      try {
        environment.addTemplate(name, text)
      } catch (cause) {
        faults.push(caught(machine, name, cause))
        if (madeAt !== machine.starts) break
      }
    }
  }
  return { environment, problem, faults, madeAt }
}

const trial = {
  filter: (name: string) => `0|${name}`,
  test: (name: string) => `0 is ${name}`,
  function: (name: string) => `${name}()`
}

/** Makes a function that returns whether the engine knows a name, by evaluating an expression with this name. */
const knownTo = (environment: Environment): Knows => {
  const answers = new Map<string, boolean>()
  return (kind, name) => {
    const expression = trial[kind](name)
    const answer = answers.get(expression) ?? isKnown(environment, kind, expression)
    answers.set(expression, answer)
    return answer
  }
}

const isKnown = (environment: Environment, kind: string, expression: string): boolean => {
  try {
    environment.evalExpr(expression, {})
    return true
  } catch (cause) {
    return !String(cause instanceof Error ? cause.message : cause).startsWith(`unknown ${kind}`)
  }
}

/** Compiles all templates. Fails with all their faults. The templates can be rendered until the scope closes. */
export const compile = (
  sources: ReadonlyArray<Source>,
  language: Language
): Effect.Effect<Templates, TemplatesRefused, Scope.Scope> =>
  Effect.gen(function*() {
    const machine = yield* Effect.promise(loadMachine)
    let made = make(machine, sources, language)
    const release = ({ environment, madeAt }: Made) => machine.release(environment, madeAt)
    yield* Effect.addFinalizer(() => Effect.sync(() => release(made)))
    if (made.faults.length > 0) return yield* new TemplatesRefused({ faults: made.faults })
    // The check of the subset has already refused unknown names.
    const unknown = language.language === "subset" ? [] : unknownIn(sources, knownTo(made.environment))
    if (unknown.length > 0) return yield* new TemplatesRefused({ faults: unknown })
    /** Returns the environment. If the machine was restarted in the meantime, the environment is made again. */
    const current = (): Made => {
      if (made.madeAt !== machine.starts) {
        release(made)
        made = make(machine, sources, language)
      }
      return made
    }
    return {
      render: (name, variables) =>
        Effect.try({
          try: () => {
            const { environment, problem } = current()
            problem.thrown = undefined
            const text = environment.renderTemplate(name, variables)
            if (problem.thrown !== undefined) throw problem.thrown
            return text
          },
          catch: (cause) => caught(machine, name, cause)
        })
    }
  })
