import * as Data from "effect/Data"

/**
 * A template cannot be compiled or rendered. The error quotes nothing from the text or the variables of the template.
 */
export class TemplateFault extends Data.TaggedError("TemplateFault")<{
  /** The name of the template: a relative path, or the key that has the text as its value. */
  readonly template: string
  readonly line: number | undefined
  readonly fault: string
}> {
  override get message(): string {
    return `${this.template}${this.line === undefined ? "" : `:${this.line}`}: ${this.fault}`
  }
}
