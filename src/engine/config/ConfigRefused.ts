import * as Data from "effect/Data"
import * as Order from "effect/Order"

/** One fault of the configuration: the key, and a sentence that never quotes the key's value. */
export interface Fault {
  /** The dotted key. For an unknown variable it is the variable's name, for an unreadable file the file's path. */
  readonly key: string
  readonly message: string
  /** Where the key was written: `line 3 of config.toml`. Absent if no line of the file has it. */
  readonly place?: string | undefined
}

/** Returns a sentence about a key, with the place of that key at the end of its first line. */
export const withPlace = (sentence: string, place: string | undefined): string =>
  place === undefined ? sentence : sentence.replace(/\.?$/m, (stop) => ` (${place})${stop}`)

const byKey: Order.Order<Fault> = Order.combine(
  Order.mapInput(Order.String, (fault) => fault.key),
  Order.mapInput(Order.String, (fault) => fault.message)
)

/**
 * The configuration cannot be used. It has every fault that was found, sorted by key. `message` prints one fault per
 * line as `key: message (place)` (docs/decisions/configuration.md, "Every fault at once").
 */
export class ConfigRefused extends Data.TaggedError("ConfigRefused")<{
  readonly faults: ReadonlyArray<Fault>
  /** A sentence about something that is not a fault itself, but may be the reason for the faults. */
  readonly advice?: string
}> {
  /** Makes a refusal from faults. It sorts them and drops repetitions of the same sentence about the same key. */
  static readonly of = (faults: ReadonlyArray<Fault>): ConfigRefused =>
    new ConfigRefused({
      faults: [...new Map(faults.map((fault) => [`${fault.key}: ${fault.message}`, fault])).values()].sort(byKey)
    })

  /** Returns the same faults with advice before them. */
  advised(advice: string): ConfigRefused {
    return new ConfigRefused({ faults: this.faults, advice })
  }

  /**
   * The advice, if there is any, then a header line, then one line per fault, indented by two blanks. If a fault has
   * several lines, each line is indented.
   */
  override get message(): string {
    const count = this.faults.length === 1 ? "1 fault" : `${this.faults.length} faults`
    const lines = this.faults.flatMap(({ key, message, place }) => withPlace(`${key}: ${message}`, place).split("\n"))
    const indented = lines.map((line) => line === "" ? "" : `  ${line}`)
    const advice = this.advice === undefined ? [] : [this.advice]
    return [...advice, `The configuration is refused, ${count}:`, ...indented].join("\n")
  }
}
