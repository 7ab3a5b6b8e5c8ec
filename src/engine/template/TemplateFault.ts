import * as Data from "effect/Data"

/** What is wrong with one template when it is compiled or rendered. Quotes nothing of its text or its variables. */
export class TemplateFault extends Data.TaggedError("TemplateFault")<{
  /** Name of the template: a relative path, or the key that holds its text. */
  readonly template: string
  readonly line: number | undefined
  readonly fault: string
}> {
  override get message(): string {
    return `${this.template}${this.line === undefined ? "" : `:${this.line}`}: ${this.fault}`
  }
}
