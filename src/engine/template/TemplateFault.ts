import * as Data from "effect/Data"

/** One template cannot be compiled or rendered. The error quotes nothing from its text or its variables. */
export class TemplateFault extends Data.TaggedError("TemplateFault")<{
  /** The name of the template: a relative path, or the key whose value is its text. */
  readonly template: string
  readonly line: number | undefined
  readonly fault: string
}> {
  override get message(): string {
    return `${this.template}${this.line === undefined ? "" : `:${this.line}`}: ${this.fault}`
  }
}
